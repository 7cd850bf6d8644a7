/// Copies a range of a segment file into a new sealed one, for repairs and snapshots. Layer: tools.
#pragma once

#include <cstdint>
#include <string>

#include "log/format/segment_format.hpp"
#include "log/storage/storage.hpp"

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

}  // namespace lightq::log
