/// A member's credit, and its part of the group's sums. Layer: delivery.
#include "delivery/group_member.hpp"

#include <cassert>
#include <utility>

namespace lightq::broker {

GroupMember::GroupMember(SessionConsumer& consumer, const session::ConsumeOpen& asked,
                         const GroupLimits& group_limits, GroupStanding& standing, std::uint64_t user)
    : consumer_(&consumer),
      automatic_(asked.acknowledgement == session::Acknowledgement::automatic),
      ack_timeout_ms_(asked.ack_timeout_ms != 0 ? asked.ack_timeout_ms : limits::ack_timeout_ms_default),
      limits_(group_limits),
      messages_left_(asked.credit_messages),
      bytes_left_(static_cast<std::int64_t>(asked.credit_bytes)),
      standing_(standing),
      user_(user),
      charge_(standing.budget, user),
      place_(standing.turns.add(*this)) {
  ++standing.members_of[user];
  charge_.count_member();
}

GroupMember::~GroupMember() {
  clear();
  standing_.turns.remove(place_, resting_);
  const auto counted = standing_.members_of.find(user_);
  if (--counted->second == 0) standing_.members_of.erase(counted);
}

void GroupMember::wake() {
  if (std::exchange(resting_, false)) standing_.turns.wake(place_);
}

void GroupMember::rest() {
  if (!std::exchange(resting_, true)) standing_.turns.rest(place_);
}

/// Updates the group's sums after a change. Wakes the member if it has fewer messages in flight than before.
void GroupMember::settle() {
  const std::uint64_t messages = outstanding_.messages();
  if (messages < counted_messages_) wake();
  standing_.messages += messages - counted_messages_;
  counted_messages_ = messages;
  charge_.set(outstanding_.ranges() + overdue_.ranges());
  if (overdue_.empty() == std::exchange(counted_overdue_, !overdue_.empty())) {
    if (overdue_.empty()) {
      standing_.overdue.erase(this);
    } else {
      standing_.overdue.insert(this);
    }
  }
  std::optional<Offset> front;
  if (!outstanding_.empty()) front = outstanding_.front().range.begin;
  if (front == counted_front_) return;
  if (counted_front_ && front) {
    auto node = standing_.fronts.extract({*counted_front_, this});
    node.value().first = *front;
    standing_.fronts.insert(std::move(node));
  } else if (front) {
    standing_.fronts.emplace(*front, this);
  } else {
    standing_.fronts.erase({*counted_front_, this});
  }
  counted_front_ = front;
}

bool GroupMember::can_take() const {
  if (!begun_ || consumer_ == nullptr || messages_left() == 0 || bytes_left_ <= 0) return false;
  // The other half of the limit stays free: acknowledgements can split ranges into more.
  return outstanding_.ranges() < limits_.outstanding_ranges_max / 2 && charge_.has_room() &&
         consumer_->writable();
}

bool GroupMember::add_credit(const session::Credit& credit) {
  const std::int64_t bytes_max = static_cast<std::int64_t>(session::credit_bytes_max);
  if (messages_left_ + credit.messages > session::credit_messages_max) return false;
  if (bytes_left_ > bytes_max - static_cast<std::int64_t>(credit.bytes)) return false;
  messages_left_ += credit.messages;
  bytes_left_ += static_cast<std::int64_t>(credit.bytes);
  wake();
  return true;
}

std::uint32_t GroupMember::deliver(const DeliveredSlice& handed, SteadyTime now) {
  const BatchSlice& slice = handed.slice;
  assert(can_take() && slice.count <= messages_left());
  messages_left_ -= slice.count;
  bytes_left_ -= static_cast<std::int64_t>(slice.message_bytes());
  unflushed_ = true;
  consumer_->deliver(handed);
  // The consumer may have left during `deliver`. The group then requeues these with its other messages.
  const std::uint32_t taken = slice.count - (consumer_ != nullptr ? consumer_->refused() : 0);
  if (!automatic_ && taken > 0) {
    const SteadyTime deadline = deadline_after(now, ack_timeout_ms_);
    const Offset begin = slice.range().begin;
    outstanding_.assign({begin, begin + taken}, {handed.delivery, deadline});
    overdue_.cut({begin, begin + taken});
    expect(deadline);
    settle();
  }
  return taken;
}

void GroupMember::extend(OffsetRange range, SteadyTime deadline) {
  outstanding_.update(range, [&](Handing& handing) { handing.deadline = deadline; });
  expect(deadline);
  settle();
}

void GroupMember::flush() {
  if (std::exchange(unflushed_, false) && consumer_ != nullptr) consumer_->flush();
}

}  // namespace lightq::broker
