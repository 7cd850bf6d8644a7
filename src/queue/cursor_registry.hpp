/// The cursors of an open queue: which exist, which are open, and how far all of them have committed. Layer:
/// queue.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "log/saved_state/cursor_table.hpp"

namespace lightq::queue {

/// Knows the cursors of a queue and the lowest committed offset, before which messages may be dropped.
///
/// Owns the cursor table and the names of open cursors. QueueCursors changes it; QueueSpace asks for the
/// lowest committed offset. Thread: guarded by the queue's lock, except for the table, which has its own.
///
/// Invariant: committed_by_all is never higher than the position of any cursor, also of one that is damaged
/// or being made. Example: two cursors have committed 120 and 80, so committed_by_all is 80. While a third
/// one is being made it is 0, and nothing is dropped.
class CursorRegistry {
 public:
  /// Takes over the table that was found in the queue's directory.
  void adopt(std::unique_ptr<log::CursorTable> table);
  /// Returns the table, or null if there is none yet.
  [[nodiscard]] log::CursorTable* table() const { return table_.get(); }
  /// Sets the table that was made for the first cursor.
  void set_table(std::unique_ptr<log::CursorTable> made) { table_ = std::move(made); }

  /// Marks a name as open. Returns false if it is open already.
  bool open(std::string_view name) { return open_.emplace(name).second; }
  [[nodiscard]] bool is_open(std::string_view name) const { return open_.contains(name); }
  void close(std::string_view name) {
    if (const auto found = open_.find(name); found != open_.end()) open_.erase(found);
  }

  /// States that a cursor is being made: its position counts before it exists.
  void begin_making() { ++being_made_; }
  /// States that it was made, or not, if `cursor` is null.
  void end_making(log::TableCursor* cursor) {
    --being_made_;
    if (cursor != nullptr) cursors_.push_back(cursor);
  }
  /// Removes a cursor that has left the table; null if it was damaged.
  void note_removed(const log::TableCursor* cursor);

  /// Returns the lowest committed offset of all cursors; nothing if there are none.
  [[nodiscard]] std::optional<Offset> committed_by_all() const;

 private:
  std::unique_ptr<log::CursorTable> table_;
  std::vector<log::TableCursor*> cursors_;
  bool is_damaged_ = false;  // the table has a cursor that is not in cursors_
  // Cursors not in cursors_ yet; while there are any, no messages are dropped.
  std::uint32_t being_made_ = 0;
  std::set<std::string, std::less<>> open_;  // names of open cursors
};

}  // namespace lightq::queue
