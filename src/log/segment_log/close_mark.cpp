/// Writes and removes the mark that a log was closed. Layer: log.
#include "log/segment_log/close_mark.hpp"

#include <algorithm>

namespace lightq::log {

Result<void> CloseMark::remove(SegmentFile& active) {
  SegmentCheckpoint checkpoint = active.marks().checkpoint();
  checkpoint.clean = false;
  if (auto written = active.marks().write_checkpoint(checkpoint); !written) return written;
  if (auto synced = active.file()->sync(); !synced) return synced;
  on_disk_ = may_be_on_disk_ = false;
  return {};
}

Result<void> CloseMark::write(SegmentFile& last) {
  if (on_disk_) return {};
  if (last.sealed) return sync_seal(last);
  if (auto opened = last.open_for_writing(storage_); !opened) return opened;
  SegmentCheckpoint checkpoint = checkpoint_at(last.seal());
  checkpoint.reserved = std::max(last.marks().checkpoint().reserved, last.end_position());
  checkpoint.clean = true;
  may_be_on_disk_ = true;
  if (auto written = last.marks().write_checkpoint(checkpoint); !written) return written;
  if (auto synced = sync(last); !synced) return synced;
  // Writes the same into the other slot, without a sync. A process that finds both knows that the first is on
  // disk, and writes nothing when it closes an unchanged log.
  static_cast<void>(last.marks().write_checkpoint(checkpoint));
  return {};
}

// Syncs the seal of the last segment, which says all that a clean checkpoint would. It was written after the
// last sync, or by a process that may have ended before it was on disk.
Result<void> CloseMark::sync_seal(SegmentFile& last) {
  const bool has_one = last.seal_written && last.header().epoch != 0;
  return has_one ? sync(last) : Result<void>{};
}

Result<void> CloseMark::sync(SegmentFile& last) {
  if (auto opened = last.open_for_writing(storage_); !opened) return opened;
  if (auto synced = last.file()->sync(); !synced) return synced;
  on_disk_ = true;
  return {};
}

}  // namespace lightq::log
