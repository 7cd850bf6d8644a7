/// A consumer for requests over HTTP. Other requests settle its messages. Layer: requests.
#include "requests/message_holder.hpp"

#include <string>
#include <utility>

#include "delivery/group_member.hpp"
#include "topic/runtime/member_acks.hpp"

namespace lightq::broker {

MessageHolder::MessageHolder(TopicRuntime& topic, const AccessTable& access, Requester requester,
                             std::shared_ptr<CopiedBytes> copies)
    : topic_(&topic),
      access_(access),
      requester_(std::move(requester)),
      topic_id_(topic.definition().id),
      copies_(std::move(copies)) {}

MessageHolder::~MessageHolder() {
  leave();
}

TopicConsumers::Refusal MessageHolder::join(const ConsumeRequest& asked) {
  const auto refusal = topic_->open_consumer(asked, *this, requester_.user());
  if (refusal.code != ClientError::none) topic_ = nullptr;
  return refusal;
}

void MessageHolder::leave() {
  if (topic_ == nullptr) return;
  // The client has received none of these messages, or does not settle them.
  TopicConsumers::ends_by(*this, MemberEnd::closed);
  std::exchange(topic_, nullptr)->detach_consumer(*this);
}

bool MessageHolder::may_copy() const {
  wants_room_ = !copies_->has_room();
  return !wants_room_;
}

void MessageHolder::wake_if_room() {
  if (wants_room_ && topic_ != nullptr && copies_->has_room()) topic_->consumers().wake(*this);
}

bool MessageHolder::is_permitted() const {
  return topic_ != nullptr && requester_.may(access_, *topic_);
}

Result<Settled> MessageHolder::settle(const Settling& settling, std::chrono::steady_clock::time_point now) {
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

void MessageHolder::late(const std::vector<OffsetRange>& ranges) {
  late_.insert(late_.end(), ranges.begin(), ranges.end());
}

std::uint64_t MessageHolder::in_flight() const {
  const GroupMember* const member = membership().member;
  return member == nullptr ? 0 : member->outstanding().messages();
}

std::vector<OffsetRange> MessageHolder::all_in_flight() const {
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

}  // namespace lightq::broker
