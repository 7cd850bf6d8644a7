/// When messages of a group failed for the first time. Layer: delivery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <lightq/base/types.hpp>

#include "log/offsets/offset_set.hpp"
#include "log/saved_state/unfinished.hpp"

namespace lightq::broker {

/// Keeps one set of offsets for each time. Times are rounded down to a second; when there are more than
/// `times_max`, to two seconds, four, and so on. When only a quarter of them is left, new times are rounded
/// to a second again. A plain value for one thread; a copy may be used by another.
class FirstFailures {
 public:
  static constexpr std::size_t times_max = log::SavedDead::times_max;

  /// Notes that the messages of `range` failed at `time`. Has no effect for those that failed before.
  void add(OffsetRange range, Timestamp time);
  /// Returns when the message failed for the first time, rounded down, or nothing if that is not known.
  [[nodiscard]] std::optional<Timestamp> of(Offset offset) const;
  /// Forgets the messages in the range, as if they had never failed.
  void remove(OffsetRange range);
  void clear();
  [[nodiscard]] bool empty() const { return all_.empty(); }
  /// Returns the heap memory in bytes.
  [[nodiscard]] std::size_t bytes() const;
  /// Returns the sets by time.
  [[nodiscard]] const log::TimedSets& sets() const { return sets_; }
  void restore(log::TimedSets sets);

 private:
  static constexpr std::int64_t step_us_min = 1'000'000;

  void merge_times();

  log::TimedSets sets_;  // times ascend
  log::OffsetSet all_;   // the messages of all sets
  std::int64_t step_us_ = step_us_min;
};

}  // namespace lightq::broker
