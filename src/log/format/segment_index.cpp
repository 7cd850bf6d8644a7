/// Searches the index of one segment. Layer: log.
#include "log/format/segment_index.hpp"

#include <algorithm>

namespace lightq::log {

namespace {

/// Returns the entry before the first one for which `is_behind` is true. Requires: it is true for all entries
/// after that.
template <typename IsBehind>
std::optional<IndexedBatch> last_before(std::span<const IndexedBatch> entries, IsBehind is_behind) {
  const auto first = std::partition_point(entries.begin(), entries.end(),
                                          [&](const IndexedBatch& entry) { return !is_behind(entry); });
  if (first == entries.begin()) return std::nullopt;
  return *(first - 1);
}

}  // namespace

SegmentIndex::SegmentIndex(std::uint64_t segment_bytes, Timestamp newest)
    : capacity_(entries_max(segment_bytes)),
      entries_(std::make_unique_for_overwrite<IndexedBatch[]>(capacity_)),
      newest_(newest.us) {}

std::optional<IndexedBatch> SegmentIndex::find(Offset offset) const {
  return last_before(entries(), [&](const IndexedBatch& entry) { return offset < entry.offset; });
}

std::optional<IndexedBatch> SegmentIndex::find(Timestamp time) const {
  return last_before(entries(), [&](const IndexedBatch& entry) { return time <= entry.newest; });
}

}  // namespace lightq::log
