/// Bugs that the tests put into the log to see whether they would find them. Layer: log.
/// In the library there are none: `seeded` is a constant there.
#pragma once

#include <algorithm>
#include <cstdint>
#ifdef LIGHTQ_SEEDED_BUGS
#include <array>
#include <vector>
#endif

#include <lightq/base/batch.hpp>

namespace lightq::log {

/// One bug each, at the place that asks for it.
enum class SeededBug : std::uint8_t {
  none,
  body_crc_unchecked,            ///< a batch's body is taken as it is
  header_crc_unchecked,          ///< only the payload's checksum counts
  offset_continuity_unchecked,   ///< a sound batch is accepted whatever offset it says
  epoch_unchecked,               ///< a batch of a file's earlier life is accepted, and no tail is wiped
  confirm_before_sync,           ///< durable_offset moves when the sync is asked for
  file_unsynced,                 ///< a sync does not sync the files
  directory_unsynced,            ///< names are not synced
  parent_directory_unsynced,     ///< nor is the log's own directory in its parent
  sync_retried,                  ///< a sync that succeeds after one that failed is believed
  tail_unwiped,                  ///< what a torn append left stays where it is
  tail_wiped_for_a_header_only,  ///< what later appends left stays
  tail_wipe_unsynced,            ///< the wipe is not made durable before the log goes on
  damage_taken_for_tail,         ///< whatever stops the scan ends the log
  unreadable_taken_for_tail,     ///< bytes that the disk cannot read count as zeros
  gap_unreported,                ///< a missing file goes unnoticed
  seal_before_sync,              ///< a seal is written over data that is not on disk yet
  retire_before_sync,            ///< old files go before what follows them is durable
  retire_while_poisoned,         ///< old files go though nothing more becomes durable
  retired_name_unsynced,         ///< a file is reused while a power cut may give its old name back
  recycled_epoch_kept,           ///< a reused file keeps its epoch
  recycled_header_unsynced,  ///< one whose last header was found gets its name before the new one is on disk
  found_epoch_trusted,       ///< one whose last header was found gets the next epoch
  file_of_another_log_used,  ///< a file of another log is used again, with that log's bytes in it
  remembered_once,           ///< what was once remembered on disk is enough for all that goes later
  failed_append_kept,        ///< a write that fails is counted
  short_write_believed,      ///< a short write counts as a whole one
  cursor_unsynced,           ///< a cursor counts as committed once it is written
  loaded_cursor_unsynced,    ///< nor is one that a killed process wrote, before the one before it is lost
  cursor_in_one_file,        ///< cursors are written in place, not in turn
  cursor_crc_unchecked,      ///< a torn cursor file is believed
  clean_mark_kept,           ///< a closed log is appended to, and still says that nothing follows
  clean_mark_removal_unsynced,  ///< it says no longer so, but perhaps not on disk
  checkpoint_before_sync,       ///< a checkpoint tells of what is not on disk yet, for good
  boot_unchecked,               ///< what was in memory of another boot only is believed
  reservation_ignored,          ///< batches reach beyond what a recovery looks at
  open_mark_sum_unchecked,      ///< an open batch is completed, whatever lies there
  open_mark_taken_elsewhere,    ///< its mark is believed at another place
  remember_skipped,             ///< old files go before the next offset is remembered on disk
  index_trusted,                ///< who goes where an index says does not look at what is there
  unnamed_segment_forgotten,    ///< a segment that was begun without its name is thrown away
  doubt_forgotten,              ///< after a failed sync, the next process believes what it reads
  cursor_ahead_accepted,        ///< a cursor stays past the end of a log that a power cut has shortened
};

#ifdef LIGHTQ_SEEDED_BUGS
/// The bug in force.
inline SeededBug seeded_bug = SeededBug::none;
inline bool seeded(SeededBug bug) {
  return seeded_bug == bug;
}
/// Would this header pass if nobody looked at its checksum?
inline bool forgiven_header(ByteView available) {
  std::array<std::byte, batch_layout::header_bytes> header{};
  if (!seeded(SeededBug::header_crc_unchecked) || available.size() < header.size()) return false;
  std::copy_n(available.begin(), header.size(), header.begin());
  store_little_endian(header.data() + batch_layout::header_crc, batch_header_crc(header.data()));
  return !BatchView::check_stored_header({header.data(), available.size()}).has_value();
}
/// Would this body pass if nobody looked at its checksum?
inline bool forgiven_body(const BatchView& batch) {
  if (!seeded(SeededBug::body_crc_unchecked)) return false;
  std::vector<std::byte> copy(batch.bytes().begin(), batch.bytes().end());
  store_little_endian(copy.data() + batch_layout::body_crc, batch_body_crc(copy));
  return !BatchView::trusted(copy.data()).check_body().has_value();
}
#else
/// Is this bug in force? Never, outside of the tests of the tests.
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
