/// Repairs a damaged log: docs/log_format.md, "Broken disks". Layer: tools.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "log/saved_state/cursor_file.hpp"
#include "log/storage/storage.hpp"
#include "log/tools/repair_plan.hpp"

namespace lightq::log {

struct RepairOptions {
  bool trust_batches = false;  ///< see plan_repair
};

/// The result of a repair.
struct RepairReport {
  std::size_t segments_read = 0;
  std::size_t segments_written = 0;
  std::size_t segments_kept = 0;  ///< in place only
  std::uint64_t messages = 0;     ///< number in the repaired log
  std::vector<LostRange> lost;    ///< the new log's headers state them
  Offset first_offset;
  Offset next_offset;
  std::size_t cursors = 0;
  std::vector<std::string> clamped_cursors;  ///< names of cursors that were past the end
  std::string cursors_lost;  ///< why all cursors of the cursor files are lost; empty: they are not
  std::vector<std::string>
      lost_cursors;                 ///< an embedded queue's: the damage of its table; sound cursors stay
  std::string producers_lost;       ///< in place: why the producer files are lost; empty: they are not
  std::size_t indexes_dropped = 0;  ///< in place: number of index files that did not fit; rebuilt when needed
  std::string moved_to;             ///< in place: directory of the old files; empty: no file was replaced

  [[nodiscard]] std::uint64_t lost_messages() const;
};

/// Writes the messages of the log in `directory` that can be saved to `output`. Only reads the log itself.
/// Writes the new log under another name, syncs it and then renames it. Requires: `output` does not exist.
/// Errors: invalid_argument (`output` exists), foreign_format, no_space, io_error, corrupt (the disk returns
/// other bytes at each read); then nothing new remains.
Result<RepairReport> repair_to(const std::string& directory, const std::string& output,
                               const RepairOptions& options, Storage& storage);

/// Replaces the files that need it, after giving the old ones a second name in a subdirectory `damaged-N`. If
/// it is interrupted, it can be run again. Requires: no process has the log open. Errors: foreign_format,
/// no_space, io_error, corrupt, as repair_to. Until `damaged-N` is synced, only two things can have changed:
/// a segment that was begun without a name has its name, and there may be `.prepared` files, which the next
/// open removes.
Result<RepairReport> repair_in_place(const std::string& directory, const RepairOptions& options,
                                     Storage& storage);

}  // namespace lightq::log
