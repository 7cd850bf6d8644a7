/// Issues and checks tickets with a keyed BLAKE2b hash. Layer: access.
#include "access/ticket_key.hpp"

#include <sodium.h>

#include <algorithm>
#include <charconv>
#include <string>

#include <lightq/base/random.hpp>
#include <lightq/base/wipe.hpp>

namespace lightq::broker {

TicketKey::TicketKey(std::span<const std::byte, bytes> key, std::chrono::milliseconds lifetime_max)
    : lifetime_max_(lifetime_max) {
  std::copy(key.begin(), key.end(), key_.begin());
}

TicketKey::~TicketKey() {
  wipe_bytes(key_);
}

TicketKey::Bytes TicketKey::random_bytes() {
  Bytes made{};
  fill_random(made);
  return made;
}

std::string TicketKey::secret_of(std::string_view id) const {
  static_assert(crypto_generichash_KEYBYTES == bytes);
  std::array<std::byte, crypto_generichash_BYTES> digest{};
  crypto_generichash(reinterpret_cast<unsigned char*>(digest.data()), digest.size(),
                     reinterpret_cast<const unsigned char*>(id.data()), id.size(),
                     reinterpret_cast<const unsigned char*>(key_.data()), key_.size());
  std::string text = to_hex(digest);
  wipe_bytes(digest);
  return text;
}

std::string TicketKey::id() const {
  return secret_of("the key's own id");  // never the id of a ticket, because it is not hexadecimal
}

std::uint64_t TicketKey::number_of_request(std::uint64_t user, std::string_view id) const {
  // Never the id of a ticket, because it is not hexadecimal.
  const std::string secret = secret_of("a request " + std::to_string(user) + " " + std::string(id));
  std::uint64_t number = 0;
  std::from_chars(secret.data(), secret.data() + 16, number, 16);
  return std::max<std::uint64_t>(number, 1);
}

protocol::Ticket TicketKey::issue(const Grant& grant, std::chrono::milliseconds lifetime, Timestamp now,
                                  const TicketHolder& holder) const {
  TicketClaims claims;
  claims.grant = grant;
  claims.holder = holder;
  claims.expires_ms = static_cast<std::uint64_t>(now.us / 1000 + lifetime.count());
  claims.nonce = random_number<std::uint64_t>();
  std::string id = encode_ticket_id(claims);
  Secret secret = secret_of(id);
  return {std::move(id), std::move(secret), claims.expires_ms};
}

TicketVerdict TicketKey::check(std::string_view id, std::string_view secret, Timestamp now) const {
  const auto claims = decode_ticket_id(id);
  if (!claims) return {{}, {}, "a malformed ticket"};
  const Secret right = secret_of(id);
  const bool is_right =
      secret.size() == right.size() && sodium_memcmp(secret.data(), right.expose().data(), right.size()) == 0;
  if (!is_right) return {{}, {}, "a ticket that this broker did not issue"};
  if (now.us / 1000 >= 0 && static_cast<std::uint64_t>(now.us / 1000) >= claims->expires_ms)
    return {{}, {}, "an expired ticket"};
  if (ends_too_late(claims->expires_ms, lifetime_max_, now))
    return {{}, {}, "a ticket that expires later than ticket_ms allows"};
  return {claims->grant, claims->holder, {}};
}

TicketVerdict TicketKey::check(std::string_view shown, Timestamp now) const {
  const std::size_t dot = shown.find('.');
  if (dot == std::string_view::npos) return {{}, {}, "a malformed ticket"};
  return check(shown.substr(0, dot), shown.substr(dot + 1), now);
}

}  // namespace lightq::broker
