/// Messages that one request has received, until they are settled. Layer: requests.
#include "requests/lease.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "delivery/batches/unpacked.hpp"
#include "delivery/group_member.hpp"
#include "requests/request_errors.hpp"

namespace lightq::broker {

Lease::Lease(Parts parts, LeaseWish wish, Done done)
    : MessageHolder(parts.topic, parts.access, std::move(parts.requester), std::move(parts.copies)),
      id_(parts.id),
      changed_(std::move(parts.changed)),
      wish_(std::move(wish)),
      done_(std::move(done)) {
  taken_.held = holding();
}

TopicConsumers::Refusal Lease::begin() {
  return join({.group = wish_.group,
               .acknowledgement = wish_.is_acknowledged ? AckMode::automatic : AckMode::by_consumer,
               .start = wish_.start,
               .credit = {wish_.messages_max, wish_.bytes_max},
               .ack_timeout_ms = static_cast<std::uint32_t>(wish_.lasts.count())});
}

void Lease::give_up() {
  if (!done_) return;
  if (is_admitted_) return answer(Leased{});
  answer(Error{ErrorCode::timeout, "the disk has not stored the new group in time"});
}

void Lease::admitted(const Opened& /*opened*/) {
  is_admitted_ = true;
  changed_();
}

void Lease::take_back() {
  leave();
  changed_();
}

void Lease::look_at_rights() {
  if (is_permitted() || topic() == nullptr) return;
  if (done_) return answer(right_withdrawn());
  take_back();
}

bool Lease::writable() const {
  return done_ && refused_ == 0 && is_permitted() && may_copy();
}

void Lease::deliver(const DeliveredSlice& delivered) {
  taken_.lost += delivered.lost;
  const auto plain = unpacked(delivered.slice);
  if (!plain || !*plain) {
    refused_ = delivered.slice.count;
    return;
  }
  append_copies(**plain, {.delivery = delivered.delivery}, taken_.messages);
  taken_.held->add(delivered.slice.message_bytes());
}

void Lease::flush() {
  if (!done_) return;
  if (!taken_.messages.empty()) return answer(std::move(taken_));
  if (refused_ > 0) answer(Error{ErrorCode::corrupt, "the next messages cannot be read"});
}

void Lease::answer(Result<Leased> result) {
  const Done done = std::exchange(done_, nullptr);
  if (result && topic() != nullptr) {
    result->incarnation = topic()->incarnation();
    result->lease = result->messages.empty() || wish_.is_acknowledged ? 0 : id_;
  }
  if (!result || result->lease == 0) leave();
  done(std::move(result));
  changed_();
}

std::chrono::steady_clock::time_point Lease::check_at(std::chrono::steady_clock::time_point now) const {
  constexpr auto moment = std::chrono::milliseconds(100);
  constexpr auto latest = std::chrono::minutes(10);  // also without a deadline
  const GroupMember* const member = membership().member;
  if (member == nullptr) return now + moment;
  return std::clamp(member->next_deadline(), now, now + latest) + moment;
}

bool Lease::is_needed() const {
  return topic() != nullptr && (done_ || in_flight() > 0);
}

void Lease::end(ClientError code, const std::string& why) {
  forget_topic();
  if (done_) return answer(error_of(code, why));
  changed_();
}

}  // namespace lightq::broker
