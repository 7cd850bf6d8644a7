/// The parts of a segment whose batches are known to be sound. Layer: log.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lightq::log {

/// Ranges of positions. Batches that begin in one of them were written or completely checked by this process.
/// There are several ranges, so that readers at different positions of an old segment do not repeat each
/// other's checks.
///
/// Owns at most eight ranges; the oldest one is forgotten first, and its batches are checked again. Called by
/// SegmentFinder. Thread: one.
///
/// Example: after `add(4096, 5000)` and `add(5000, 6000)` there is one range, [4096, 6000). After
/// `add(9000, 9500)` there are two.
class TrustedRanges {
 public:
  [[nodiscard]] bool contain(std::uint64_t position) const {
    return std::any_of(ranges_.begin(), ranges_.end(),
                       [&](const Range& range) { return range.begin <= position && position < range.end; });
  }
  /// Adds [begin, end). An append or a sequential read extends a range. A jump to another position begins a
  /// new range.
  void add(std::uint64_t begin, std::uint64_t end) {
    for (Range& range : ranges_) {
      if (range.end == begin) {
        range.end = end;
        return;
      }
    }
    if (ranges_.size() == ranges_max) ranges_.erase(ranges_.begin());
    ranges_.push_back({begin, end});
  }

  static constexpr std::size_t ranges_max = 8;

 private:
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  std::vector<Range> ranges_;  // oldest first
};

}  // namespace lightq::log
