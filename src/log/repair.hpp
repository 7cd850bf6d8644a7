/// Makes a sound log out of a broken one: docs/log_format.md, "Broken disks". Layer: log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "log/cursor_file.hpp"
#include "log/repair_plan.hpp"
#include "log/storage.hpp"

namespace lightq::log {

struct RepairOptions {
  bool trust_batches = false;  ///< see plan_repair
};

/// What a repair did.
struct RepairReport {
  std::size_t segments_read = 0;
  std::size_t segments_written = 0;
  std::size_t segments_kept = 0;  ///< in place only
  std::uint64_t messages = 0;     ///< that the log has now
  std::vector<LostRange> lost;    ///< stated in the new log's headers
  Offset first_offset;
  Offset next_offset;
  std::size_t cursors = 0;
  std::vector<std::string> clamped_cursors;  ///< stood past the end
  std::string cursors_lost;                  ///< why no cursors could be had; empty: they could
  std::vector<std::string>
      lost_cursors;  ///< of an embedded queue's table: what was wrong; the sound ones stay
  std::string
      producers_lost;  ///< in place: why what was known of producers could not be had; empty: it could
  std::size_t indexes_dropped = 0;  ///< in place: did not fit their segments; made anew when needed
  std::string moved_to;             ///< in place: where the old files are; empty: nothing was moved

  [[nodiscard]] std::uint64_t lost_messages() const;
};

/// Writes what can be saved of the log in `directory` to `output`, which must not exist: under another name
/// first, synced, then renamed. The log itself is only read. Errors: invalid_argument (`output` exists),
/// foreign_format, no_space, io_error, corrupt (the disk gives other bytes each time); nothing new stays
/// then.
Result<RepairReport> repair_to(const std::string& directory, const std::string& output,
                               const RepairOptions& options, Storage& storage);

/// Replaces the files that need it, and gives the old ones a name in a subdirectory `damaged-N` first. Nobody
/// may have the log open. Cut off half-way, it can be run again. Errors: as above; until `damaged-N` is
/// synced nothing has changed but that there may be `.prepared` files, which the next opening removes.
Result<RepairReport> repair_in_place(const std::string& directory, const RepairOptions& options,
                                     Storage& storage);

/// What the names of the directories begin with that repairs in place make.
inline constexpr const char* damaged_prefix = "damaged-";

}  // namespace lightq::log
