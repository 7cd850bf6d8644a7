/// A set of offsets, stored as ranges. Layer: client.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <lightq/base/types.hpp>

namespace lightq::inline v1 {

/// A set of offsets as ascending ranges that do not touch, as session frames have them. A value. Adding is
/// cheap if the new range follows the one that was added last.
///
/// Example: after adding [1, 3), [5, 6) and [3, 4), the set is [1, 4), [5, 6).
class OffsetRanges {
 public:
  /// Adds [begin, end). The set may contain some of these offsets already.
  void add(OffsetRange range) {
    if (range.end <= range.begin) return;
    if (ranges_.empty() || ranges_.back().end < range.begin) {
      ranges_.push_back(range);
    } else if (ranges_.back().begin <= range.begin) {
      ranges_.back().end = std::max(ranges_.back().end, range.end);
    } else {
      merge(range);
    }
  }

  /// Removes `range`. Returns the part that was in the set.
  OffsetRanges take(OffsetRange range) {
    OffsetRanges taken, left;
    for (const OffsetRange& each : ranges_) {
      const OffsetRange part{std::max(each.begin, range.begin), std::min(each.end, range.end)};
      if (part.begin >= part.end) {
        left.ranges_.push_back(each);
        continue;
      }
      taken.ranges_.push_back(part);
      left.add({each.begin, part.begin});
      left.add({part.end, each.end});
    }
    ranges_ = std::move(left.ranges_);
    return taken;
  }
  /// Returns true if the set has an offset of `range`.
  [[nodiscard]] bool overlaps(OffsetRange range) const {
    return std::ranges::any_of(
        ranges_, [&](const OffsetRange& each) { return each.begin < range.end && range.begin < each.end; });
  }

  [[nodiscard]] const std::vector<OffsetRange>& all() const { return ranges_; }
  [[nodiscard]] bool empty() const { return ranges_.empty(); }
  [[nodiscard]] std::size_t size() const { return ranges_.size(); }
  void clear() { ranges_.clear(); }
  /// Removes and returns the lowest `most` ranges, or all if there are fewer.
  std::vector<OffsetRange> take_first(std::size_t most) {
    if (ranges_.size() <= most) return std::exchange(ranges_, {});
    const auto end = ranges_.begin() + static_cast<std::ptrdiff_t>(most);
    std::vector<OffsetRange> taken(ranges_.begin(), end);
    ranges_.erase(ranges_.begin(), end);
    return taken;
  }

 private:
  // Adds a range that begins before the last one.
  void merge(OffsetRange range) {
    const auto ends_before = [](const OffsetRange& one, Offset offset) { return one.end < offset; };
    const auto first = std::lower_bound(ranges_.begin(), ranges_.end(), range.begin, ends_before);
    auto last = first;
    while (last != ranges_.end() && last->begin <= range.end) {
      range = {std::min(range.begin, last->begin), std::max(range.end, last->end)};
      ++last;
    }
    ranges_.insert(ranges_.erase(first, last), range);
  }

  std::vector<OffsetRange> ranges_;
};

}  // namespace lightq::inline v1
