/// Records a failed sync for the next process, and writes the affected bytes again. docs/reliability.md,
/// "After a failed sync". Layer: log.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "log/segment/segment_file.hpp"
#include "log/storage/storage.hpp"

namespace lightq::log {

/// The name of the mark: a file in the log's directory, from a failed sync until all affected bytes have been
/// written again. It need not survive a power cut: after one, reads return the bytes on the disk.
inline constexpr const char* failed_sync_name = "sync-failed";

/// Creates the mark, if the failing disk permits that.
void mark_failed_sync(const std::string& directory, Storage& storage);
[[nodiscard]] bool has_failed_sync(const std::string& directory, Storage& storage);
void clear_failed_sync(const std::string& directory, Storage& storage);

/// Reads the first page of each unsealed segment and writes the same bytes again. Does the same with all
/// bytes, up to the end of the last file, that no checkpoint states to be on disk. Then syncs. The reason:
/// after a failed sync the system may take unwritten pages for clean. Requires: segments as recovered, with
/// their files open. Errors: as File.
Result<void> write_again(const std::deque<std::unique_ptr<SegmentFile>>& segments);

}  // namespace lightq::log
