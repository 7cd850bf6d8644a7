/// When the messages of a segment were written. Layer: log.
#pragma once

#include <algorithm>
#include <limits>

#include <lightq/base/types.hpp>

namespace lightq::log {

/// The times of a segment's newest batch: as the batches state it, for searching, and corrected, for
/// retention.
///
/// Owned by SegmentFile, which notes each batch. Retention corrects the time, because a clock may have been
/// ahead. Thread: the log's.
///
/// Example: a batch was appended at 12:00 by a clock that was an hour ahead. newest() is 13:00. At 12:30
/// retention calls `end_before(12:30)`, and written() is 12:30.
class SegmentTimes {
 public:
  /// Returns the latest append time of all batches.
  [[nodiscard]] Timestamp newest() const { return newest_; }
  /// Returns when the newest message was written, for retention: as `newest`, but without clock jumps that
  /// the log has detected.
  [[nodiscard]] Timestamp written() const { return written_; }
  /// Notes a batch that was appended at `time`.
  void note(Timestamp time) {
    newest_ = std::max(newest_, time);
    written_ = std::max(written_, time);
  }
  /// Limits `written` from below.
  void begin_after(Timestamp written) { written_ = std::max(written_, written); }
  /// Limits `written` from above.
  void end_before(Timestamp written) { written_ = std::min(written_, written); }
  /// States that the time of the messages is unknown.
  void set_unknown() { written_ = {std::numeric_limits<std::int64_t>::max()}; }

 private:
  Timestamp newest_;
  Timestamp written_;
};

}  // namespace lightq::log
