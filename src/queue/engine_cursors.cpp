/// An open queue: named cursors, and searching by time. Layer: queue.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "queue/engine.hpp"
#include "queue/reader_state.hpp"

namespace lightq::queue {

namespace {

constexpr std::uint64_t check_again_after = 4096;  // messages, in the segment that is being written

}  // namespace

// Creates the cursor table. The log has to be durable first, because the table names it.
Result<log::CursorTable*> Engine::cursor_table() {
  if (cursors_ != nullptr) return cursors_.get();
  if (auto settled = log_->settle(); !settled) return settled.error();
  auto made = log::CursorTable::make(storage(), directory_, log_->incarnation());
  if (!made) return made.error();
  cursors_ = std::move(*made);
  note_log();
  return cursors_.get();
}

Result<log::TableCursor*> Engine::take_cursor(std::string_view name, const Start& start) {
  if (!TopicName::parse(name)) {
    return Error{ErrorCode::invalid_argument, "not a valid name of a cursor: \"" + std::string(name) + "\"",
                 0};
  }
  {
    const Lock lock(mutex_);
    if (!taken_.emplace(name).second) {
      return Error{ErrorCode::in_use, "the cursor " + std::string(name) + " is open already", 0};
    }
  }
  auto cursor = find_or_create(name, start);
  if (!cursor) {
    const Lock lock(mutex_);
    taken_.erase(taken_.find(name));
  }
  return cursor;
}

Result<log::TableCursor*> Engine::find_or_create(std::string_view name, const Start& start) {
  Lock lock(mutex_);
  const auto table = cursor_table();
  tell_failure(lock);
  lock.unlock();
  if (!table) return table.error();
  auto found = (*table)->find(name);
  if (!found || *found != nullptr) return found;
  return create_cursor(**table, name, start);
}

// The new cursor counts before it exists. No message at its start may be dropped while that is searched for,
// or while the cursor's name is written to disk.
Result<log::TableCursor*> Engine::create_cursor(log::CursorTable& table, std::string_view name,
                                                const Start& start) {
  Lock lock(mutex_);
  ++cursors_being_made_;
  lock.unlock();
  const auto committed = resolve(start);
  auto created = committed ? table.create(name, *committed) : committed.error();
  lock.lock();
  --cursors_being_made_;
  if (created) all_cursors_.push_back(*created);
  if (room_is_wanted()) room_made_.increase();
  return created;
}

void Engine::give_back(const log::TableCursor& cursor) {
  const Lock lock(mutex_);
  taken_.erase(cursor.name());
}

Result<void> Engine::remove_cursor(std::string_view name) {
  Lock lock(mutex_);
  if (taken_.contains(name)) {
    return Error{ErrorCode::in_use, "the cursor " + std::string(name) + " is open", 0};
  }
  if (cursors_ == nullptr) {
    return Error{ErrorCode::invalid_argument, "there is no cursor named " + std::string(name), 0};
  }
  log::CursorTable& table = *cursors_;
  const auto reserved = taken_.emplace(name).first;
  lock.unlock();
  const auto cursor = table.find(name);
  auto removed = table.remove(name);
  lock.lock();
  taken_.erase(reserved);
  if (!removed) return removed;
  // Removes one entry only: another cursor may already have the same slot of the table.
  const auto known =
      cursor ? std::find(all_cursors_.begin(), all_cursors_.end(), *cursor) : all_cursors_.end();
  if (known != all_cursors_.end()) all_cursors_.erase(known);
  cursor_is_damaged_ = !table.damaged().empty();
  drop_committed();
  if (room_is_wanted()) room_made_.increase();
  return removed;
}

// The lock keeps commits of other cursors from dropping the messages to which this one returns.
Offset Engine::go_back(log::TableCursor& cursor, Offset offset) {
  const Lock lock(mutex_);
  const Offset kept = clamped(offset);
  cursor.commit(kept);
  return kept;
}

Offset Engine::committed(const log::TableCursor& cursor) {
  Lock lock(mutex_);
  drop_committed();
  if (room_is_wanted()) room_made_.increase();
  // Without a background thread, the writer does the work at its next batch.
  if (options_.background) post_due_work();
  const auto node = log_->node_of(cursor.committed());
  if (node != nullptr && node->next() != nullptr) return node->end_offset();
  return cursor.committed() + check_again_after;
}

Result<Offset> Engine::offset_of_cursor(const std::string& name) {
  Lock lock(mutex_);
  log::CursorTable* const cursors = cursors_.get();
  lock.unlock();
  if (cursors != nullptr) {
    const auto found = cursors->find(name);
    if (!found) return found.error();
    if (*found != nullptr) return (*found)->committed();
  }
  return Error{ErrorCode::invalid_argument, "there is no cursor named " + name, 0};
}

Result<Offset> Engine::offset_at_time(Timestamp time) {
  std::shared_ptr<log::SegmentNode> node;
  {
    const Lock lock(mutex_);
    const auto& segments = log_->segments();
    // The clock may have been set back, so a later segment may be older.
    const auto found = std::ranges::find_if(
        segments, [&](const auto& segment) { return !segment->empty() && time <= segment->newest(); });
    // The time is after all complete batches, so only the batch that is being packed can match, if there is
    // one.
    if (found != segments.end()) {
      node = (*found)->node();
    } else if (!segments.empty()) {
      node = segments.back()->node();
    }
  }
  if (node == nullptr) return next_offset();
  return first_batch_at(*this, node, time);
}

}  // namespace lightq::queue
