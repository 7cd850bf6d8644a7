/// Layer: session.
#include "broker/session/ticket_book.hpp"

#include <sys/random.h>

#include <array>
#include <cstdlib>
#include <utility>

namespace lightq::broker {

namespace {

constexpr std::size_t id_bytes = 8;
constexpr std::size_t secret_bytes = 32;

template <std::size_t bytes>
std::string random_text() {
  std::array<unsigned char, bytes> random;
  if (getrandom(random.data(), bytes, 0) != static_cast<ssize_t>(bytes))
    std::abort();  // cannot be, of so few
  std::string text;
  for (const unsigned char byte : random) {
    text += "0123456789abcdef"[byte >> 4U];
    text += "0123456789abcdef"[byte & 15U];
  }
  return text;
}

/// Takes as long wherever the first difference is.
bool equal(std::string_view one, std::string_view other) {
  if (one.size() != other.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    difference |=
        static_cast<unsigned>(static_cast<unsigned char>(one[i]) ^ static_cast<unsigned char>(other[i]));
  }
  return difference == 0;
}

}  // namespace

Result<protocol::SessionTicket> TicketBook::issue(Grant grant, Timestamp now) {
  expire(now);
  if (by_id_.size() >= tickets_max_) {
    return Error{ErrorCode::limit_reached,
                 std::to_string(by_id_.size()) + " tickets are valid, the most there may be"};
  }
  const Timestamp expires{now.us + lifetime_us_};
  protocol::SessionTicket ticket{random_text<id_bytes>(), random_text<secret_bytes>(),
                                 static_cast<std::uint64_t>(expires.us / 1000)};
  order_.push_back(ticket.id);
  by_id_[ticket.id] = Entry{ticket.secret, grant, expires};
  return ticket;
}

std::optional<Grant> TicketBook::find(std::string_view shown, Timestamp now) const {
  const std::size_t dot = shown.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto found = by_id_.find(std::string(shown.substr(0, dot)));
  if (found == by_id_.end() || found->second.expires < now) return std::nullopt;
  if (!equal(found->second.secret, shown.substr(dot + 1))) return std::nullopt;
  return found->second.grant;
}

void TicketBook::expire(Timestamp now) {
  while (!order_.empty()) {
    const auto oldest = by_id_.find(order_.front());
    if (now <= oldest->second.expires) return;
    by_id_.erase(oldest);
    order_.pop_front();
  }
}

}  // namespace lightq::broker
