/// A walk through one segment file from batch to batch, past damage, by pread: for those who look at a log
/// that may be broken, or another process's. Layer: log.
#pragma once

#include <cstdint>
#include <optional>

#include <lightq/base/batch.hpp>

#include "log/log_survey.hpp"
#include "log/segment_file.hpp"
#include "log/segment_scanner.hpp"

namespace lightq::log {

/// Where a walk goes.
struct WalkRange {
  BatchMarks marks;
  std::uint64_t begin = segment_header_bytes;
  std::uint64_t end = 0;             ///< position that nothing reaches beyond
  Offset first;                      ///< of the batch at `begin`
  std::optional<Offset> end_offset;  ///< known, from a seal: all up to it must be there
};
/// All of a segment whose header is sound.
WalkRange whole_segment(const SurveyedSegment& segment);

/// Gives each batch that is sound, each stretch that is not, and then where the segment ends. What looks
/// damaged is looked at a second time, since a writer may have been at it. The file must outlive the walk.
/// One thread.
class SegmentWalk {
 public:
  enum class Step { batch, damage, end };

  SegmentWalk(File& file, const WalkRange& range);
  Step next();
  /// Passes by all batches that end at or before `offset`, without a look at their bodies.
  void skip_to(Offset offset);

  /// After Step::batch.
  [[nodiscard]] const ScannedBatch& batch() const { return batch_; }
  /// Its bytes, checked; valid until the next call.
  BatchView view();
  /// After Step::damage. Where `first` equals `next`: nobody knows how many messages.
  [[nodiscard]] const SegmentDamage& damage() const { return damage_; }
  /// The first position in the damage that the disk cannot read.
  [[nodiscard]] std::optional<std::uint64_t> unreadable() const;

  /// The batch in the damage that a newer version wrote, if there is one: then it is none.
  [[nodiscard]] std::optional<NewerBatch> newer_in_damage() const;

  // After Step::end; before, how far it has come.
  [[nodiscard]] std::uint64_t end_position() const { return position_; }
  [[nodiscard]] Offset end_offset() const { return expected_; }
  /// Bytes behind the end of an append that was never completed.
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
