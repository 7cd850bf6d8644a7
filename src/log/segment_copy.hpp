/// Writes a sealed segment file out of a stretch of another one, for repairs and snapshots. Layer: log.
#pragma once

#include <cstdint>
#include <string>

#include "log/segment_format.hpp"
#include "log/storage.hpp"

namespace lightq::log {

/// What goes into the new file.
struct SegmentCopy {
  std::string path;
  SegmentHeader header = {};  ///< its file_bytes are set to what is needed
  std::uint64_t begin = 0;    ///< positions in the other file; begin equals end: no batches
  std::uint64_t end = 0;
  Offset end_offset = {};
  Timestamp newest = {};
  /// Every batch is checked in the new file. Without it, what was damaged stays so, and what cannot be read
  /// becomes zeros.
  bool must_be_sound = true;
};

/// Writes and syncs the file; the name is the caller's to sync. Errors: no_space, io_error, corrupt (`from`
/// gave other bytes than before); nothing stays at `copy.path` then.
Result<void> write_sealed_segment(File& from, SegmentCopy copy, Storage& storage);
/// As above, of no batches.
Result<void> write_empty_segment(SegmentCopy copy, Storage& storage);

/// Copies the cursor table of an embedded queue from one directory to another, and syncs it; none there is no
/// error. Its queue may go on. Errors as above.
Result<void> copy_cursor_table(const std::string& from, const std::string& to, Storage& storage);

/// Copies a file as it is, zeros for what cannot be read, and syncs it. Errors as above.
Result<void> copy_file(const std::string& from, const std::string& to, Storage& storage);

/// Removes the files in a directory, and it; what cannot be removed stays. For what was not finished.
void remove_files(const std::string& directory, Storage& storage);

/// The directory that holds `path`.
std::string directory_of(const std::string& path);

}  // namespace lightq::log
