/// The named cursors of a queue: making, opening and removing them, and their commits. Layer: queue.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "log/saved_state/cursor_table.hpp"
#include "queue/cursor_registry.hpp"
#include "queue/queue_jobs.hpp"
#include "queue/queue_lock.hpp"
#include "queue/queue_log.hpp"
#include "queue/queue_space.hpp"
#include "queue/room_waits.hpp"

namespace lightq::queue {

/// Makes and removes cursors in the table on disk, and lets the queue drop committed messages.
///
/// Owns nothing: the table and the names of open cursors belong to the registry. Called by Engine. Thread:
/// any; takes the queue's lock, and releases it while the table is written to disk.
///
/// Invariant: the new cursor counts before it exists, so no message at its start is dropped while that is
/// searched for, or while the cursor's name is written.
class QueueCursors {
 public:
  /// Lifetime: all must outlive this object.
  QueueCursors(QueueLog& log, HandOffMutex& mutex, CursorRegistry& registry, RoomWaits& room, QueueJobs& jobs,
               QueueSpace& space)
      : log_(log), mutex_(mutex), registry_(registry), room_(room), jobs_(jobs), space_(space) {}

  /// Opens the table that an earlier process has left. Sets cursors back that are past the end of the log,
  /// and adds their names to `found`. Errors: those of CursorTable::open.
  Result<void> open(QueueRecovery& found);

  using FindStart = std::function<Result<Offset>()>;
  /// Returns the cursor with this name, created at `start` if there is none. It belongs to the caller until
  /// `give_back`. Errors: invalid_argument, in_use, and those of the disk.
  Result<log::TableCursor*> take(std::string_view name, const FindStart& start);
  void give_back(const log::TableCursor& cursor);
  Result<void> remove(std::string_view name);
  /// Notes that `cursor` has committed. Returns the offset from which on the cursor should call this again.
  Offset committed(const log::TableCursor& cursor);
  /// Returns the committed offset of the cursor with this name. Errors: invalid_argument, and those of the
  /// disk.
  Result<Offset> offset_of(const std::string& name);
  /// Makes all commits durable. Does nothing if there is no table.
  Result<void> flush();

 private:
  Result<log::CursorTable*> table();
  [[nodiscard]] Result<log::TableCursor*> find_or_create(std::string_view name, const FindStart& start);
  [[nodiscard]] Result<log::TableCursor*> create(log::CursorTable& table, std::string_view name,
                                                 const FindStart& start);

  QueueLog& log_;
  HandOffMutex& mutex_;
  CursorRegistry& registry_;
  RoomWaits& room_;
  QueueJobs& jobs_;
  QueueSpace& space_;
};

}  // namespace lightq::queue
