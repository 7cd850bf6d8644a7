/// Messages that one request has received, until they are settled. Layer: requests.
#include "requests/lease.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "delivery/batches/unpacked.hpp"
#include "delivery/group_member.hpp"
#include "requests/request_errors.hpp"
#include "topic/runtime/member_acks.hpp"

namespace lightq::broker {

namespace {

ReceivedMessage message_of(const BatchView& batch, const BatchView::Records& record) {
  const AttributesView attributes = record.attributes();
  ReceivedMessage message;
  message.stored = batch.append_time();
  message.time = attributes.time();
  message.key = attributes.key();
  for (const Header header : attributes.headers()) message.headers.emplace_back(header.name, header.value);
  message.payload = as_text(record.payload());
  return message;
}

/// Calls `take` with each message of the slice.
template <typename Take>
void for_each_message(const BatchSlice& slice, Take&& take) {
  std::uint32_t index = 0;
  for (auto record = slice.batch.records(); !record.done() && index < slice.first + slice.count;
       record.next(), ++index) {
    if (index < slice.first) continue;
    ReceivedMessage message = message_of(slice.batch, record);
    message.offset = slice.batch.base_offset() + index;
    take(std::move(message));
  }
}

}  // namespace

Lease::Lease(Parts parts, LeaseWish wish, Done done)
    : parts_(std::move(parts)),
      topic_(&parts_.topic),
      topic_id_(parts_.topic.definition().id),
      wish_(std::move(wish)),
      done_(std::move(done)) {}

Lease::~Lease() {
  leave();
}

TopicConsumers::Refusal Lease::begin() {
  const ConsumeRequest asked{
      .group = wish_.group,
      .acknowledgement = wish_.is_acknowledged ? AckMode::automatic : AckMode::by_consumer,
      .start = wish_.start,
      .credit = {wish_.messages_max, wish_.bytes_max},
      .ack_timeout_ms = static_cast<std::uint32_t>(wish_.lasts.count())};
  const auto refusal = topic_->open_consumer(asked, *this, parts_.requester.user());
  if (refusal.code != ClientError::none) topic_ = nullptr;
  return refusal;
}

void Lease::leave() {
  if (topic_ == nullptr) return;
  // The client has received none of these messages, or none is left.
  TopicConsumers::ends_by(*this, MemberEnd::closed);
  std::exchange(topic_, nullptr)->detach_consumer(*this);
}

void Lease::give_up() {
  if (!done_) return;
  if (is_admitted_) return answer(Leased{});
  answer(Error{ErrorCode::timeout, "the disk has not stored the new group in time"});
}

void Lease::admitted(const Opened& /*opened*/) {
  is_admitted_ = true;
  parts_.changed();
}

void Lease::take_back() {
  leave();
  parts_.changed();
}

bool Lease::writable() const {
  return done_ && refused_ == 0 && topic_ != nullptr && parts_.requester.may(parts_.access, *topic_);
}

void Lease::deliver(const DeliveredSlice& delivered) {
  taken_.lost += delivered.lost;
  const auto plain = unpacked(delivered.slice);
  if (!plain || !*plain) {
    refused_ = delivered.slice.count;
    return;
  }
  for_each_message(**plain, [&](ReceivedMessage&& message) {
    message.delivery = delivered.delivery;
    taken_.messages.push_back(std::move(message));
  });
}

void Lease::flush() {
  if (!done_) return;
  if (!taken_.messages.empty()) return answer(std::move(taken_));
  if (refused_ > 0) answer(Error{ErrorCode::corrupt, "the next messages cannot be read"});
}

void Lease::answer(Result<Leased> result) {
  const Done done = std::exchange(done_, nullptr);
  if (result && topic_ != nullptr) {
    result->incarnation = topic_->incarnation();
    result->lease = result->messages.empty() || wish_.is_acknowledged ? 0 : parts_.id;
  }
  if (!result || result->lease == 0) leave();
  done(std::move(result));
  parts_.changed();
}

Result<Settled> Lease::settle(const Settling& settling, std::chrono::steady_clock::time_point now) {
  using What = Settling::What;
  Settled settled;
  if (topic_ == nullptr || membership().member == nullptr) return settled;
  if (settling.ms > topic_->redelivery_ms_max())
    return Error{ErrorCode::invalid_request,
                 "ms: more than redelivery_ms_max, " + std::to_string(topic_->redelivery_ms_max())};
  const std::vector<OffsetRange> ranges = settling.ranges.empty() ? all_in_flight() : settling.ranges;
  const std::uint64_t before = in_flight();
  late_.clear();
  switch (settling.what) {
    case What::acknowledge: acknowledge(*topic_, *this, {.before = {}, .ranges = ranges}); break;
    case What::retry:
      reject(*topic_, *this, {.delay_ms = settling.ms, .ranges = ranges, .kind = RejectKind::retry}, now);
      break;
    case What::release:
      reject(*topic_, *this, {.delay_ms = settling.ms, .ranges = ranges, .kind = RejectKind::release}, now);
      break;
    case What::dead:
      reject(*topic_, *this, {.ranges = ranges, .kind = RejectKind::dead, .reason = settling.reason}, now);
      break;
    case What::extend:
      for (const OffsetRange range : ranges)
        settled.messages += membership().member->outstanding().messages_in(range);
      extend(*topic_, *this, {.timeout_ms = settling.ms, .ranges = ranges}, now);
      break;
  }
  settled.in_flight = in_flight();
  if (settling.what != What::extend) settled.messages = before - settled.in_flight;
  settled.late = std::exchange(late_, {});
  return settled;
}

void Lease::late(const std::vector<OffsetRange>& ranges) {
  late_.insert(late_.end(), ranges.begin(), ranges.end());
}

std::uint64_t Lease::in_flight() const {
  const GroupMember* const member = membership().member;
  return member == nullptr ? 0 : member->outstanding().messages();
}

std::vector<OffsetRange> Lease::all_in_flight() const {
  std::vector<OffsetRange> ranges;
  const auto add = [&](OffsetRange range, const Delivery&) {
    if (!ranges.empty() && ranges.back().end == range.begin) {
      ranges.back().end = range.end;
    } else {
      ranges.push_back(range);
    }
  };
  if (const GroupMember* const member = membership().member) member->outstanding().for_each(add);
  return ranges;
}

std::chrono::steady_clock::time_point Lease::check_at(std::chrono::steady_clock::time_point now) const {
  constexpr auto moment = std::chrono::milliseconds(100);
  constexpr auto latest = std::chrono::minutes(10);  // also without a deadline
  const GroupMember* const member = membership().member;
  if (member == nullptr) return now + moment;
  return std::clamp(member->next_deadline(), now, now + latest) + moment;
}

bool Lease::is_needed() const {
  return topic_ != nullptr && (done_ || in_flight() > 0);
}

void Lease::end(ClientError code, const std::string& why) {
  topic_ = nullptr;
  if (done_) return answer(error_of(code, why));
  parts_.changed();
}

}  // namespace lightq::broker
