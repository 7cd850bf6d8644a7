/// Copies a range of a segment file into a new sealed one, for repairs and snapshots, and marks logs that are
/// copies. Layer: log.
#pragma once

#include <cstdint>
#include <string>

#include "log/segment_format.hpp"
#include "log/storage.hpp"

namespace lightq::log {

/// The content of the new file.
struct SegmentCopy {
  std::string path;
  SegmentHeader header = {};  ///< its file_bytes are set to the necessary size
  std::uint64_t begin = 0;    ///< positions in the source file; equal to `end`: no batches
  std::uint64_t end = 0;
  Offset end_offset = {};
  Timestamp newest = {};
  /// Checks every batch in the new file. If false, damaged bytes are copied as they are, and unreadable ones
  /// become zeros.
  bool must_be_sound = true;
};

/// Writes and syncs the file. The caller syncs its name. Errors: no_space, io_error, corrupt (`from` returned
/// other bytes than before); then no file remains at `copy.path`.
Result<void> write_sealed_segment(File& from, SegmentCopy copy, Storage& storage);
/// Writes and syncs a sealed segment without batches. Errors: as write_sealed_segment.
Result<void> write_empty_segment(SegmentCopy copy, Storage& storage);

/// Copies an embedded queue's cursor table from one directory to another and syncs it. If there is none, it
/// succeeds. The queue may be in use meanwhile. Errors: no_space, io_error.
Result<void> copy_cursor_table(const std::string& from, const std::string& to, Storage& storage);

/// Copies a file and syncs the copy. Unreadable bytes become zeros. Errors: no_space, io_error.
Result<void> copy_file(const std::string& from, const std::string& to, Storage& storage);

/// Removes the files in a directory and then the directory, to clean up unfinished work. Ignores errors.
void remove_files(const std::string& directory, Storage& storage);

/// Returns the directory that contains `path`.
std::string directory_of(const std::string& path);

/// The name of the mark: an empty file in the directory of a log that is a copy or was repaired. The original
/// may have had more messages, which clients have seen. So a start of the broker that finds the mark at a
/// topic's log begins another life, then removes the mark. In a data directory, a file of this name marks all
/// its topics.
inline constexpr const char* restored_name = "restored";

/// Creates the mark and makes it survive a power cut. Errors: no_space, io_error.
Result<void> mark_restored(const std::string& directory, Storage& storage);
[[nodiscard]] bool is_marked_restored(const std::string& directory, Storage& storage);
/// Removes the mark. If a power cut brings it back, the next start only begins one more life. Errors:
/// io_error.
Result<void> clear_restored(const std::string& directory, Storage& storage);

}  // namespace lightq::log
