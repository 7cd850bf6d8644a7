/// Ranges of messages with their numbers of deliveries. Layer: delivery.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <lightq/base/types.hpp>

namespace lightq::broker {

/// Messages that were delivered equally often.
struct CountedRange {
  OffsetRange range;
  std::uint32_t deliveries = 0;
  friend bool operator==(const CountedRange&, const CountedRange&) = default;
};
using CountedRanges = std::vector<CountedRange>;

/// Returns how many messages are in the ranges.
inline std::uint64_t messages_of(const CountedRanges& ranges) {
  std::uint64_t messages = 0;
  for (const CountedRange& each : ranges) messages += distance(each.range.begin, each.range.end);
  return messages;
}

/// Sorts the ranges by offset. Takes little time if they ascend already.
inline void sort_by_offset(CountedRanges& ranges) {
  const auto begin_of = [](const CountedRange& each) { return each.range.begin; };
  if (!std::ranges::is_sorted(ranges, {}, begin_of)) std::ranges::sort(ranges, {}, begin_of);
}

}  // namespace lightq::broker
