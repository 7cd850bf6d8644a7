/// Sums and differences of sets of offsets. Layer: delivery.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "log/offsets/offset_set.hpp"

namespace lightq::broker {

/// Returns the offsets that are in at least one of the sets. Takes time by the runs of all sets, or constant
/// time if at most one of them is not empty: then the result shares its memory.
log::OffsetSet merged(std::vector<const log::OffsetSet*> sets);

/// Returns the offsets of `set` that are not in `removed`. Takes time by the runs of both, or constant time
/// if one is empty.
log::OffsetSet without(const log::OffsetSet& set, const log::OffsetSet& removed);

/// Adds ranges, one by one or in one merge: whichever takes less time. One by one takes about a microsecond
/// for each range; a merge, about as long for 64 bytes of `set`. Counts as work of this turn (TurnWork).
/// Requires: the ranges ascend and do not overlap.
void add_ranges(log::OffsetSet& set, std::span<const OffsetRange> ranges);

/// Adds all offsets of `added`, with the same choice. So a small set and a large one take the time of the
/// small one.
void add_all(log::OffsetSet& set, const log::OffsetSet& added);

/// Removes all offsets outside `range`.
void clip(log::OffsetSet& set, OffsetRange range);
/// Returns the offsets of `set` inside `range`.
inline log::OffsetSet clipped(log::OffsetSet set, OffsetRange range) {
  clip(set, range);
  return set;
}

/// Calls `visit(gap)` for each maximal part of `range` that has no offset of `set`, in ascending order.
/// `visit` must not change `set`.
template <typename Visit>
void for_gaps(const log::OffsetSet& set, OffsetRange range, Visit&& visit) {
  for (Offset at = range.begin; at < range.end;) {
    const auto run = set.first_behind(at);
    const Offset end = run && run->begin < range.end ? run->begin : range.end;
    if (at < end) visit(OffsetRange{at, end});
    at = run && run->begin < range.end ? run->end : range.end;
  }
}

/// Finds the runs of a set around ascending offsets. Walks over all runs if there are many offsets to find,
/// and searches each otherwise. Lifetime: the set outlives it. Requires: the set does not change meanwhile.
class RunFinder {
 public:
  /// `finds`: about how often `behind` will be called.
  RunFinder(const log::OffsetSet& set, std::size_t finds);

  /// Returns the first run that ends after `offset`, or nothing. Requires: `offset` is not less than at the
  /// last call.
  const std::optional<OffsetRange>& behind(Offset offset);

 private:
  const log::OffsetSet& set_;
  log::OffsetSet::Runs runs_;
  const bool walks_;
  std::optional<OffsetRange> found_;  // of the last call
};

}  // namespace lightq::broker
