/// How far a segment's pages are made present ahead of a reader. Layer: queue.
#pragma once

#include <algorithm>
#include <cstdint>

#include "log/segment_format.hpp"

namespace lightq::queue {

/// A reader that goes on in order is going to look at what comes next, and to have the system make many pages
/// present at once is cheaper than to wait for it every few pages. The further a reader has come, the more is
/// made present; one that jumps about and reads a message here and there has nothing populated at all. Nor
/// has anybody in a small segment, or one that is as small yet: a few faults bring all of it, and to have
/// each page looked at costs more. One thread.
class PopulateWindow {
 public:
  static constexpr std::uint64_t bytes_min = 128 * 1024;   ///< what must have been read in order first
  static constexpr std::uint64_t bytes_max = 1024 * 1024;  ///< at once
  /// What ends before is small.
  static constexpr std::uint64_t segment_end_min = bytes_max + log::segment_header_bytes;

  /// Positions of a segment.
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    [[nodiscard]] bool empty() const { return end <= begin; }
  };

  /// Goes on in another place.
  void jump() { in_order_ = 0; }
  /// Goes on at the beginning of another segment.
  void enter_segment() { populated_ = 0; }
  /// The reader is about to read [begin, end) of a segment whose batches end at `segment_end`: what is to be
  /// made present now, never anything past that.
  Range advance(std::uint64_t begin, std::uint64_t end, std::uint64_t segment_end) {
    in_order_ = std::min(in_order_ + (end - begin), bytes_max);
    if (end <= populated_ || in_order_ < bytes_min || segment_end <= segment_end_min) return {};
    // What a window before this one has done is left out; a huge batch is not populated whole.
    const std::uint64_t first = std::max(begin, populated_);
    const Range range{first, std::min({end + in_order_, first + bytes_max, segment_end})};
    populated_ = range.end;
    return range;
  }

 private:
  std::uint64_t in_order_ = 0;   // bytes read one after the other
  std::uint64_t populated_ = 0;  // position in the segment
};

}  // namespace lightq::queue
