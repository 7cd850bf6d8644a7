/// Bugs that tests switch on in the log, to check that they would find them. Layer: log. In the library no
/// bug can be switched on: `seeded` is a constant there.
#pragma once

#include <algorithm>
#include <cstdint>
#ifdef LIGHTQ_SEEDED_BUGS
#include <array>
#include <vector>
#endif

#include <lightq/base/batch.hpp>

namespace lightq::log {

/// The bugs. Each one changes the code at the place that asks for it.
enum class SeededBug : std::uint8_t {
  none,
  body_crc_unchecked,            ///< a batch's body is accepted without its checksum
  header_crc_unchecked,          ///< only the payload's checksum counts
  offset_continuity_unchecked,   ///< a sound batch is accepted with any offset
  epoch_unchecked,               ///< a batch of a file's earlier use is accepted, and no tail is wiped
  confirm_before_sync,           ///< durable_offset advances when the sync is requested
  file_unsynced,                 ///< a sync does not sync the files
  directory_unsynced,            ///< names in the log's directory are not synced
  parent_directory_unsynced,     ///< the log's own name in its parent directory is not synced
  sync_retried,                  ///< a successful sync after a failed one counts as a success
  tail_unwiped,                  ///< the rest of a torn append stays on disk
  tail_wiped_for_a_header_only,  ///< the wipe ends after one batch header; the rest of later appends stays
  tail_wipe_unsynced,            ///< the wipe is not synced before the log continues
  damage_taken_for_tail,         ///< anything that stops the scan counts as the end of the log
  unreadable_taken_for_tail,     ///< bytes that the disk cannot read count as zeros
  gap_unreported,                ///< a missing file is not reported
  seal_before_sync,              ///< a seal is written for data that is not on disk yet
  retire_before_sync,            ///< old files are removed before the data after them is durable
  retire_while_poisoned,         ///< old files are removed although a failed sync keeps newer data undurable
  retired_name_unsynced,         ///< a file is reused while a power cut may still restore its old name
  recycled_epoch_kept,           ///< a reused file keeps its epoch
  recycled_header_unsynced,      ///< an earlier process's file is renamed before its new header is on disk
  found_epoch_trusted,           ///< an earlier process's file gets only the next epoch
  file_of_another_log_used,      ///< a file of another log is reused, with that log's bytes in it
  remembered_once,               ///< an offset recorded on disk once allows all later removals
  failed_append_kept,            ///< a failed write counts as appended
  short_write_believed,          ///< a short write counts as complete
  cursor_unsynced,               ///< a cursor counts as committed once it is written
  loaded_cursor_unsynced,        ///< a killed process's cursor is not synced before the older is overwritten
  cursor_in_one_file,            ///< cursors are written in place instead of in turn
  cursor_crc_unchecked,          ///< a torn cursor file is accepted
  clean_mark_kept,               ///< an append to a closed log leaves its clean mark
  clean_mark_removal_unsynced,   ///< the removal of the clean mark is not synced
  checkpoint_before_sync,        ///< a checkpoint claims data as on disk for good before it is
  boot_unchecked,                ///< marks that were only in the memory of another boot are accepted
  reservation_ignored,           ///< batches go beyond the position up to which recovery scans
  open_mark_sum_unchecked,       ///< an open batch is completed without a check of its bytes
  open_mark_taken_elsewhere,     ///< an open batch's mark is accepted at another position
  remember_skipped,              ///< old files are removed before the next offset is recorded on disk
  index_trusted,                 ///< an index entry is followed without a check of the batch there
  unnamed_segment_forgotten,     ///< a segment that was begun without its name is discarded
  doubt_forgotten,               ///< after a failed sync, the next process trusts all bytes that it reads
  cursor_ahead_accepted,         ///< a cursor stays past the end of a log that a power cut has shortened
};

#ifdef LIGHTQ_SEEDED_BUGS
/// The bug that is switched on.
inline SeededBug seeded_bug = SeededBug::none;
inline bool seeded(SeededBug bug) {
  return seeded_bug == bug;
}
/// Returns whether this header would be accepted without its checksum.
inline bool forgiven_header(ByteView available) {
  std::array<std::byte, batch_layout::header_bytes> header{};
  if (!seeded(SeededBug::header_crc_unchecked) || available.size() < header.size()) return false;
  std::copy_n(available.begin(), header.size(), header.begin());
  store_little_endian(header.data() + batch_layout::header_crc, batch_header_crc(header.data()));
  return !BatchView::check_stored_header({header.data(), available.size()}).has_value();
}
/// Returns whether this body would be accepted without its checksum.
inline bool forgiven_body(const BatchView& batch) {
  if (!seeded(SeededBug::body_crc_unchecked)) return false;
  std::vector<std::byte> copy(batch.bytes().begin(), batch.bytes().end());
  store_little_endian(copy.data() + batch_layout::body_crc, batch_body_crc(copy));
  return !BatchView::trusted(copy.data()).check_body().has_value();
}
#else
/// Returns whether a bug is switched on. Always false, except in builds that test the tests.
constexpr bool seeded(SeededBug /*bug*/) {
  return false;
}
constexpr bool forgiven_header(ByteView /*available*/) {
  return false;
}
constexpr bool forgiven_body(const BatchView& /*batch*/) {
  return false;
}
#endif

}  // namespace lightq::log
