/// The marks in a segment's first page: checkpoints and the seal. Layer: log.
#pragma once

#include <cstdint>

#include "log/format/segment_format.hpp"
#include "log/segment/segment_bytes.hpp"

namespace lightq::log {

/// Writes checkpoints and the seal of one segment. A checkpoint states an end before which recovery need not
/// scan, and the position that appends may reach until the next one. A seal states the end of a full segment.
///
/// Owns the newest checkpoint. The appender reserves space with checkpoints, SegmentSync writes them after
/// syncs, CloseMark when the log is closed; the roller writes seals. Recovery sets the checkpoint that it has
/// found. Thread: the log's.
///
/// Invariant: checkpoints are written into two slots in turn, so that the one before survives a torn write.
/// Example: the checkpoint with the sequence 7 is in one slot. The next one gets the sequence 8 and the other
/// slot, and the one after it overwrites 7.
class SegmentMarks {
 public:
  /// Lifetime: both must outlive this object.
  SegmentMarks(const SegmentHeader& header, SegmentBytes& bytes)
      : header_(header), bytes_(bytes), checkpoint_(first_checkpoint(header)) {}

  /// Returns the newest checkpoint in the file.
  [[nodiscard]] const SegmentCheckpoint& checkpoint() const { return checkpoint_; }
  /// Notes the newest checkpoint that recovery has found. `next_sequence`: the sequence of the next one.
  void set_checkpoint(const SegmentCheckpoint& found, std::uint64_t next_sequence);
  /// Writes a checkpoint and fills in its sequence. On error the previous one still counts. Requires: the
  /// file is open for writing.
  Result<void> write_checkpoint(SegmentCheckpoint checkpoint);
  /// Writes a seal. Requires: the file is open for writing.
  Result<void> write_seal(const SegmentSeal& seal);
  /// Returns true if a batch that ends at this position would exceed the space that the newest checkpoint has
  /// reserved.
  [[nodiscard]] bool needs_reserve(std::uint64_t end_position) const {
    return checkpoint_.reserved < end_position;
  }

 private:
  const SegmentHeader& header_;
  SegmentBytes& bytes_;
  SegmentCheckpoint checkpoint_;
};

}  // namespace lightq::log
