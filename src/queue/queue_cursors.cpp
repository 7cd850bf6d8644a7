/// Makes, opens and removes the named cursors of a queue. Layer: queue.
#include "queue/queue_cursors.hpp"

#include <cstdint>
#include <utility>

namespace lightq::queue {

namespace {

constexpr std::uint64_t check_again_after = 4096;  // messages, in the segment that is being written

Error no_cursor(std::string_view name) {
  return {ErrorCode::invalid_argument, "there is no cursor named " + std::string(name), 0};
}

}  // namespace

Result<void> QueueCursors::open(QueueRecovery& found) {
  if (log_->segments().empty()) return {};
  auto opened = log::CursorTable::open(log_.storage(), log_.directory(), log_->incarnation());
  if (!opened && log::is_missing(opened.error())) return {};
  if (!opened) return opened.error();
  log::CursorTable& table = **opened;
  found.clamped_cursors = table.clamp(log_->next_offset());
  // Sync before new messages are appended. Otherwise a power cut could restore the earlier, higher position,
  // and skip them.
  if (!found.clamped_cursors.empty()) {
    if (auto flushed = table.flush(); !flushed) return flushed;
  }
  registry_.adopt(std::move(*opened));
  space_.drop_committed();
  return {};
}

// Creates the cursor table. The log has to be durable first, because the table names it.
Result<log::CursorTable*> QueueCursors::table() {
  if (registry_.table() != nullptr) return registry_.table();
  if (auto settled = log_->settle(); !settled) return settled.error();
  auto made = log::CursorTable::make(log_.storage(), log_.directory(), log_->incarnation());
  if (!made) return made.error();
  registry_.set_table(std::move(*made));
  jobs_.note_log();
  return registry_.table();
}

Result<log::TableCursor*> QueueCursors::take(std::string_view name, const FindStart& start) {
  if (!TopicName::parse(name)) {
    return Error{ErrorCode::invalid_argument, "not a valid name of a cursor: \"" + std::string(name) + "\"",
                 0};
  }
  {
    const QueueLock lock(mutex_);
    if (!registry_.open(name)) {
      return Error{ErrorCode::in_use, "the cursor " + std::string(name) + " is open already", 0};
    }
  }
  auto cursor = find_or_create(name, start);
  if (!cursor) {
    const QueueLock lock(mutex_);
    registry_.close(name);
  }
  return cursor;
}

Result<log::TableCursor*> QueueCursors::find_or_create(std::string_view name, const FindStart& start) {
  QueueLock lock(mutex_);
  const auto there = table();
  jobs_.tell_failure(lock);
  lock.unlock();
  if (!there) return there.error();
  auto found = (*there)->find(name);
  if (!found || *found != nullptr) return found;
  return create(**there, name, start);
}

Result<log::TableCursor*> QueueCursors::create(log::CursorTable& table, std::string_view name,
                                               const FindStart& start) {
  QueueLock lock(mutex_);
  registry_.begin_making();
  lock.unlock();
  const auto committed = start();
  auto created = committed ? table.create(name, *committed) : committed.error();
  lock.lock();
  registry_.end_making(created ? *created : nullptr);
  room_.note_made();
  return created;
}

void QueueCursors::give_back(const log::TableCursor& cursor) {
  const QueueLock lock(mutex_);
  registry_.close(cursor.name());
}

Result<void> QueueCursors::remove(std::string_view name) {
  QueueLock lock(mutex_);
  if (registry_.is_open(name)) {
    return Error{ErrorCode::in_use, "the cursor " + std::string(name) + " is open", 0};
  }
  if (registry_.table() == nullptr) return no_cursor(name);
  log::CursorTable& table = *registry_.table();
  registry_.open(name);  // so that no other thread opens it meanwhile
  lock.unlock();
  const auto cursor = table.find(name);
  auto removed = table.remove(name);
  lock.lock();
  registry_.close(name);
  if (!removed) return removed;
  registry_.note_removed(cursor ? *cursor : nullptr);
  space_.drop_committed();
  room_.note_made();
  return removed;
}

Offset QueueCursors::committed(const log::TableCursor& cursor) {
  QueueLock lock(mutex_);
  space_.drop_committed();
  room_.note_made();
  // Without a background thread, the writer does the work at its next batch.
  if (log_.options().background) jobs_.post();
  const auto node = log_->segments().node_of(cursor.committed());
  if (node != nullptr && node->next() != nullptr) return node->end_offset();
  return cursor.committed() + check_again_after;
}

Result<Offset> QueueCursors::offset_of(const std::string& name) {
  QueueLock lock(mutex_);
  log::CursorTable* const cursors = registry_.table();
  lock.unlock();
  if (cursors != nullptr) {
    const auto found = cursors->find(name);
    if (!found) return found.error();
    if (*found != nullptr) return (*found)->committed();
  }
  return no_cursor(name);
}

Result<void> QueueCursors::flush() {
  QueueLock lock(mutex_);
  log::CursorTable* const cursors = registry_.table();
  lock.unlock();
  return cursors != nullptr ? cursors->flush() : Result<void>{};
}

}  // namespace lightq::queue
