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
constexpr std::size_t overdue_max = 4096;
}  // namespace

// --- Consumers ---

void ConsumerGroup::detach(RecordSink& consumer) {
  const auto found = std::find(plain_consumers_.begin(), plain_consumers_.end(), &consumer);
  if (found == plain_consumers_.end()) return;
  messages_.plain_consumer_left(static_cast<std::size_t>(found - plain_consumers_.begin()));
  plain_consumers_.erase(found);
  plain_turn_ = 0;
  CountedRanges unsent;
  for (const Offset offset : consumer.unsent()) {
    const OffsetRange message{offset, offset + 1};
    unsent.push_back({message, returns_.deliveries_of(message, messages_.delivery_of_unsent(offset), false)});
  }
  standing_.acknowledged -= unsent.size();
  returns_.requeue(std::move(unsent), {.cause = ReturnCause::released});
}

GroupMember& ConsumerGroup::attach(SessionConsumer& consumer, const ConsumeRequest& asked,
                                   std::uint64_t user) {
  GroupLimits member_limits = limits_;
  if (const auto timeout_ms = failures_.settings().processing_timeout_ms)
    member_limits.processing_timeout_ms = *timeout_ms;
  members_.push_back(std::make_unique<GroupMember>(consumer, asked, member_limits, standing_, user));
  return *members_.back();
}

void ConsumerGroup::detach(GroupMember& member, SteadyTime now) {
  const auto found = std::find_if(members_.begin(), members_.end(),
                                  [&](const auto& owned) { return owned.get() == &member; });
  if (found == members_.end()) return;
  CountedRanges lost;
  CountedRanges released;
  std::uint64_t started = 0;
  const bool stops = member.end() == MemberEnd::broker_stops;
  const bool releases = stops || (member.end() == MemberEnd::closed && !member.lease().is_on());
  member.outstanding().for_each([&](OffsetRange range, const Delivery& delivery) {
    if (stops) {
      released.push_back({range, messages_.saved_count(delivery)});
    } else if (delivery.started && !releases) {
      started += distance(range.begin, range.end);
      lost.push_back({range, returns_.deliveries_of(range, delivery, true)});
    } else {
      released.push_back({range, returns_.deliveries_of(range, delivery, false)});
    }
  });
  draining_.left(member);
  members_.erase(found);
  returns_.requeue(std::move(released), {.cause = ReturnCause::unstarted, .now = now});
  returns_.requeue(std::move(lost), {.cause = ReturnCause::lost, .now = now, .several = started > 1});
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
    member.cut(range, acknowledged.hand_out, [&](OffsetRange part, const Delivery& delivery) {
      if (delivery.count > 1 && has_settings_) failures_.deaths().forget_failures(part);
    });
    if (member.has_overdue()) returns_.acknowledge_overdue(member, range, acknowledged.hand_out, late);
  };
  const std::uint64_t before = standing_.messages;
  bool fits = true;
  if (acknowledged.before) {
    done_with({Offset{0}, *acknowledged.before});
  } else {
    fits = for_ranges(member, acknowledged.ranges, done_with);
  }
  standing_.acknowledged += before - standing_.messages;
  late.tell();
  return fits;
}

bool ConsumerGroup::reject(GroupMember& member, const Rejection& rejected, SteadyTime now, Timestamp wall) {
  CountedRanges parts;
  LateRequests late(member);
  const bool fits = for_ranges(member, rejected.ranges, [&](OffsetRange range) {
    member.cut(range, rejected.hand_out, [&](OffsetRange part, const Delivery& delivery) {
      member.lease().note_taken_back();
      parts.push_back({part, returns_.deliveries_of(part, delivery, rejected.kind != RejectKind::release)});
    });
    // A release asks for nothing, so it is never late.
    if (rejected.kind != RejectKind::release) late.add_overdue(range, rejected.hand_out);
  });
  if (rejected.kind == RejectKind::dead) {
    returns_.bury(std::move(parts), rejected.reason,
                  wall == Timestamp{} ? messages_.clocks().wall_time_of(now) : wall);
  } else {
    const bool releases = rejected.kind == RejectKind::release;
    returns_.requeue(std::move(parts), {.cause = releases ? ReturnCause::released : ReturnCause::rejected,
                                        .now = now,
                                        .delay_ms = rejected.delay_ms});
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
  roll_.moves.add({committed(), next(), offset, cause == RevokeCause::purge});
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
  /// messages. If messages wait that are delivered alone, members that cannot take these are asked last:
  /// there may be nothing else, which would end the turn.
  bool can_take() {
    for (;;) {
      for (; left_ > 0; --left_) {
        GroupMember& member = turns().front();
        ++group_.standing_.members_asked;
        if (!member.can_take() || (group_.has_settings_ && must_wait(member))) {
          member.rest();
        } else if (group_.has_settings_ && must_defer(member)) {
          ++deferred_;
          turns().next();
        } else {
          return true;
        }
      }
      if (deferred_ == 0) return false;
      left_ = std::exchange(deferred_, 0);
      defers_ = false;
    }
  }
  [[nodiscard]] SliceLimits limits() {
    GroupMember& member = turns().front();
    SliceLimits limits = member.limits();
    if (group_.has_settings_) limits.alone = alone_of(member);
    return limits;
  }
  void take(SliceSource& source, DeliveredSlice& delivered) {
    const BatchSlice& slice = delivered.slice;
    delivered.lost = source.take_untold_loss(group_.loss_told_);
    const bool again = source.is_redelivery();
    source.taken(slice.count, slice.records.size());  // the member may call the group
    GroupMember& member = turns().front();
    group_.draining_.taken_by(member);
    if (group_.has_settings_ && delivered.delivery > group_.failures_.rules().alone_from())
      group_.draining_.suspect_taken(context_.now);
    result_.count(delivered.delivery, again, deliver(member, delivered));
    result_.bytes += slice.message_bytes();
    turns().next();  // a member keeps its turn until it receives a slice
    any_ = true;
    --left_;
  }
  /// Returns true if a member has received a slice.
  [[nodiscard]] bool any() const { return any_; }

 private:
  [[nodiscard]] MemberTurns<GroupMember>& turns() { return group_.standing_.turns; }
  [[nodiscard]] Alone alone_of(GroupMember& member) const {
    if (group_.draining_.is_by(member)) return Alone::takes_first;
    return member.lease().is_on() || member.outstanding().empty() ? Alone::takes : Alone::refuses;
  }
  /// Returns true if the member gets no message now: it has one that is alone, or must finish its messages
  /// first, because one waits that is to be alone. One member at a time does that (Draining). A member with
  /// leases takes such messages at any time, because it names those that it has started.
  [[nodiscard]] bool must_wait(GroupMember& member) {
    const RangeMap<Delivery>& outstanding = member.outstanding();
    if (member.lease().is_on() || outstanding.empty()) return false;
    const std::uint32_t alone_from = group_.failures_.rules().alone_from();
    if (outstanding.messages() == 1 && outstanding.front().value.count > alone_from) return true;
    if (!group_.messages_.redelivery().has_alone()) return false;
    const bool must_finish = group_.draining_.must_finish(member, context_.now, alone_from);
    group_.wait_until(group_.draining_.next());
    return must_finish;
  }
  [[nodiscard]] bool must_defer(GroupMember& member) const {
    return defers_ && group_.messages_.redelivery().has_alone() && alone_of(member) == Alone::refuses;
  }
  /// Delivers the slice and returns how many messages the member took. The others are requeued.
  std::uint32_t deliver(GroupMember& member, DeliveredSlice& delivered) {
    const OffsetRange range = delivered.slice.range();
    if (!member.is_unflushed()) group_.unflushed_.push_back(&member);
    const std::uint32_t taken = member.deliver(delivered, context_.now);
    if (!member.is_automatic()) {
      group_.messages_.changed_in_flight(member, {range.begin, range.begin + taken});
    } else {
      group_.standing_.acknowledged += taken;
    }
    if (taken < delivered.slice.count)
      group_.returns_.requeue({{{range.begin + taken, range.end}, delivered.delivery - 1}},
                              {.cause = ReturnCause::untaken, .now = context_.now});
    group_.wait_until(member.next_deadline());
    return taken;
  }

  ConsumerGroup& group_;
  const DeliveryContext& context_;
  TurnResult& result_;
  std::size_t left_;          // members that have not been asked in this round
  std::size_t deferred_ = 0;  // members that are asked when the others have been
  bool defers_ = true;
  bool any_ = false;
};

/// The turns of one dispatch. Lifetime: everything that it refers to outlives it.
class ConsumerGroup::Turns {
 public:
  Turns(ConsumerGroup& group, SliceSource& source, TurnResult& result)
      : group_(group), source_(source), result_(result) {}

  /// Follows a group that has settings or dead messages. Returns false if it must not deliver anything now.
  static bool may_deliver(ConsumerGroup& group, const DeliveryContext& context) {
    group.failures_.sample(context.now);
    if (!group.paused_ && group.failures_.is_failing()) group.set_paused(true, PauseCause::failing);
    return !group.failures_.is_walking() && !group.failures_.deaths().is_outbox_full();
  }

  /// Ends the messages that the turns have found expired.
  static void settle_expired(ConsumerGroup& group, const SliceSource& source, TurnResult& result) {
    result.more |= source.has_skipped();
    CountedRanges expired = group.messages_.redelivery().take_expired();
    sort_by_offset(expired);
    group.failures_.expired().end(expired);
    if (!group.messages_.expiry().keeps()) return;
    const Offset before = group.next();
    result.more |= group.failures_.expired().tend();
    result.more |= before < group.next();
  }

  /// Delivers until no consumer takes more, the log ends, or the budget is used up.
  void run() {
    const std::uint64_t bytes_max = source_.context().cursor_bytes_max;
    if (group_.members_.empty()) {
      plain(bytes_max);
    } else {
      bool going = true;
      while (going && result_.cost() < bytes_max) going = both();
      result_.more |= going;
      for (GroupMember* const member : group_.unflushed_) member->flush();
      group_.unflushed_.clear();
    }
    if (!group_.has_settings_ || group_.messages_.redelivery().has_alone()) return;
    result_.more |= group_.draining_.end();  // another took the message that it waited for
  }

 private:
  /// Gives plain consumers a turn. Returns false if none took a message.
  bool plain(std::uint64_t bytes_max) {
    const std::uint64_t before = result_.deliveries();
    PlainTurn turn(group_.plain_consumers_, group_.plain_turn_, bytes_max, result_, &group_.messages_);
    result_.more = dispatch_turn(source_, turn) == TurnEnd::over;
    const std::uint64_t taken = result_.deliveries() - before;
    group_.standing_.acknowledged += taken;
    return taken != 0;
  }
  /// Gives members a turn. Returns false if none took a message.
  bool members() {
    MemberTurn turn(group_, source_.context(), result_);
    dispatch_turn(source_, turn);
    return turn.any();
  }
  /// Gives members and plain consumers a turn each. Returns false if neither took a message. The kind that
  /// goes first alternates: otherwise one kind would take every message of a log that has few at a time.
  bool both() {
    if (group_.plain_consumers_.empty()) return members();
    const bool plain_begins = group_.plain_begins_;
    bool any = plain_begins ? plain(plain_turn_bytes) : members();
    if (any) group_.plain_begins_ = !plain_begins;
    any |= plain_begins ? members() : plain(plain_turn_bytes);
    return any;
  }

  ConsumerGroup& group_;
  SliceSource& source_;
  TurnResult& result_;
};

TurnResult ConsumerGroup::dispatch(log::BatchLog& log, const DeliveryContext& context) {
  TurnResult result;
  tend(context);
  bool any_left = next_timer() <= context.now;  // `tend` makes a limited number of messages ready
  result.more = any_left;
  if ((has_settings_ || messages_.redelivery().has_dead()) && !Turns::may_deliver(*this, context))
    return result;
  if (paused_ || consumers() == 0) return result;
  if (has_settings_) {
    draining_.pass_on(context.now, failures_.rules().alone_from());
    wait_until(draining_.next());
  }
  if (standing_.any_silent) any_left |= returns_.take_back_from_silent(plain_consumers_, context.now);
  if (read_again_ <= context.now) {
    SliceSource source(log, context, messages_.reader(), &messages_.redelivery());
    Turns(*this, source, result).run();
    read_again_ = source.read_again();
    if (context.expiry != nullptr) [[unlikely]]
      Turns::settle_expired(*this, source, result);
  }
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

const Error* ConsumerGroup::unavailable() const {
  if (plain_consumers_.empty() && standing_.turns.waiting() == 0) return nullptr;
  const Error* const redelivery = messages_.redelivery().unavailable();
  return redelivery != nullptr ? redelivery : messages_.reader().unavailable();
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // supported for classes without virtual bases
struct ConsumerGroup::HotFields {
  static_assert(
      hot_fields_precede(offsetof(ConsumerGroup, messages_),
                         {offsetof(ConsumerGroup, terms_), offsetof(ConsumerGroup, paused_),
                          offsetof(ConsumerGroup, held_back_), offsetof(ConsumerGroup, plain_begins_),
                          offsetof(ConsumerGroup, has_settings_), offsetof(ConsumerGroup, paused_by_),
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

void ConsumerGroup::tend(const DeliveryContext& context) {
  if (has_settings_) messages_.set_clocks({context.now, context.wall});
  if (next_timer() <= context.now) pass_deadlines(context.now);
  if (context.expiry == nullptr) return;
  if (failures_.expired().tend()) wait_until({});
  if (failures_.expired().wait_for_room()) wait_until(context.now + held_back_retry);
}

void ConsumerGroup::pass_deadlines(SteadyTime now) {
  messages_.redelivery().release(now);
  if (now < next_timer_) return;  // only delayed messages were due
  next_timer_ = never;
  std::size_t ranges_left = overdue_max;
  for (const auto& member : members_) {
    returns_.take_overdue(*member, now, ranges_left);
    wait_until(member->next_deadline());
  }
  // `dispatch` passes the draining on, unless the group is paused.
  if (has_settings_) wait_until(std::max(draining_.next(), now + Draining::time_min));
  if (!failures_.is_walking()) return;
  failures_.walk(now);
  if (failures_.is_walking()) wait_until(now);
}

// --- Settings and state ---

bool ConsumerGroup::set_settings(const GroupSetup& setup) {
  const bool has_parked = failures_.set(setup);
  has_settings_ = !is_default(setup);
  if (!failures_.rules().limits_attempts()) draining_.end();
  if (failures_.is_walking()) wait_until({});
  // Some rest because of messages that are alone by the former settings.
  for (const auto& member : members_) member->wake();
  return has_parked;
}

void ConsumerGroup::restore(const log::Unfinished& saved, const ClockReading& clocks) {
  messages_.restore(saved, clocks);
  if (!has_settings_) return;
  failures_.begin_walk();
  wait_until({});
}

void ConsumerGroup::set_paused(bool paused, PauseCause cause) {
  if (paused_ && !paused) failures_.resumed();
  paused_ = paused;
  paused_by_ = paused ? cause : PauseCause::none;
}

PauseCause ConsumerGroup::pause_cause() const {
  if (paused_) return paused_by_;
  return failures_.deaths().is_outbox_full() ? PauseCause::dead_letters : PauseCause::none;
}

}  // namespace lightq::broker
