/// The times when a group's delayed messages are due. Layer: delivery.
#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <span>

#include <lightq/base/types.hpp>

#include "admission/turn_work.hpp"
#include "delivery/state/group_time.hpp"
#include "delivery/state/set_merge.hpp"
#include "log/offsets/offset_set.hpp"

namespace lightq::broker {

/// Keeps delayed messages as one set of offsets for each time at which some are due. Times are rounded up, so
/// that there are few for all delays that clients can ask for. An operation that visits a set counts it as
/// work of this turn (TurnWork). A plain value for one thread; a copy may be used by another. A copy costs
/// time by the number of sets.
class DueTimes {
 public:
  /// The most different times in the future that `after` returns at any moment.
  ///
  /// A delay of d ms is rounded up to a multiple of the highest power of two that is at most d / 128, and at
  /// least to one of 8 ms. So of the times that are 2^k to 2^(k+1) ms ahead, at most 130 differ: a step is at
  /// least 2^(k-7) ms. Only a delay just below 2^k, which rounding moves above it, has half of that step.
  /// Times up to 1,024 ms ahead are at most 129 multiples of 8 ms. A delay has less than 2^32 ms, which
  /// leaves 23 values of k from 10 on, and of the last one only its beginning: 129 + 22 * 130 + 2 = 2,991.
  static constexpr std::size_t rounded_max = 3072;

  /// Returns the time `ms` from now, rounded up.
  static SteadyTime after(SteadyTime now, std::uint32_t ms) {
    return rounded_up(now + std::chrono::milliseconds(ms), step_ms_of(ms));
  }
  /// Returns a due time that was stored, rounded up. `roughly`: as `after` does for the time that is left, so
  /// that the result is one of few; else by less than 8 ms.
  static SteadyTime restored(SteadyTime now, SteadyTime due, bool roughly) {
    if (due <= now) return now;
    const auto left_ms = std::chrono::duration_cast<std::chrono::milliseconds>(due - now).count();
    return rounded_up(due, roughly ? step_ms_of(left_ms) : step_ms_min);
  }

  [[nodiscard]] bool empty() const { return sets_.empty(); }
  /// Returns the lowest time, or `never` if there is none.
  [[nodiscard]] SteadyTime next() const { return empty() ? never : sets_.begin()->first; }
  /// Returns the number of messages in all sets together.
  [[nodiscard]] std::uint64_t messages() const { return messages_; }
  /// Returns the heap memory in bytes.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] const std::map<SteadyTime, log::OffsetSet>& sets() const { return sets_; }

  /// Adds messages that are due at `due`.
  void add(OffsetRange range, SteadyTime due) {
    if (range.begin < range.end) add(std::span(&range, 1), due);
  }
  /// Adds messages in ranges that ascend, do not overlap, and are not empty.
  void add(std::span<const OffsetRange> ranges, SteadyTime due) {
    if (ranges.empty()) return;
    change(set_of(due), [&](log::OffsetSet& set) { add_ranges(set, ranges); });
  }
  /// Adds a set of messages. Takes time by its runs only if there are messages for this time already.
  void add(const log::OffsetSet& messages, SteadyTime due) {
    if (messages.empty()) return;
    change(set_of(due), [&](log::OffsetSet& set) { add_all(set, messages); });
  }
  /// Removes messages that are due, at most `runs_max` runs of them, and calls `released(run)` for each run.
  /// `released` must not use this object. Returns the number of runs.
  template <typename Released>
  std::size_t release(SteadyTime now, std::size_t runs_max, Released&& released) {
    std::size_t runs = 0;
    while (next() <= now && runs < runs_max) {
      const auto due = sets_.begin();
      OffsetRange done{due->second.first(), due->second.first()};
      {
        log::OffsetSet::Runs ahead(due->second);
        for (auto run = ahead.next(); run; run = runs < runs_max ? ahead.next() : std::nullopt) {
          TurnWork::add(TurnWork::range_passed);
          ++runs;
          done.end = run->end;
          released(*run);
        }
      }
      change(due->second, [&](log::OffsetSet& set) { set.remove(done); });
      drop_if_empty(due);
    }
    return runs;
  }
  /// Removes the messages of ranges that ascend, do not overlap, and are not empty. Visits all sets once, and
  /// each range as often as there are sets with messages of it.
  void remove(std::span<const OffsetRange> ranges) {
    TurnWork::add(TurnWork::range_passed * sets_.size() / 4);
    for (auto due = sets_.begin(); due != sets_.end();) {
      for (auto range = ranges.begin(); range != ranges.end();) {
        const auto run = due->second.first_behind(range->begin);
        if (!run) break;
        // Most ranges have messages of few sets: skips those before the next message of this one.
        range = std::ranges::upper_bound(range, ranges.end(), run->begin, {}, &OffsetRange::end);
        if (range == ranges.end()) break;
        if (run->end <= range->begin) continue;  // another run may have messages of this range
        change(due->second, [&](log::OffsetSet& set) { set.remove(*range); });
        ++range;
      }
      due = drop_if_empty(due);
    }
  }
  /// Removes all messages before `first`.
  void remove_before(Offset first) {
    for (auto due = sets_.begin(); due != sets_.end();) {
      change(due->second, [&](log::OffsetSet& set) { set.remove({Offset{0}, first}); });
      due = drop_if_empty(due);
    }
  }
  void clear() {
    TurnWork::add(TurnWork::range_passed * sets_.size());
    sets_.clear();
    messages_ = 0;
    bytes_ = 0;
  }

 private:
  using Sets = std::map<SteadyTime, log::OffsetSet>;
  static constexpr std::int64_t step_ms_min = 8;
  static constexpr std::size_t entry_bytes = sizeof(Sets::value_type) + 48;  // with the map's own fields

  /// Returns the step to which the end of a delay of `ms` is rounded up.
  static std::int64_t step_ms_of(std::int64_t ms) {
    constexpr std::uint64_t steps = 128;
    const auto step = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(ms) / steps));
    return std::max(step_ms_min, step);
  }
  static SteadyTime rounded_up(SteadyTime time, std::int64_t step_ms) {
    const SteadyTime::duration step = std::chrono::milliseconds(step_ms);
    return SteadyTime((time.time_since_epoch() + step - SteadyTime::duration(1)) / step * step);
  }

  log::OffsetSet& set_of(SteadyTime due) {
    const auto [found, is_new] = sets_.try_emplace(due);
    if (is_new) bytes_ += entry_bytes;
    return found->second;
  }
  Sets::iterator drop_if_empty(Sets::iterator due) {
    if (!due->second.empty()) return std::next(due);
    bytes_ -= entry_bytes;
    return sets_.erase(due);
  }
  template <typename Change>
  void change(log::OffsetSet& set, Change&& change) {
    TurnWork::add(TurnWork::range_passed);
    bytes_ -= set.bytes();
    messages_ -= set.size();
    change(set);
    bytes_ += set.bytes();
    messages_ += set.size();
  }

  Sets sets_;
  std::uint64_t messages_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace lightq::broker
