/// Finds the batches of one segment by offset and by time. Layer: log.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <lightq/base/batch.hpp>

#include "log/format/segment_format.hpp"
#include "log/format/segment_scanner.hpp"
#include "log/format/sparse_index.hpp"
#include "log/segment/segment_bytes.hpp"
#include "log/segment/trusted_ranges.hpp"

namespace lightq::log {

/// A range of a segment that cannot be read.
struct SegmentDamage {
  std::uint64_t begin = 0;  ///< position
  std::uint64_t end = 0;    ///< position of the next sound batch, or the segment's end
  Offset first;             ///< offset of the batch that should begin here
  Offset next;              ///< first offset that can be read again
};

/// The result of `SegmentFinder::locate`.
struct Located {
  bool found = false;
  std::uint64_t position = 0;  ///< if found: position of the batch
  SegmentDamage damage;        ///< if not found: the damage around the offset
  bool unavailable = false;    ///< if not found: the bytes cannot be read now; see SegmentFinder::read_error
};

/// The end of a segment's batches.
struct SegmentEnd {
  std::uint64_t position = segment_header_bytes;
  Offset offset;
};

/// Walks from batch to batch of a segment, beginning at the nearest entry of its index. Checks the batches
/// that this process did not write, when they are wanted for the first time.
///
/// Owns the index, the known damage, and the ranges that need no check. Called by SegmentReader, and by
/// SegmentFile for each batch that is appended or recovered. Thread: one at a time.
///
/// Invariant: neither the index nor a hint is trusted: each batch at a position that they name is checked, or
/// was written by this process. Example: the segment begins at offset 100, and its index has the batches of
/// 100 at position 4,096 and of 160 at position 70,000. `locate(175)` checks the headers from position 70,000
/// on, and the body of the batch with offset 175.
class SegmentFinder {
 public:
  /// Lifetime: all must outlive this object.
  SegmentFinder(const SegmentHeader& header, const SegmentBytes& bytes, const SegmentEnd& end)
      : header_(header), bytes_(bytes), end_(end), indexed_{segment_header_bytes, header.first_offset} {}

  /// Finds the batch with `offset`. `from` is the position of a batch that was found here earlier and begins
  /// at or before the offset, or 0. Requires: `offset` is in [first_offset, end_offset), and the segment is
  /// open for reading.
  Located locate(Offset offset, std::uint64_t from);
  /// Returns the base offset of the first batch that was appended at `time` or later, or nothing. Adds the
  /// number of examined batches to `passed`. At bytes that cannot be read now, sets `unavailable` and returns
  /// the offset at which they begin. Requires: the segment is open for reading.
  std::optional<Offset> first_since(Timestamp time, std::uint64_t& passed, bool& unavailable);
  /// Returns why the last `locate` or `first_since` could not read bytes that it needed.
  [[nodiscard]] const Error& read_error() const { return read_error_; }

  /// Notes a batch at the segment's end that was written or checked.
  void note_batch(const ScannedBatch& batch) {
    trusted_.add(batch.position, batch.end_position());
    index_batch(batch);
  }
  /// Notes damage that recovery has found.
  void note_damage(const SegmentDamage& damage);
  /// States that all of the segment is one damage.
  void set_unreadable(const SegmentDamage& all);

 private:
  struct Step;
  [[nodiscard]] BatchView batch_at(std::uint64_t position) const {
    return BatchView::trusted(bytes_.data() + position);
  }
  [[nodiscard]] SegmentScanner new_scanner() const;
  [[nodiscard]] const SegmentDamage* damage_at(std::uint64_t position, Offset expected) const;
  Step step_at(std::uint64_t position, Offset expected, Offset wanted, SegmentScanner& scanner);
  void check_ahead(std::uint64_t position, Offset expected, SegmentScanner& scanner);
  SegmentDamage find_damage(std::uint64_t position, Offset expected, SegmentScanner& scanner);
  void index_batch(const ScannedBatch& batch) {
    if (batch.position < indexed_.position) return;
    if (batch.position == indexed_.position && !has_jumped_) {
      indexed_ = {batch.end_position(), batch.end};
    } else {
      has_jumped_ = true;
    }
    index_.note(batch.base, batch.position, batch.time);
  }
  void index_damage(const SegmentDamage& damage);
  bool index_rest(SegmentScanner& scanner, std::uint64_t& passed);

  const SegmentHeader& header_;
  const SegmentBytes& bytes_;
  const SegmentEnd& end_;
  // The index knows the times of all batches before indexed_. If has_jumped_ is set, it also has batches
  // behind that position, which were reached by a jump, so that their offsets are found again.
  SparseIndex index_;
  SegmentEnd indexed_;
  bool has_jumped_ = false;
  std::vector<SegmentDamage> damages_;
  TrustedRanges trusted_;
  Error read_error_;
};

}  // namespace lightq::log
