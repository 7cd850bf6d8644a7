/// A failed sync, remembered for the next process. docs/reliability.md, "After a failed sync". Layer: log.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "log/segment_file.hpp"
#include "log/storage.hpp"

namespace lightq::log {

/// Lies in a log's directory from a failed sync until all that it made doubtful has been written again. It
/// need not survive a power cut: what is read after one is what is on disk.
inline constexpr const char* failed_sync_name = "sync-failed";

/// Leaves the mark, as well as that can be done on a disk that fails.
void mark_failed_sync(const std::string& directory, Storage& storage);
[[nodiscard]] bool has_failed_sync(const std::string& directory, Storage& storage);
void clear_failed_sync(const std::string& directory, Storage& storage);

/// Writes the first page and all that no checkpoint or seal says to be on disk once more, as it reads, to the
/// end of the last file, and syncs it: the system may take pages for clean that it could not write. Requires
/// segments as recovered, with their files open. Errors: as File.
Result<void> write_again(const std::deque<std::unique_ptr<SegmentFile>>& segments);

}  // namespace lightq::log
