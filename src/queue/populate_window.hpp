/// Computes the part of a segment to make present ahead of a reader. Layer: queue.
#pragma once

#include <algorithm>
#include <cstdint>

#include "log/format/segment_format.hpp"

namespace lightq::queue {

/// The window ahead of a reader that should be made present. A reader that reads in order will need the next
/// pages. Asking the system for many pages together is cheaper than a page fault every few pages. The more a
/// reader has read in order, the larger the window. A reader that jumps gets no window. Nor does a reader of
/// a small segment, or of one with little in it yet. A few faults make all of it present there, and checking
/// each page costs more. Thread: one.
class PopulateWindow {
 public:
  static constexpr std::uint64_t bytes_min = 128 * 1024;   ///< bytes to read in order before the first window
  static constexpr std::uint64_t bytes_max = 1024 * 1024;  ///< of one window
  /// A segment that ends before this position is small.
  static constexpr std::uint64_t segment_end_min = bytes_max + log::segment_header_bytes;

  /// A range of positions in a segment.
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    [[nodiscard]] bool empty() const { return end <= begin; }
  };

  /// Notes that the reader continues at another position.
  void jump() { in_order_ = 0; }
  /// Notes that the reader continues at the beginning of another segment.
  void enter_segment() { populated_ = 0; }
  /// Called before the reader reads [begin, end) of a segment that ends at `segment_end`. Returns the range
  /// that should be made present now, which never goes past `segment_end`.
  Range advance(std::uint64_t begin, std::uint64_t end, std::uint64_t segment_end) {
    in_order_ = std::min(in_order_ + (end - begin), bytes_max);
    if (end <= populated_ || in_order_ < bytes_min || segment_end <= segment_end_min) return {};
    // Leaves out the range of an earlier window, and does not populate the whole of a huge batch.
    const std::uint64_t first = std::max(begin, populated_);
    const Range range{first, std::min({end + in_order_, first + bytes_max, segment_end})};
    populated_ = range.end;
    return range;
  }

 private:
  std::uint64_t in_order_ = 0;   // bytes read in order
  std::uint64_t populated_ = 0;  // up to this position in the segment
};

}  // namespace lightq::queue
