/// Takes messages back from a group's consumers, and requeues them. Layer: delivery.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <lightq/base/types.hpp>

#include "delivery/group_failures.hpp"
#include "delivery/group_member.hpp"
#include "delivery/group_messages.hpp"
#include "delivery/record_sink.hpp"
#include "delivery/state/consume_request.hpp"
#include "delivery/state/counted_ranges.hpp"
#include "delivery/state/group_standing.hpp"
#include "delivery/state/group_time.hpp"

namespace lightq::broker {

/// Messages that were dropped to make space before a group of the topic had committed them.
struct Drops {
  Offset before;  ///< all messages below it have been dropped, and counted
  /// Does not include dropped messages that are in flight. Each is added if it is requeued.
  std::uint64_t count = 0;

  /// Counts messages that are requeued, if they have been dropped meanwhile.
  void count_requeued(OffsetRange range) {
    if (range.begin < before) count += distance(range.begin, std::min(range.end, before));
  }
  void count_requeued(const CountedRanges& ranges) {
    for (const CountedRange& each : ranges) count_requeued(each.range);
  }
};

/// Collects messages that are taken back from a member, and tells the member's consumer. On the stack of the
/// function that takes them back. Has no effect for a member without leases. Lifetime: the member outlives
/// it.
class Revocation {
 public:
  Revocation(GroupMember& member, RevokeCause cause) : member_(member), cause_(cause) {}

  /// Adds messages that were taken back. Requires: ranges are added in ascending order.
  void add(OffsetRange range) {
    if (!member_.lease().is_on()) return;
    if (!ranges_.empty() && ranges_.back().end == range.begin) {
      ranges_.back().end = range.end;
    } else {
      ranges_.push_back(range);
    }
  }
  /// Tells the consumer, if any messages were added and it still exists.
  void tell() const {
    if (ranges_.empty() || member_.consumer() == nullptr) return;
    member_.consumer()->revoked(cause_, member_.lease().number_after_all(), ranges_);
  }

 private:
  GroupMember& member_;
  const RevokeCause cause_;
  std::vector<OffsetRange> ranges_;
};

/// Acknowledgements and other requests of a member that came too late. Tells each message once.
class LateRequests {
 public:
  explicit LateRequests(GroupMember& member) : member_(member) {}

  /// Adds the messages of `range` that were taken back from a member with leases, at the hand-out with this
  /// number or a later one.
  void add_overdue(OffsetRange range, std::uint32_t hand_out) {
    if (!member_.has_overdue() || !member_.lease().is_on()) return;
    member_.take_overdue(range, hand_out, [&](OffsetRange part) { add(part); });
  }
  /// Adds messages. Requires: parts are added in ascending order.
  void add(OffsetRange part) {
    if (part.begin >= part.end) return;
    if (!late_.empty() && late_.back().end == part.begin) {
      late_.back().end = part.end;
    } else {
      late_.push_back(part);
    }
  }
  /// Returns how many more parts of the redelivery queue the requests may finish. A part takes about a
  /// microsecond, and a range that was taken back may have become millions.
  [[nodiscard]] std::size_t& parts_left() { return parts_left_; }
  /// Tells the consumer, if any messages were added and it still exists.
  void tell() const {
    if (!late_.empty() && member_.consumer() != nullptr) member_.consumer()->late(late_);
  }

 private:
  GroupMember& member_;
  std::vector<OffsetRange> late_;
  std::size_t parts_left_ = 1024;
};

/// Takes messages back from consumers and puts them into the group's redelivery queue. A returned message has
/// the number of deliveries that count, see Delivery::counted; GroupFailures decides what follows. A message
/// that the log dropped while a consumer had it becomes lost. A group that does not hold the log counts that
/// only for itself. ConsumerGroup owns it and calls it. Thread: the reactor's.
class GroupReturns {
 public:
  /// The parts of the group that it uses. Lifetime: all outlive it.
  struct Parts {
    const GroupTerms& terms;
    GroupStanding& standing;
    GroupMessages& messages;
    GroupFailures& failures;
    Drops& drops;
  };
  explicit GroupReturns(const Parts& parts) : parts_(parts) {}

  /// Requeues messages that no consumer has any more, in ranges in any order. Those that have failed too
  /// often are dead. `deliveries` of each range is the number of deliveries that count.
  void requeue(CountedRanges ranges, const Return& how);
  /// Makes messages dead, because a consumer said so.
  void bury(CountedRanges ranges, const std::string& reason, Timestamp wall);
  /// Returns the number of deliveries with which to requeue messages in flight. `counts`: the present
  /// delivery does. Otherwise the next delivery is no redelivery, see redeliveries_of.
  [[nodiscard]] std::uint32_t deliveries_of(OffsetRange range, const Delivery& delivery, bool counts) {
    if (counts) return delivery.count;
    if (delivery.count > 1) uncounted_ += distance(range.begin, range.end);
    return delivery.count - 1;
  }
  /// Returns how many of `again` deliveries with a number above 1 are new redeliveries. The others repeat a
  /// delivery that was counted and then did not count.
  [[nodiscard]] std::uint64_t redeliveries_of(std::uint64_t again) {
    const std::uint64_t counted_before = std::min(again, uncounted_);
    uncounted_ -= counted_before;
    return again - counted_before;
  }
  /// Requeues the member's messages that are past their deadline, in at most `ranges_left` ranges. See
  /// GroupMember::expire.
  void take_overdue(GroupMember& member, SteadyTime now, std::size_t& ranges_left);
  /// Handles the acknowledgement of messages that were taken back from the member. Without leases, messages
  /// not delivered to another consumer since are finished after all, in as many parts as `late` permits, also
  /// those that are delayed or dead, but none under way to a dead-letter topic. The others are added to
  /// `late`.
  void acknowledge_overdue(GroupMember& member, OffsetRange range, std::uint32_t hand_out,
                           LateRequests& late);
  /// Tells a member's consumer, if it has leases, that all its messages are revoked. Takes nothing back: the
  /// group does that when the member is detached, which follows.
  void tell_end(GroupMember& member, RevokeCause cause);
  /// Forgets the messages in flight and the overdue ones of all members, because the group's position moves.
  void forget_all(RevokeCause cause);
  /// Takes back from silent members what they have not started, if another consumer can take messages. Does a
  /// limited amount of work. Returns true if there may be more. `plain`: the group's plain consumers.
  bool take_back_from_silent(const std::vector<RecordSink*>& plain, SteadyTime now);

 private:
  void prepare(CountedRanges& ranges);
  void forget_settled(GroupMember& member);
  template <typename Picks>
  void take_back(GroupMember& member, RevokeCause cause, SteadyTime now, Picks&& picks);
  bool any_can_take(const std::vector<RecordSink*>& plain);

  const Parts parts_;
  // Messages that wait for another delivery with the same number, not 1. Which ones is not known.
  std::uint64_t uncounted_ = 0;
};

}  // namespace lightq::broker
