/// The messages of a group that wait for another delivery. Layer: delivery.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <lightq/base/types.hpp>

#include "admission/turn_work.hpp"
#include "delivery/state/counted_ranges.hpp"
#include "delivery/state/delivery_counts.hpp"
#include "delivery/state/due_times.hpp"
#include "delivery/state/group_time.hpp"
#include "log/offsets/offset_set.hpp"
#include "log/saved_state/unfinished.hpp"

namespace lightq::broker {

/// Keeps *ready* messages, which can be delivered now, and *delayed* ones, which become ready when they are
/// due; and the number of deliveries of each. All in sets of offsets, so that a million scattered messages
/// take a few megabytes. No message is ready and delayed. A copy costs time by the number of sets, and may be
/// read and destroyed on another thread.
/// Example: of the messages 3 to 9, message 4 is ready and was delivered twice; 6 to 8 are due in a minute.
/// Then ready() is {4}, delayed() is [6, 9), counts() has 4 with 2 deliveries, and due() has one time.
class WaitingMessages {
 public:
  /// The lowest ready messages that have the same number of deliveries.
  struct Front {
    OffsetRange range;
    std::uint32_t deliveries = 0;
  };

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

  [[nodiscard]] bool empty() const { return ready_.empty() && delayed_.empty(); }
  /// Returns the lowest offset, ready or delayed. Requires: not empty().
  [[nodiscard]] Offset first() const;
  /// Returns the lowest ready messages. Requires: ready() is not empty.
  [[nodiscard]] Front front() const;
  /// Removes the lowest parts of `range` that are ready, at most `parts_left` of them, and calls
  /// `removed(part)` for each, in ascending order. Subtracts the number of parts from `parts_left`. `removed`
  /// must not use this object.
  template <typename Removed>
  void remove_ready(OffsetRange range, std::size_t& parts_left, Removed&& removed) {
    for (; parts_left != 0; --parts_left) {
      const auto run = ready_.first_behind(range.begin);
      if (!run || range.end <= run->begin) return;
      const OffsetRange part{std::max(range.begin, run->begin), std::min(range.end, run->end)};
      remove_ready(part);
      removed(part);
      range.begin = part.end;
    }
  }
  /// Removes all messages of `range`, which are all ready.
  void remove_ready(OffsetRange range) {
    if (range.begin >= range.end) return;
    TurnWork::add(TurnWork::set_changed);
    ready_.remove(range);
    counts_.remove(range);
  }
  /// Removes all messages below `first`, and ignores such messages from now on. Returns how many messages it
  /// has removed.
  std::uint64_t give_up_before(Offset first);
  void clear();

  [[nodiscard]] const log::OffsetSet& ready() const { return ready_; }
  [[nodiscard]] const log::OffsetSet& delayed() const { return delayed_; }
  /// Returns the number of deliveries of the messages that are ready or delayed.
  [[nodiscard]] const DeliveryCounts& counts() const { return counts_; }
  /// Returns the due times of the delayed messages. May also contain messages below given_up_before(), which
  /// are not delayed any more.
  [[nodiscard]] const DueTimes& due() const { return due_; }
  /// Returns the offset below which messages are ignored.
  [[nodiscard]] Offset given_up_before() const { return given_up_before_; }
  /// Returns the heap memory in bytes.
  [[nodiscard]] std::size_t bytes() const {
    return ready_.bytes() + delayed_.bytes() + counts_.bytes() + due_.bytes();
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
  [[nodiscard]] Kept kept_of(std::span<const CountedRange> ranges) const;
  static void count_freed(std::size_t bytes);
  void sweep_due();

  log::OffsetSet ready_;
  log::OffsetSet delayed_;
  DeliveryCounts counts_;
  DueTimes due_;
  Offset given_up_before_;
};

}  // namespace lightq::broker
