/// Dispatch, acknowledgement and redelivery in a consumer group. Layer: delivery.
#include "delivery/consumer_group.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include <lightq/base/fetch_ahead.hpp>

#include "delivery/dispatch_turn.hpp"
#include "delivery/plain_turn.hpp"
#include "delivery/state/counted_ranges.hpp"

namespace lightq::broker {

namespace {
constexpr std::size_t plain_turn_bytes = 16 * limits::KiB;  // while there are members
constexpr auto held_back_retry = std::chrono::seconds(1);
// The most ranges that are taken back after their deadline in one call: a few milliseconds' work.
constexpr std::size_t expired_max = 4096;
}  // namespace

// --- Consumers ---

void ConsumerGroup::detach(RecordSink& consumer) {
  const auto found = std::find(plain_consumers_.begin(), plain_consumers_.end(), &consumer);
  if (found == plain_consumers_.end()) return;
  messages_.plain_consumer_left(static_cast<std::size_t>(found - plain_consumers_.begin()));
  plain_consumers_.erase(found);
  plain_turn_ = 0;
  CountedRanges unsent;
  for (const Offset offset : consumer.unsent())
    unsent.push_back({{offset, offset + 1}, DeliveryCounts::by_default});
  returns_.requeue(std::move(unsent));
}

GroupMember& ConsumerGroup::attach(SessionConsumer& consumer, const ConsumeRequest& asked,
                                   std::uint64_t user) {
  members_.push_back(std::make_unique<GroupMember>(consumer, asked, limits_, standing_, user));
  return *members_.back();
}

void ConsumerGroup::detach(GroupMember& member) {
  const auto found = std::find_if(members_.begin(), members_.end(),
                                  [&](const auto& owned) { return owned.get() == &member; });
  if (found == members_.end()) return;
  CountedRanges unfinished;
  member.outstanding().for_each([&](OffsetRange range, const Delivery& delivery) {
    unfinished.push_back({range, returns_.deliveries_of(range, delivery, delivery.started)});
  });
  members_.erase(found);
  returns_.requeue(std::move(unfinished));
}

SessionConsumer* ConsumerGroup::a_consumer() const {
  for (const auto& member : members_) {
    if (member->consumer() != nullptr) return member->consumer();
  }
  return nullptr;
}

// --- Requests of a member ---

namespace {
/// Calls `change` for each range in turn. Returns false once the member's outstanding messages are in too
/// many ranges.
template <typename Change>
bool for_ranges(GroupMember& member, const std::vector<OffsetRange>& ranges, Change&& change) {
  for (const OffsetRange& range : ranges) {
    const std::size_t before = member.outstanding().ranges();
    change(range);
    if (member.outstanding().ranges() > before && member.is_out_of_ranges()) return false;
  }
  return true;
}
}  // namespace

bool ConsumerGroup::acknowledge(GroupMember& member, const Ack& acknowledged) {
  LateRequests late(member);
  const auto done_with = [&](OffsetRange range) {
    member.cut(range, acknowledged.hand_out, [](OffsetRange, const Delivery&) {});
    if (member.has_overdue()) returns_.acknowledge_overdue(member, range, acknowledged.hand_out, late);
  };
  bool fits = true;
  if (acknowledged.before) {
    done_with({Offset{0}, *acknowledged.before});
  } else {
    fits = for_ranges(member, acknowledged.ranges, done_with);
  }
  late.tell();
  return fits;
}

bool ConsumerGroup::reject(GroupMember& member, const Rejection& rejected, SteadyTime now) {
  CountedRanges parts;
  LateRequests late(member);
  const bool fits = for_ranges(member, rejected.ranges, [&](OffsetRange range) {
    member.cut(range, rejected.hand_out, [&](OffsetRange part, const Delivery& delivery) {
      member.lease().note_taken_back();
      parts.push_back({part, returns_.deliveries_of(part, delivery, !rejected.releases)});
    });
    if (!rejected.releases) late.add_overdue(range, rejected.hand_out);  // a release asks for nothing
  });
  if (rejected.delay_ms == 0) {
    returns_.requeue(std::move(parts));
  } else {
    returns_.requeue_delayed(std::move(parts), DueTimes::after(now, rejected.delay_ms));
  }
  late.tell();
  return fits;
}

bool ConsumerGroup::extend(GroupMember& member, const Extension& extended, SteadyTime now) {
  const SteadyTime deadline = deadline_after(now, extended.timeout_ms);
  LateRequests late(member);
  const bool fits = for_ranges(member, extended.ranges, [&](OffsetRange range) {
    member.extend(range, extended.hand_out, deadline,
                  [&](OffsetRange part) { messages_.changed_in_flight(member, part); });
    if (member.lease().is_on()) late.add_overdue(range, extended.hand_out);
  });
  late.tell();
  wait_until(member.next_deadline());
  return fits;
}

bool ConsumerGroup::start(GroupMember& member, const Start& started, SteadyTime now) {
  const auto start_range = [&](OffsetRange range) {
    member.start(range, started.hand_out, now,
                 [&](OffsetRange part) { messages_.changed_in_flight(member, part); });
  };
  bool fits = true;
  if (started.before) {
    start_range({Offset{0}, *started.before});
  } else {
    fits = for_ranges(member, started.ranges, start_range);
  }
  wait_until(member.next_deadline());
  return fits;
}

void ConsumerGroup::seek(Offset offset, RevokeCause cause) {
  ++standing_.seeks;
  messages_.seek(offset);
  read_again_ = {};
  returns_.forget_all(cause);
  for (RecordSink* const consumer : plain_consumers_) consumer->forget_unsent();
}

// --- Dispatch ---

/// A round of members: each member that can take messages receives one slice. See dispatch_turn.
/// Lifetime: everything that it refers to outlives it.
class ConsumerGroup::MemberTurn {
 public:
  MemberTurn(ConsumerGroup& group, const DeliveryContext& context, TurnResult& result)
      : group_(group), context_(context), result_(result), left_(group.standing_.turns.waiting()) {}

  [[nodiscard]] bool has_budget() const { return result_.cost() < context_.cursor_bytes_max; }
  /// Chooses the member at the front of the turn order. Takes members out of the order that cannot take
  /// messages.
  bool can_take() {
    for (; left_ > 0; --left_) {
      GroupMember& member = turns().front();
      ++group_.standing_.members_asked;
      if (member.can_take()) return true;
      member.rest();
    }
    return false;
  }
  [[nodiscard]] SliceLimits limits() { return turns().front().limits(); }
  void take(SliceSource& source, DeliveredSlice& delivered) {
    const BatchSlice& slice = delivered.slice;
    delivered.lost = source.take_untold_loss(group_.loss_told_);
    const bool again = source.is_redelivery();
    source.taken(slice.count, slice.records.size());  // the member may call the group
    result_.count(delivered.delivery, again, group_.deliver(turns().front(), delivered, context_.now));
    result_.bytes += slice.message_bytes();
    turns().next();  // a member keeps its turn until it receives a slice
    any_ = true;
    --left_;
  }
  /// Returns true if a member has received a slice.
  [[nodiscard]] bool any() const { return any_; }

 private:
  [[nodiscard]] MemberTurns<GroupMember>& turns() { return group_.standing_.turns; }

  ConsumerGroup& group_;
  const DeliveryContext& context_;
  TurnResult& result_;
  std::size_t left_;  // members that have not been asked in this round
  bool any_ = false;
};

TurnResult ConsumerGroup::dispatch(log::BatchLog& log, const DeliveryContext& context) {
  TurnResult result;
  tend(context.now);
  bool any_left = next_timer() <= context.now;  // `tend` makes a limited number of messages ready
  result.more = any_left;
  if (paused_ || consumers() == 0) return result;
  if (standing_.any_silent) any_left |= returns_.take_back_from_silent(plain_consumers_);
  if (read_again_ <= context.now) dispatch_available(log, context, result);
  result.more |= any_left;
  // `tend` may have replaced the timer, so it is set even if nothing was read in this call.
  if (read_again_ != SteadyTime{}) wait_until(read_again_);
  for (RecordSink* const consumer : plain_consumers_) consumer->flush();
  redelivered_ += returns_.redeliveries_of(result.redelivered);
  result.held_back = !std::exchange(held_back_, messages_.redelivery().is_full()) && held_back_;
  // Other groups can free memory without any event in this group, so check again later.
  if (held_back_) wait_until(context.now + held_back_retry);
  return result;
}

void ConsumerGroup::dispatch_available(log::BatchLog& log, const DeliveryContext& context,
                                       TurnResult& result) {
  SliceSource source(log, context, messages_.reader(), &messages_.redelivery());
  if (members_.empty()) {
    turn_of_plain(source, context.cursor_bytes_max, result);
  } else {
    bool going = true;
    while (going && result.cost() < context.cursor_bytes_max) going = turn_of_both(source, result);
    result.more |= going;
    for (GroupMember* const member : unflushed_) member->flush();
    unflushed_.clear();
  }
  read_again_ = source.read_again();
}

const Error* ConsumerGroup::unavailable() const {
  if (plain_consumers_.empty() && standing_.turns.waiting() == 0) return nullptr;
  const Error* const redelivery = messages_.redelivery().unavailable();
  return redelivery != nullptr ? redelivery : messages_.reader().unavailable();
}

/// Gives plain consumers a turn. Returns false if none took a message.
bool ConsumerGroup::turn_of_plain(SliceSource& source, std::uint64_t bytes_max, TurnResult& result) {
  const std::uint64_t before = result.deliveries();
  PlainTurn turn(plain_consumers_, plain_turn_, bytes_max, result, &messages_);
  result.more = dispatch_turn(source, turn) == TurnEnd::over;
  return result.deliveries() > before;
}

/// Gives members a turn. Returns false if none took a message.
bool ConsumerGroup::turn_of_members(SliceSource& source, TurnResult& result) {
  MemberTurn turn(*this, source.context(), result);
  dispatch_turn(source, turn);
  return turn.any();
}

/// Gives members and plain consumers a turn each. Returns false if neither took a message. The kind that goes
/// first alternates: otherwise one kind would take every message of a log that has few at a time.
bool ConsumerGroup::turn_of_both(SliceSource& source, TurnResult& result) {
  if (plain_consumers_.empty()) return turn_of_members(source, result);
  const bool plain_begins = plain_begins_;
  const auto plain = [&] { return turn_of_plain(source, plain_turn_bytes, result); };
  bool any = plain_begins ? plain() : turn_of_members(source, result);
  if (any) plain_begins_ = !plain_begins;
  any |= plain_begins ? turn_of_members(source, result) : plain();
  return any;
}

/// Delivers the slice and returns how many messages the member took. The others are requeued.
std::uint32_t ConsumerGroup::deliver(GroupMember& member, DeliveredSlice& delivered, SteadyTime now) {
  const OffsetRange range = delivered.slice.range();
  if (!member.is_unflushed()) unflushed_.push_back(&member);
  const std::uint32_t taken = member.deliver(delivered, now);
  if (!member.is_automatic()) messages_.changed_in_flight(member, {range.begin, range.begin + taken});
  if (taken < delivered.slice.count)
    returns_.requeue({range.begin + taken, range.end}, delivered.delivery - 1);
  wait_until(member.next_deadline());
  return taken;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // supported for classes without virtual bases
struct ConsumerGroup::HotFields {
  static_assert(
      hot_fields_precede(offsetof(ConsumerGroup, messages_),
                         {offsetof(ConsumerGroup, terms_), offsetof(ConsumerGroup, paused_),
                          offsetof(ConsumerGroup, held_back_), offsetof(ConsumerGroup, plain_begins_),
                          offsetof(ConsumerGroup, next_timer_), offsetof(ConsumerGroup, read_again_),
                          offsetof(ConsumerGroup, redelivered_), offsetof(ConsumerGroup, loss_told_),
                          offsetof(ConsumerGroup, plain_consumers_), offsetof(ConsumerGroup, members_),
                          offsetof(ConsumerGroup, unflushed_), offsetof(ConsumerGroup, standing_)}));
};
#pragma GCC diagnostic pop

void ConsumerGroup::fetch_ahead_for_input(unsigned step) const {
  if (members_.empty()) return;
  if (step == 0) return fetch_ahead(members_.data(), sizeof members_.front());
  if (step == 1) return fetch_ahead_hot(*members_.front());
  members_.front()->fetch_ahead_for_input();
}

void ConsumerGroup::expire(SteadyTime now) {
  messages_.redelivery().release(now);
  if (now < next_timer_) return;  // only delayed messages were due
  next_timer_ = never;
  std::size_t ranges_left = expired_max;
  for (const auto& member : members_) {
    returns_.take_overdue(*member, now, ranges_left);
    wait_until(member->next_deadline());
  }
}

}  // namespace lightq::broker
