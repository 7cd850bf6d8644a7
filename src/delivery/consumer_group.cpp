/// Dispatch, acknowledgement and redelivery in a consumer group. Layer: delivery.
#include "delivery/consumer_group.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include <lightq/base/fetch_ahead.hpp>

#include "delivery/dispatch_turn.hpp"
#include "delivery/plain_turn.hpp"

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
  requeue(std::move(unsent));
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
  member.outstanding().for_each(
      [&](OffsetRange range, const Delivery& delivery) { unfinished.push_back({range, delivery.count}); });
  members_.erase(found);
  requeue(std::move(unfinished));
}

SessionConsumer* ConsumerGroup::a_consumer() const {
  for (const auto& member : members_) {
    if (member->consumer() != nullptr) return member->consumer();
  }
  return nullptr;
}

/// Delivers messages again. A message that the log dropped while a consumer had it becomes lost. A group that
/// does not hold the log counts that only for itself.
void ConsumerGroup::requeue(CountedRanges ranges) {
  if (ranges.empty()) return;
  sort_by_offset(ranges);
  if (terms_.holds) drops_.count_requeued(ranges);
  messages_.redelivery().add(ranges);
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

/// The messages of an acknowledgement that come too late.
struct ConsumerGroup::LateAck {
  std::vector<OffsetRange> ranges;
  /// How many more parts of the redelivery queue it may still finish. A part takes about a microsecond, and a
  /// range that was taken back may have become millions.
  std::size_t parts_left = 1024;

  void add(OffsetRange range) {
    if (range.begin >= range.end) return;
    if (!ranges.empty() && ranges.back().end == range.begin) {
      ranges.back().end = range.end;
    } else {
      ranges.push_back(range);
    }
  }
};

bool ConsumerGroup::acknowledge(GroupMember& member, const Ack& acknowledged) {
  LateAck late;
  const auto done_with = [&](OffsetRange range) {
    member.cut(range);
    if (member.has_overdue()) acknowledge_overdue(member, range, late);
  };
  bool fits = true;
  if (acknowledged.before) {
    done_with({Offset{0}, *acknowledged.before});
  } else {
    fits = for_ranges(member, acknowledged.ranges, done_with);
  }
  if (!late.ranges.empty() && member.consumer() != nullptr) member.consumer()->late(late.ranges);
  return fits;
}

/// Handles the acknowledgement of messages that were taken back from the member. Messages not delivered to
/// another consumer since are finished after all, up to a number of parts. The others are added to `late`.
void ConsumerGroup::acknowledge_overdue(GroupMember& member, OffsetRange range, LateAck& late) {
  member.take_overdue(range, [&](OffsetRange overdue) {
    Offset at = overdue.begin;
    messages_.redelivery().take_ready(overdue, late.parts_left, [&](OffsetRange waiting) {
      late.add({at, waiting.begin});
      at = waiting.end;
    });
    late.add({at, overdue.end});
  });
}

bool ConsumerGroup::reject(GroupMember& member, const Rejection& rejected, SteadyTime now) {
  CountedRanges parts;
  const bool fits = for_ranges(member, rejected.ranges, [&](OffsetRange range) {
    member.cut(range,
               [&](OffsetRange part, const Delivery& delivery) { parts.push_back({part, delivery.count}); });
  });
  if (parts.empty()) return fits;
  if (rejected.delay_ms == 0) {
    requeue(std::move(parts));
    return fits;
  }
  sort_by_offset(parts);
  if (terms_.holds) drops_.count_requeued(parts);
  messages_.redelivery().add_delayed(parts, DueTimes::after(now, rejected.delay_ms));
  return fits;
}

bool ConsumerGroup::extend(GroupMember& member, const Extension& extended, SteadyTime now) {
  const SteadyTime deadline = deadline_after(now, extended.timeout_ms);
  const bool fits =
      for_ranges(member, extended.ranges, [&](OffsetRange range) { member.extend(range, deadline); });
  wait_until(member.next_deadline());
  return fits;
}

void ConsumerGroup::seek(Offset offset) {
  messages_.seek(offset);
  read_again_ = {};
  // Visits only members that have something, because thousands may have nothing.
  const auto clear = [](GroupMember& member) {
    TurnWork::add(TurnWork::member_visited);
    member.clear();
  };
  while (!standing_.fronts.empty()) clear(*standing_.fronts.first().member);
  while (!roll_.overdue.empty()) clear(**roll_.overdue.begin());
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
  [[nodiscard]] SliceLimits limits() {
    const GroupMember& member = turns().front();
    return {
        .records = member.messages_left(), .message_bytes = member.bytes_left(), .codecs = member.codecs()};
  }
  void take(SliceSource& source, DeliveredSlice& delivered) {
    const BatchSlice& slice = delivered.slice;
    delivered.lost = source.take_untold_loss(group_.loss_told_);
    source.taken(slice.count, slice.records.size());  // the member may call the group
    result_.count(delivered.delivery, group_.deliver(turns().front(), delivered, context_.now));
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
  const bool any_due = next_timer() <= context.now;  // `tend` makes a limited number of messages ready
  result.more = any_due;
  if (paused_ || consumers() == 0) return result;
  if (read_again_ <= context.now) dispatch_available(log, context, result);
  result.more |= any_due;
  // `tend` may have replaced the timer, so it is set even if nothing was read in this call.
  if (read_again_ != SteadyTime{}) wait_until(read_again_);
  for (RecordSink* const consumer : plain_consumers_) consumer->flush();
  redelivered_ += result.redelivered;
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
  const std::uint64_t before = result.messages + result.redelivered;
  PlainTurn turn(plain_consumers_, plain_turn_, bytes_max, result, &messages_);
  result.more = dispatch_turn(source, turn) == TurnEnd::over;
  return result.messages + result.redelivered > before;
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
std::uint32_t ConsumerGroup::deliver(GroupMember& member, const DeliveredSlice& delivered, SteadyTime now) {
  const OffsetRange range = delivered.slice.range();
  if (!member.is_unflushed()) unflushed_.push_back(&member);
  const std::uint32_t taken = member.deliver(delivered, now);
  if (!member.is_automatic()) messages_.delivered({range.begin, range.begin + taken}, delivered.delivery);
  if (const OffsetRange refused{range.begin + taken, range.end}; refused.begin < refused.end) {
    if (terms_.holds) drops_.count_requeued(refused);
    messages_.redelivery().add(refused, delivered.delivery - 1);
  }
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
    CountedRanges expired;
    member->expire(now, ranges_left, [&](OffsetRange range, const Delivery& delivery) {
      expired.push_back({range, delivery.count});
    });
    requeue(std::move(expired));
    wait_until(member->next_deadline());
  }
}

}  // namespace lightq::broker
