/// The mark on disk that a log was closed. Layer: log.
#pragma once

#include "log/segment/recovery.hpp"
#include "log/segment/segment_file.hpp"
#include "log/storage/storage.hpp"

namespace lightq::log {

/// Writes the mark of a closed log, and removes it before the log continues. The mark is a clean checkpoint
/// at the end of the last segment, or the seal of that segment. A start that finds it need not search for the
/// last batch.
///
/// Owns the knowledge of whether the mark is on disk. The appender removes it, the roller begins a segment
/// without it, SegmentLog writes it. Thread: the log's.
///
/// Invariant: no batch is written behind a clean checkpoint that may be on disk. Otherwise the next start
/// would end the log at the checkpoint, and the batches behind it could later be taken for the log's
/// continuation.
class CloseMark {
 public:
  /// `found`: the findings of opening the log. Lifetime: `storage` must outlive this object.
  CloseMark(Storage& storage, const RecoveryReport& found)
      : storage_(storage), on_disk_(found.closed_for_good), may_be_on_disk_(found.closed) {}

  [[nodiscard]] bool may_be_on_disk() const { return may_be_on_disk_; }
  /// Removes the mark of `active`, also from the disk. Requires: may_be_on_disk(), and its file is open.
  Result<void> remove(SegmentFile& active);
  /// Notes that a segment without the mark has begun.
  void note_new_segment() { on_disk_ = may_be_on_disk_ = false; }
  /// Writes and syncs the mark at the end of the last segment, unless it is on disk. Requires: everything
  /// else is synced.
  Result<void> write(SegmentFile& last);

 private:
  Result<void> sync_seal(SegmentFile& last);
  Result<void> sync(SegmentFile& last);

  Storage& storage_;
  bool on_disk_;         // a clean end of the log is on disk, and nothing has changed since
  bool may_be_on_disk_;  // the last segment's checkpoint on disk may be clean: nothing follows
};

}  // namespace lightq::log
