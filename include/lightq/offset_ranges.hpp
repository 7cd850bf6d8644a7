/// A set of offsets, kept as ranges. Layer: client.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <lightq/base/types.hpp>

namespace lightq::inline v1 {

/// Ranges that ascend and do not touch each other, as session frames have them. Cheap where what is added
/// follows what was added last. A value.
class OffsetRanges {
 public:
  /// Adds [begin, end), some of which may be there already.
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

  [[nodiscard]] const std::vector<OffsetRange>& all() const { return ranges_; }
  [[nodiscard]] bool empty() const { return ranges_.empty(); }
  [[nodiscard]] std::size_t size() const { return ranges_.size(); }
  void clear() { ranges_.clear(); }
  /// Takes the lowest `most` out.
  std::vector<OffsetRange> take_first(std::size_t most) {
    if (ranges_.size() <= most) return std::exchange(ranges_, {});
    const auto end = ranges_.begin() + static_cast<std::ptrdiff_t>(most);
    std::vector<OffsetRange> taken(ranges_.begin(), end);
    ranges_.erase(ranges_.begin(), end);
    return taken;
  }

 private:
  // Into the midst.
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
