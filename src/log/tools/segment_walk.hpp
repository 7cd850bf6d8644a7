/// Walks through one segment file from batch to batch, and past damage, with pread. For code that reads a log
/// that may be broken, or that belongs to another process. Layer: tools.
#pragma once

#include <cstdint>
#include <optional>

#include <lightq/base/batch.hpp>

#include "log/format/segment_scanner.hpp"
#include "log/segment/segment_file.hpp"
#include "log/tools/log_survey.hpp"

namespace lightq::log {

/// The part of a segment file to walk through.
struct WalkRange {
  BatchMarks marks;
  std::uint64_t begin = segment_header_bytes;
  std::uint64_t end = 0;             ///< the position at which it ends
  Offset first;                      ///< of the batch at `begin`
  std::optional<Offset> end_offset;  ///< known from a seal: all messages before it must be there
};
/// Returns the range for the whole of a segment with a sound header.
WalkRange whole_segment(const SurveyedSegment& segment);

/// Returns each sound batch, each damaged range, and then the segment's end. Reads a part that looks damaged
/// twice, because a writer may just have been writing it. Lifetime: the file must outlive the walk. Thread:
/// one.
///
/// Example: `while (walk.next() == SegmentWalk::Step::batch) use(walk.view());` reads up to the first damage.
class SegmentWalk {
 public:
  enum class Step { batch, damage, end };

  SegmentWalk(File& file, const WalkRange& range);
  Step next();
  /// Skips all batches that end at or before `offset`, without checking their bodies.
  void skip_to(Offset offset);

  /// Returns the batch. Requires: `next` returned Step::batch.
  [[nodiscard]] const ScannedBatch& batch() const { return batch_; }
  /// Returns the checked bytes of that batch. Lifetime: until the next call.
  BatchView view();
  /// Returns the damaged range. Requires: `next` returned Step::damage. If `first` equals `next`, the number
  /// of lost messages is unknown.
  [[nodiscard]] const SegmentDamage& damage() const { return damage_; }
  /// Returns the first position in the damaged range that the disk cannot read.
  [[nodiscard]] std::optional<std::uint64_t> unreadable() const;

  /// Returns the newer version's batch in that range, if there is one. The range is then not damaged.
  [[nodiscard]] std::optional<NewerBatch> newer_in_damage() const;

  // After Step::end, the end of the segment; before, how far the walk has come.
  [[nodiscard]] std::uint64_t end_position() const { return position_; }
  [[nodiscard]] Offset end_offset() const { return expected_; }
  /// Returns the number of bytes behind the end that an incomplete append has left.
  [[nodiscard]] std::uint64_t torn_bytes() const { return torn_bytes_; }

 private:
  bool read_batch();
  Step pass_damage();
  Step damaged(std::uint64_t end, Offset next);
  Step finish();
  [[nodiscard]] bool fits(const ScannedBatch& batch) const;
  [[nodiscard]] std::uint64_t measure_tail();

  const WalkRange range_;
  SegmentScanner scanner_;
  std::uint64_t position_;
  Offset expected_;
  bool at_end_ = false;
  ScannedBatch batch_;
  SegmentDamage damage_;
  std::uint64_t torn_bytes_ = 0;
};

}  // namespace lightq::log
