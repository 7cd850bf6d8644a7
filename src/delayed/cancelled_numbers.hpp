/// The numbers of delayed messages that commands have cancelled. Layer: delayed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

#include <lightq/base/limits.hpp>
#include <lightq/base/types.hpp>

#include "log/offsets/offset_set.hpp"

namespace lightq::broker {

/// Remembers cancelled numbers as long as the records that cancel them may exist in the schedule's log, and
/// in at most about `bytes_max`; beyond that the numbers that were cancelled first are forgotten. So a
/// command that is sent again gets the same answer. Several records share one set. Thread: one.
class CancelledNumbers {
 public:
  static constexpr std::size_t bytes_max = 1 * limits::MiB;

  /// `place`: of the record, not below those of earlier calls; 0 in memory.
  void add(std::span<const std::uint64_t> numbers, std::uint64_t place) {
    if (sets_.empty() || set_bytes_max <= sets_.back().numbers.bytes()) sets_.emplace_back();
    Set& set = sets_.back();
    set.place = place;
    for (const std::uint64_t number : numbers) {
      if (number < limits::offset_max) set.numbers.add({{number}, {number + 1}});
    }
    std::size_t bytes = 0;
    for (const Set& each : sets_) bytes += each.numbers.bytes();
    while (1 < sets_.size() && bytes_max < bytes) {
      bytes -= sets_.front().numbers.bytes();
      sets_.pop_front();
    }
  }
  [[nodiscard]] bool contains(std::uint64_t number) const {
    return number <= limits::offset_max &&
           std::ranges::any_of(sets_, [&](const Set& set) { return set.numbers.contains({number}); });
  }
  /// Called when the schedule's log begins at `first`.
  void drop_records_before(std::uint64_t first) {
    while (!sets_.empty() && sets_.front().place < first) sets_.pop_front();
  }

 private:
  // One record adds up to 8,192 numbers, so a set may grow by their bytes beyond this.
  static constexpr std::size_t set_bytes_max = 64 * limits::KiB;
  struct Set {
    std::uint64_t place = 0;  // of the last record
    log::OffsetSet numbers;
  };
  std::deque<Set> sets_;  // the oldest first
};

}  // namespace lightq::broker
