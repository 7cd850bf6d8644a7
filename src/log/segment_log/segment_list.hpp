/// The segments of a log in their order, with their common offsets and sizes. Layer: log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include <lightq/base/types.hpp>

#include "log/segment/segment_file.hpp"

namespace lightq::log {

/// The segments that a log reads and writes, oldest first. The last one is the active segment.
///
/// Owns the segments, the log's next offset and the number of stored bytes. All parts of a SegmentLog use it;
/// only the appender and the roller add to it, only retention takes from it. Thread: the log's.
///
/// Each segment has a number, which stays the same while older ones are dropped. Hints and disk jobs name
/// segments by it. Example: the list has three segments, which begin at the offsets 0, 100 and 250 and have
/// the numbers 0, 1 and 2. After take_oldest(), `index_of(1)` is 0 and `index_of(0)` is nothing. Then
/// first_offset() is 100 and `segment_of(180)` is 0.
///
/// Invariants: the segments' offsets ascend. next_offset() is the end of the last segment, apart from the
/// batch that is being appended.
class SegmentList {
 public:
  using Segments = std::deque<std::unique_ptr<SegmentFile>>;

  explicit SegmentList(Segments segments);

  [[nodiscard]] const Segments& all() const { return segments_; }
  [[nodiscard]] bool empty() const { return segments_.empty(); }
  [[nodiscard]] std::size_t size() const { return segments_.size(); }
  [[nodiscard]] SegmentFile& at(std::size_t index) const { return *segments_[index]; }
  /// Returns the newest segment. Requires: not empty.
  [[nodiscard]] SegmentFile& active() const { return *segments_.back(); }
  /// Returns the oldest segment. Requires: not empty.
  [[nodiscard]] SegmentFile& oldest() const { return *segments_.front(); }

  /// Returns the number of the oldest segment.
  [[nodiscard]] std::uint64_t first_number() const { return first_number_; }
  /// Returns the number that the next segment will get.
  [[nodiscard]] std::uint64_t end_number() const { return first_number_ + segments_.size(); }
  /// Returns the place of the segment with this number, or nothing if it was dropped or never existed.
  [[nodiscard]] std::optional<std::size_t> index_of(std::uint64_t number) const {
    if (number < first_number_ || end_number() <= number) return std::nullopt;
    return static_cast<std::size_t>(number - first_number_);
  }

  [[nodiscard]] Offset first_offset() const {
    return segments_.empty() ? next_ : segments_.front()->first_offset();
  }
  [[nodiscard]] Offset next_offset() const { return next_; }
  /// Returns where the newest segment begins; next_offset() if there is none.
  [[nodiscard]] Offset last_begin() const {
    return segments_.empty() ? next_ : segments_.back()->first_offset();
  }
  /// Returns the bytes of all batches.
  [[nodiscard]] std::uint64_t stored_bytes() const { return stored_bytes_; }
  /// Returns the bytes of all files, used or not.
  [[nodiscard]] std::uint64_t file_bytes() const;
  /// Returns where the next segment begins, even if the oldest one ends before that. The messages between,
  /// damaged or lost in a power cut, count as the oldest segment's. Readers that are not past them still have
  /// to learn of the loss. Requires: not empty.
  [[nodiscard]] Offset end_of_oldest() const {
    return segments_.size() > 1 ? segments_[1]->first_offset() : segments_.front()->end_offset();
  }
  /// Returns the place of the last segment that begins at or before `offset`. Requires: `offset` is in
  /// [first_offset, next_offset).
  [[nodiscard]] std::size_t segment_of(Offset offset) const;
  /// Returns the node of the segment that contains `offset`. For an offset in a gap, returns the segment
  /// before it; past the end, the last segment; before the first one, the first. Null if there is no segment.
  [[nodiscard]] std::shared_ptr<SegmentNode> node_of(Offset offset) const;

  /// Notes that the active segment has got a batch of `bytes` that ends at `end`.
  void note_append(Offset end, std::uint64_t bytes) {
    next_ = end;
    stored_bytes_ += bytes;
  }
  /// Adds a new active segment, which begins at next_offset().
  void add(std::unique_ptr<SegmentFile> segment) { segments_.push_back(std::move(segment)); }
  /// Removes the active segment. Requires: it is empty, and its successor has the same name.
  void remove_replaced();
  /// Removes the oldest segment from the list and returns it.
  std::unique_ptr<SegmentFile> take_oldest();

 private:
  Segments segments_;
  std::uint64_t first_number_ = 0;
  Offset next_;
  std::uint64_t stored_bytes_ = 0;
};

}  // namespace lightq::log
