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
  static_assert(hot_fields_precede(
      offsetof(GroupMember, user_),
      {offsetof(GroupMember, begun_), offsetof(GroupMember, unflushed_), offsetof(GroupMember, automatic_),
       offsetof(GroupMember, ack_timeout_ms_), offsetof(GroupMember, consumer_),
       offsetof(GroupMember, standing_), offsetof(GroupMember, messages_left_),
       offsetof(GroupMember, bytes_left_), offsetof(GroupMember, in_flight_messages_max_),
       offsetof(GroupMember, outstanding_ranges_max_), offsetof(GroupMember, counted_messages_),
       offsetof(GroupMember, overdue_ranges_), offsetof(GroupMember, next_deadline_),
       offsetof(GroupMember, not_before_), offsetof(GroupMember, outstanding_),
       offsetof(GroupMember, charge_), offsetof(GroupMember, lease_)}));
};
#pragma GCC diagnostic pop

namespace {
std::uint32_t timeout_of(const ConsumeRequest& asked, const GroupLimits& group_limits) {
  if (asked.ack_timeout_ms != 0) return asked.ack_timeout_ms;
  return asked.leases ? group_limits.processing_timeout_ms : limits::ack_timeout_ms_default;
}
}  // namespace

GroupMember::GroupMember(SessionConsumer& consumer, const ConsumeRequest& asked,
                         const GroupLimits& group_limits, GroupStanding& standing, std::uint64_t user)
    : automatic_(asked.acknowledgement == AckMode::automatic),
      ack_timeout_ms_(timeout_of(asked, group_limits)),
      consumer_(&consumer),
      standing_(standing),
      messages_left_(asked.credit.messages),
      bytes_left_(static_cast<std::int64_t>(asked.credit.bytes)),
      in_flight_messages_max_(group_limits.in_flight_messages_max),
      outstanding_ranges_max_(group_limits.outstanding_ranges_max),
      charge_(standing.roll.budget, user),
      lease_(asked.leases, standing.seeks),
      user_(user),
      number_(standing.roll.members_joined++),
      counted_(standing.roll.budget == nullptr ? nullptr : &standing.roll.budget->members, user) {
  ++standing.roll.members_of[user];
  counted_.set(1);
}

GroupMember::~GroupMember() {
  outstanding_.clear();
  forget_overdue();
  set_silent(false);
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

/// Updates the group's sums after a change. Wakes the member if it has fewer messages in flight than before,
/// or fewer ranges.
void GroupMember::settle() {
  const std::uint64_t messages = outstanding_.messages();
  const std::size_t ranges = outstanding_.ranges() + overdue_ranges_;
  if (messages < counted_messages_ || ranges < charge_.ranges()) wake();
  if (messages != counted_messages_) ++standing_.changes;
  standing_.messages += messages - counted_messages_;
  counted_messages_ = messages;
  charge_.set(ranges);
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

bool GroupMember::can_take() {
  if (!can_take_but_for_budget()) return false;
  if (!charge_.has_room() && has_overdue()) forget_overdue();
  return charge_.has_room();
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

std::uint32_t GroupMember::deliver(DeliveredSlice& delivered, SteadyTime now) {
  const BatchSlice& slice = delivered.slice;
  // Taking the slice from the redelivery queue may have split its sets, and so used up the budget.
  assert(can_take_but_for_budget() && slice.count <= messages_left());
  messages_left_ -= slice.count;
  bytes_left_ -= static_cast<std::int64_t>(slice.message_bytes());
  unflushed_ = true;
  delivered.hand_out = lease_.number_of_delivery(standing_.seeks);
  consumer_->deliver(delivered);
  // The consumer may have left during `deliver`. The group then requeues these with its other messages.
  const std::uint32_t taken = slice.count - (consumer_ != nullptr ? consumer_->refused() : 0);
  if (!automatic_ && taken > 0) {
    const Offset begin = slice.range().begin;
    hold({begin, begin + taken}, {.count = delivered.delivery,
                                  .hand_out = delivered.hand_out,
                                  .deadline = deadline_of(now, ack_timeout_ms_)});
  }
  return taken;
}

/// Records messages that the consumer has taken. `delivery` is as if the program had started them.
void GroupMember::hold(OffsetRange range, const Delivery& delivery) {
  OffsetRange started = range;
  if (lease_.is_on()) {
    // A message that has failed before is started only when the client names it: a crash counts against it.
    started = delivery.count == 1 ? lease_.started_of(range) : OffsetRange{range.begin, range.begin};
    const Delivery waits{delivery.count, delivery.hand_out, never, false};
    outstanding_.assign({range.begin, started.begin}, waits);
    outstanding_.assign({started.end, range.end}, waits);
  } else if (has_overdue()) {
    overdue_.cut(range);
    settle_overdue();
  }
  if (started.begin < started.end) {
    outstanding_.assign(started, delivery);
    expect(delivery.deadline);
  }
  settle();
}

void GroupMember::set_silent(bool silent) {
  auto& of_group = standing_.roll.silent;
  if (silent && lease_.is_on()) {
    of_group.insert(this);
  } else {
    of_group.erase(this);
  }
  standing_.any_silent = !of_group.empty();
}

void GroupMember::flush() {
  if (std::exchange(unflushed_, false) && consumer_ != nullptr) consumer_->flush();
}

protocol::MemberStats stats_of(const GroupMember& member, const ClockReading& clocks) {
  protocol::MemberStats stats;
  stats.number = member.number();
  stats.user = member.user();
  stats.in_flight = member.outstanding().messages();
  stats.credit_messages = member.messages_left();
  stats.credit_bytes = member.limits().message_bytes;
  if (member.consumer() == nullptr) return stats;
  const SessionConsumer::Life life = member.consumer()->life();
  stats.since_ms = static_cast<std::uint64_t>(clocks.wall_time_of(life.joined).us / 1000);
  if (life.heard) {
    const auto silence = std::max(clocks.steady - *life.heard, SteadyTime::duration{});
    stats.heard_ms =
        static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::milliseconds>(silence).count());
  }
  return stats;
}

}  // namespace lightq::broker
