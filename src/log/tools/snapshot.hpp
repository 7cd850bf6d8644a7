/// Makes a snapshot: a copy of a log's current state, also while another process writes the log.
/// docs/log_format.md, "Broken disks". Layer: tools.
#pragma once

#include <cstdint>
#include <string>

#include "log/storage/storage.hpp"

namespace lightq::log {

/// The contents of a snapshot.
struct SnapshotReport {
  std::size_t segments = 0;
  std::size_t linked = 0;  ///< of `segments`: those that share their bytes with the log
  std::uint64_t copied_bytes = 0;
  Offset first_offset;
  Offset next_offset;
  std::size_t damages = 0;  ///< damaged ranges in the copied files; the log has the same ones
};

/// Makes a snapshot of the log in `directory` at `output`. Sealed segments get a second name, or are copied
/// if the file system cannot link; others are copied up to the last complete batch. The newest cursors are
/// copied, too, and carried messages, whose damages and bytes are counted. The copy is marked as restored
/// (mark_restored). Everything is synced under a temporary name, then renamed to `output`. Writes nothing in
/// `directory`; its writer may continue. Requires: `output` does not exist. Errors: no_space; io_error, also
/// if `directory` does not exist or disappears meanwhile; foreign_format (a newer version wrote the log);
/// busy (the log dropped its segments faster than they could be copied). After an error no new file stays.
Result<SnapshotReport> snapshot_log(const std::string& directory, const std::string& output,
                                    Storage& storage);

/// Makes a snapshot of a topic's log as snapshot_log does, and of its delayed messages (the directory
/// `delayed`), if there are any. These are copied first: a message that leaves meanwhile is then in both
/// copies, and never in none. Both get the name `output` at once. Counts the damages and the copied bytes of
/// both. Errors: as for snapshot_log.
Result<SnapshotReport> snapshot_topic(const std::string& directory, const std::string& output,
                                      Storage& storage);

}  // namespace lightq::log
