/// A copy of a log as it stands, made while somebody writes it: docs/log_format.md, "Broken disks". Layer:
/// log.
#pragma once

#include <cstdint>
#include <string>

#include "log/storage.hpp"

namespace lightq::log {

/// What a snapshot holds.
struct SnapshotReport {
  std::size_t segments = 0;
  std::size_t linked = 0;  ///< of these, share their bytes with the log
  std::uint64_t copied_bytes = 0;
  Offset first_offset;
  Offset next_offset;
  std::size_t damages = 0;  ///< stretches of the copied files that are as damaged as they were
};

/// Makes a snapshot of the log in `directory` at `output`, which must not exist: sealed segments get a second
/// name (or are copied where the file system cannot), the others are copied up to the last complete batch,
/// and the newest cursors with them. Everything is synced, then renamed from another name to `output`. Writes
/// nothing in `directory`; whoever writes the log may go on. Errors: no_space, io_error, busy (the log
/// dropped its segments faster than they could be copied); nothing new stays then.
Result<SnapshotReport> snapshot_log(const std::string& directory, const std::string& output,
                                    Storage& storage);

}  // namespace lightq::log
