/// The messages of a group that wait for another delivery. Layer: delivery.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include <lightq/base/types.hpp>

#include "admission/turn_work.hpp"
#include "delivery/state/counted_ranges.hpp"
#include "delivery/state/delivery_counts.hpp"
#include "delivery/state/due_times.hpp"
#include "delivery/state/group_time.hpp"
#include "delivery/state/set_merge.hpp"
#include "log/offsets/offset_set.hpp"
#include "log/saved_state/unfinished.hpp"

namespace lightq::broker {

/// Keeps *ready* messages, which can be delivered now, *alone* ones, which can be delivered now but with no
/// other message, and *delayed* ones, which become ready or alone when they are due; and the number of
/// deliveries of each. All in sets of offsets, so that a million scattered messages take a few megabytes. No
/// message is in two of these states. A copy costs time by the number of sets, and may be read and destroyed
/// on another thread.
/// Example: of the messages 3 to 9, message 4 is ready and was delivered twice; 6 to 8 are due in a minute.
/// Then ready() is {4}, delayed() is [6, 9), counts() has 4 with 2 deliveries, and due() has one time.
class WaitingMessages {
 public:
  /// The messages to deliver next, which have the same number of deliveries.
  struct Front {
    OffsetRange range;
    std::uint32_t deliveries = 0;
  };
  /// The number of deliveries that no message has.
  static constexpr std::uint32_t no_deliveries = std::numeric_limits<std::uint32_t>::max();

  /// Delivers messages alone that were delivered so often, or more often. Has an effect on messages that are
  /// added later, or sorted again.
  void set_alone_from(std::uint32_t deliveries) { alone_from_ = deliveries; }
  /// Continues a walk over all messages from `from` on: sorts ready and alone messages again, and removes
  /// those that were delivered `dead_from` times or more often, which it adds to `dead`. Does a limited
  /// amount of work. Returns where to continue, or nothing at the end.
  std::optional<Offset> sort_again(Offset from, std::uint32_t dead_from, std::vector<CountedRange>& dead);
  /// Delivers the messages of the range in slices of one. Requires: they were added.
  void set_single(OffsetRange range);

  /// Adds messages that can be delivered again immediately. `deliveries` is the number of deliveries so far.
  /// Returns how many messages it has ignored, because they are below given_up_before(). Requires: none of
  /// them waits already.
  std::uint64_t add(OffsetRange range, std::uint32_t deliveries);
  /// Adds messages that are not delivered again before `due`. Returns and requires the same as `add`.
  std::uint64_t add_delayed(OffsetRange range, std::uint32_t deliveries, SteadyTime due);
  /// Adds many messages at once, which takes less time for each. Returns and requires the same as for one
  /// range. Requires also: the ranges ascend and do not overlap.
  std::uint64_t add(std::span<const CountedRange> ranges);
  std::uint64_t add_delayed(std::span<const CountedRange> ranges, SteadyTime due);
  /// Replaces all by the messages that were saved. `clocks`: read for restoring.
  void restore(const log::Unfinished& saved, const ClockReading& clocks);

  /// Makes messages ready that are due, in a limited number of ranges. Returns when to call it again: `now`
  /// if there are more.
  SteadyTime release(SteadyTime now);

  [[nodiscard]] bool empty() const { return ready_.empty() && delayed_.empty() && alone_.empty(); }
  /// Returns the lowest offset. Requires: not empty().
  [[nodiscard]] Offset first() const;
  /// Returns the lowest messages that are ready, or, if `from_alone`, alone. Requires: there are some.
  [[nodiscard]] Front front(bool from_alone = false) const;
  /// Removes the lowest parts of `range` that wait in any state, at most `parts_left` of them, and returns
  /// them in ascending order. Subtracts their number from `parts_left`. They are finished.
  std::vector<OffsetRange> finish(OffsetRange range, std::size_t& parts_left);
  /// Removes messages of `wanted` from `from` on that wait in any state, and adds them to `taken` with their
  /// numbers of deliveries. Visits about `parts_max` parts. Returns where to continue, or nothing at the end.
  std::optional<Offset> take(const log::OffsetSet& wanted, Offset from, std::size_t parts_max,
                             CountedRanges& taken);
  /// Returns the first run of ready, alone or delayed messages that ends after `offset`, or nothing.
  [[nodiscard]] std::optional<OffsetRange> first_behind(Offset offset) const {
    const auto run = deliverable_behind(offset);
    const auto delayed = delayed_.first_behind(offset);
    return delayed && (!run || delayed->begin < run->begin) ? delayed : run;
  }
  /// Removes all messages of `range`, which are all ready, or all alone.
  void remove_ready(OffsetRange range) {
    if (range.begin >= range.end) return;
    TurnWork::add(TurnWork::set_changed);
    ready_.remove(range);
    if (!alone_.empty()) alone_.remove(range);
    if (!single_.empty()) single_.remove(range);
    counts_.remove(range);
  }
  /// Removes all messages below `first` but those in `carried`, and ignores such messages from now on. Looks
  /// only at messages at `from` or behind it. Returns how many messages it has removed.
  std::uint64_t give_up_before(Offset first, const log::OffsetSet& carried = {}, Offset from = {});
  /// Ignores messages below `first` from now on, but for those in `carried`; null: none. Requires: no message
  /// below `first` waits, unless it is in `carried`; or give_up_before() had this `first`.
  void ignore_before(Offset first, const log::OffsetSet* carried) {
    if (first <= given_up_before_) return;
    given_up_before_ = first;
    carried_ = carried == nullptr ? log::OffsetSet() : *carried;
  }
  void clear();

  [[nodiscard]] const log::OffsetSet& ready() const { return ready_; }
  [[nodiscard]] const log::OffsetSet& alone() const { return alone_; }
  [[nodiscard]] const log::OffsetSet& delayed() const { return delayed_; }
  /// Returns the number of deliveries of all messages.
  [[nodiscard]] const DeliveryCounts& counts() const { return counts_; }
  /// Returns the due times of the delayed messages. May also contain messages below due_from(), which were
  /// given up.
  [[nodiscard]] const DueTimes& due() const { return due_; }
  /// Returns the offset from which due() has delayed messages only. None of these is below.
  [[nodiscard]] Offset due_from() const { return due_has_given_up_ ? given_up_before_ : Offset{0}; }
  /// Returns the offset below which messages are ignored.
  [[nodiscard]] Offset given_up_before() const { return given_up_before_; }
  /// Calls `kept(range)` and `gone(range)` for the parts of `range` that are not given up, and that are, in
  /// ascending order.
  template <typename Kept, typename Gone>
  void split(OffsetRange range, Kept&& kept, Gone&& gone) const {
    const OffsetRange behind = kept_of(range);
    Offset at = range.begin;
    for_gaps(carried_, {at, behind.begin}, [&](OffsetRange gap) {
      if (at < gap.begin) kept(OffsetRange{at, gap.begin});
      gone(gap);
      at = gap.end;
    });
    if (at < behind.begin) kept(OffsetRange{at, behind.begin});
    if (behind.begin < behind.end) kept(behind);
  }
  /// Returns the heap memory in bytes.
  [[nodiscard]] std::size_t bytes() const {
    return ready_.bytes() + alone_.bytes() + delayed_.bytes() + single_.bytes() + counts_.bytes() +
           due_.bytes();
  }

 private:
  /// The part of added ranges that is not given up.
  struct Kept {
    CountedRanges counted;
    std::vector<OffsetRange> ranges;  ///< the same, regardless of the number of deliveries
    std::uint64_t given_up = 0;       ///< messages
  };

  /// Returns the part of `range` that is not given up.
  [[nodiscard]] OffsetRange kept_of(OffsetRange range) const;
  /// Returns true if a part of `range` may be given up although another part before it is not.
  [[nodiscard]] bool is_cut(OffsetRange range) const {
    return !carried_.empty() && range.begin < given_up_before_;
  }
  [[nodiscard]] Kept kept_of(std::span<const CountedRange> ranges) const;
  /// Returns the first run that ends after `offset`, of the ready or of the alone messages.
  [[nodiscard]] std::optional<OffsetRange> deliverable_behind(Offset offset) const {
    const auto ready = ready_.first_behind(offset);
    if (alone_.empty()) return ready;
    const auto alone = alone_.first_behind(offset);
    return !alone || (ready && ready->begin < alone->begin) ? ready : alone;
  }
  void make_deliverable(OffsetRange range);
  static void count_freed(std::size_t bytes);
  void sweep_due();
  void drop_given_up_due();
  void clear_due();

  log::OffsetSet ready_;
  log::OffsetSet alone_;
  log::OffsetSet delayed_;
  log::OffsetSet single_;  // some of all messages
  DeliveryCounts counts_;
  DueTimes due_;
  bool due_has_given_up_ = false;  // messages below given_up_before_. None of delayed_ is there then
  Offset given_up_before_;
  log::OffsetSet carried_;  // messages below given_up_before_ that are not given up
  std::uint32_t alone_from_ = no_deliveries;
};

}  // namespace lightq::broker
