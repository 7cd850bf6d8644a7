/// A member's credit, and its part of the group's sums. Layer: delivery.
#include "delivery/group_member.hpp"

#include <cassert>
#include <cstddef>
#include <utility>

#include <lightq/base/fetch_ahead.hpp>

namespace lightq::broker {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // supported for classes without virtual bases
struct GroupMember::HotFields {
  static_assert(hot_fields_precede(offsetof(GroupMember, user_),
                                   {offsetof(GroupMember, begun_), offsetof(GroupMember, unflushed_),
                                    offsetof(GroupMember, automatic_), offsetof(GroupMember, ack_timeout_ms_),
                                    offsetof(GroupMember, consumer_), offsetof(GroupMember, standing_),
                                    offsetof(GroupMember, messages_left_), offsetof(GroupMember, bytes_left_),
                                    offsetof(GroupMember, in_flight_messages_max_),
                                    offsetof(GroupMember, outstanding_ranges_max_),
                                    offsetof(GroupMember, counted_messages_),
                                    offsetof(GroupMember, overdue_ranges_),
                                    offsetof(GroupMember, next_deadline_), offsetof(GroupMember, not_before_),
                                    offsetof(GroupMember, outstanding_), offsetof(GroupMember, charge_)}));
};
#pragma GCC diagnostic pop

GroupMember::GroupMember(SessionConsumer& consumer, const ConsumeRequest& asked,
                         const GroupLimits& group_limits, GroupStanding& standing, std::uint64_t user)
    : automatic_(asked.acknowledgement == AckMode::automatic),
      ack_timeout_ms_(asked.ack_timeout_ms != 0 ? asked.ack_timeout_ms : limits::ack_timeout_ms_default),
      consumer_(&consumer),
      standing_(standing),
      messages_left_(asked.credit.messages),
      bytes_left_(static_cast<std::int64_t>(asked.credit.bytes)),
      in_flight_messages_max_(group_limits.in_flight_messages_max),
      outstanding_ranges_max_(group_limits.outstanding_ranges_max),
      charge_(standing.roll.budget, user),
      user_(user),
      number_(standing.roll.members_joined++),
      counted_(standing.roll.budget == nullptr ? nullptr : &standing.roll.budget->members, user) {
  ++standing.roll.members_of[user];
  counted_.set(1);
}

GroupMember::~GroupMember() {
  clear();
  rest();
  auto& members_of = standing_.roll.members_of;
  const auto counted = members_of.find(user_);
  if (--counted->second == 0) members_of.erase(counted);
}

void GroupMember::wake() {
  standing_.turns.wake(*this);
}

void GroupMember::rest() {
  standing_.turns.rest(*this);
}

/// Updates the group's sums after a change. Wakes the member if it has fewer messages in flight than before.
void GroupMember::settle() {
  const std::uint64_t messages = outstanding_.messages();
  if (messages < counted_messages_) wake();
  if (messages != counted_messages_) ++standing_.changes;
  standing_.messages += messages - counted_messages_;
  counted_messages_ = messages;
  charge_.set(outstanding_.ranges() + overdue_ranges_);
  if (outstanding_.empty()) {
    standing_.fronts.remove(*this);
  } else {
    standing_.fronts.set(*this, outstanding_.front().range.begin);
  }
}

/// Counts the overdue messages after a change. Requires: settle() is called next.
void GroupMember::settle_overdue() {
  const bool had = std::exchange(overdue_ranges_, overdue_.ranges()) != 0;
  if (had == has_overdue()) return;
  if (had) {
    standing_.roll.overdue.erase(this);
  } else {
    standing_.roll.overdue.insert(this);
  }
}

bool GroupMember::can_take() const {
  return can_take_but_for_budget() && charge_.has_room();
}

bool GroupMember::can_take_but_for_budget() const {
  if (!begun_ || consumer_ == nullptr || messages_left() == 0 || bytes_left_ <= 0) return false;
  // The other half of the limit stays free: acknowledgements can split ranges into more.
  return outstanding_.ranges() < outstanding_ranges_max_ / 2 && consumer_->writable();
}

bool GroupMember::add_credit(const Credit& credit) {
  const std::int64_t bytes_max = static_cast<std::int64_t>(Credit::bytes_max);
  if (messages_left_ + credit.messages > Credit::messages_max) return false;
  if (bytes_left_ > bytes_max - static_cast<std::int64_t>(credit.bytes)) return false;
  messages_left_ += credit.messages;
  bytes_left_ += static_cast<std::int64_t>(credit.bytes);
  wake();
  return true;
}

std::uint32_t GroupMember::deliver(const DeliveredSlice& delivered, SteadyTime now) {
  const BatchSlice& slice = delivered.slice;
  // Taking the slice from the redelivery queue may have split its sets, and so used up the budget.
  assert(can_take_but_for_budget() && slice.count <= messages_left());
  messages_left_ -= slice.count;
  bytes_left_ -= static_cast<std::int64_t>(slice.message_bytes());
  unflushed_ = true;
  consumer_->deliver(delivered);
  // The consumer may have left during `deliver`. The group then requeues these with its other messages.
  const std::uint32_t taken = slice.count - (consumer_ != nullptr ? consumer_->refused() : 0);
  if (!automatic_ && taken > 0) {
    const SteadyTime deadline = deadline_after(now, ack_timeout_ms_);
    const Offset begin = slice.range().begin;
    outstanding_.assign({begin, begin + taken}, {delivered.delivery, deadline});
    if (has_overdue()) {
      overdue_.cut({begin, begin + taken});
      settle_overdue();
    }
    expect(deadline);
    settle();
  }
  return taken;
}

void GroupMember::extend(OffsetRange range, SteadyTime deadline) {
  outstanding_.update(range, [&](Delivery& delivery) { delivery.deadline = deadline; });
  expect(deadline);
  settle();
}

void GroupMember::flush() {
  if (std::exchange(unflushed_, false) && consumer_ != nullptr) consumer_->flush();
}

}  // namespace lightq::broker
