/// An open embedded queue: its log, the batch that is being packed, its cursors, and its maintenance. Layer:
/// queue.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <lightq/queue.hpp>

#include "log/saved_state/cursor_table.hpp"
#include "log/storage/directory_lock.hpp"
#include "queue/cursor_registry.hpp"
#include "queue/durability.hpp"
#include "queue/group_commit.hpp"
#include "queue/hand_off_mutex.hpp"
#include "queue/held_storage.hpp"
#include "queue/message_packer.hpp"
#include "queue/queue_appender.hpp"
#include "queue/queue_cursors.hpp"
#include "queue/queue_jobs.hpp"
#include "queue/queue_lock.hpp"
#include "queue/queue_log.hpp"
#include "queue/queue_space.hpp"
#include "queue/reader_feed.hpp"
#include "queue/room_waits.hpp"
#include "queue/segment_source.hpp"

namespace lightq::queue {

/// The engine behind lightq::Queue.
///
/// Composes classes with one task each: QueueLog has the log, MessagePacker the open batch, QueueAppender
/// appends messages that the open batch does not take, GroupCommit appends for several writers at once,
/// QueueSpace drops messages, QueueCursors has the named cursors, QueueJobs the disk jobs and the background
/// thread. Each knows only parts that are declared before it here.
///
/// Locks: `mutex_` guards the log and the state of the parts, unless they state otherwise. It is never locked
/// while a disk job runs (DiskJob::run) or a callback is called.
/// - The writer's fast path adds a message to the open batch. It locks only with `many_writers`, because the
///   open batch belongs to the writer. The batch is begun and completed under the lock.
/// - Readers lock to begin, to seek, and to find a segment after a drop.
/// - The background thread never waits for the lock. A thread that has it takes finished jobs from the
///   background thread, and posts the next.
class Engine final : private HasHeldStorage, public SegmentSource {
 public:
  static Result<std::unique_ptr<Engine>> open(const std::string& directory, const QueueOptions& options,
                                              log::Storage& storage);
  /// Opens a queue in a directory that the caller has locked.
  static Result<std::unique_ptr<Engine>> open(const std::string& directory, const QueueOptions& options,
                                              log::Storage& storage, log::DirectoryLock lock);
  ~Engine() override;
  Result<void> close();
  /// Closes the descriptors of the directory's lock, and does nothing else; the parent still has the lock.
  /// Called instead of the destructor in a child process.
  void abandon() { held_.abandon(); }

  Result<Offset> enqueue(ByteView payload);
#ifdef LIGHTQ_RECORD_SUM_WIDE
  /// See enqueue. Requires: RecordSum::may_be_wide is true for the message.
  LIGHTQ_AVX2_TARGET Result<Offset> enqueue_wide(ByteView payload);
#endif
  Result<Offset> append(std::span<std::byte> batch) { return appender_.append(batch); }

  Result<void> flush();
  [[nodiscard]] Offset durable_offset() const { return log_.durable_offset(); }
  Result<bool> wait_durable(Offset offset, std::chrono::milliseconds timeout);
  void on_durable(Offset offset, DurabilityWaits::Callback done);
  Result<void> trim(Offset before);
  void maintain();

  /// See QueueCursors::take. The cursor belongs to the caller until `give_back`.
  Result<log::TableCursor*> take_cursor(std::string_view name, const Start& start);
  void give_back(const log::TableCursor& cursor) { cursors_.give_back(cursor); }
  Result<void> remove_cursor(std::string_view name) { return cursors_.remove(name); }
  /// Commits `offset`, or the nearest offset that is kept, while no messages are dropped. Returns the
  /// committed offset.
  Offset go_back(log::TableCursor& cursor, Offset offset);
  /// See QueueCursors::committed.
  Offset committed(const log::TableCursor& cursor) { return cursors_.committed(cursor); }
  /// Returns true if a writer waits for commits; then each commit has to be noted.
  [[nodiscard]] bool room_is_wanted() const { return room_.is_wanted(); }

  [[nodiscard]] QueueStats stats() const;
  [[nodiscard]] const QueueRecovery& recovery() const { return recovery_; }
  [[nodiscard]] const QueueOptions& options() const { return log_.options(); }

  // Implementation of SegmentSource.
  std::shared_ptr<log::SegmentNode> node_of(Offset offset) override;
  [[nodiscard]] Offset first_offset() const override { return log_.first_offset(); }
  bool wait(Offset offset, std::chrono::milliseconds timeout) override;

 private:
  Engine(const std::string& directory, const QueueOptions& options, log::Storage& storage,
         log::DirectoryLock lock);
  Result<void> open_parts();
  void start_background();
  void serve_background();
  Result<Offset> enqueue_otherwise(ByteView payload);
  /// Publishes the message at `offset` to readers, and wakes them if necessary.
  Result<Offset> shown(Offset offset) {
    publish(offset + 1);
    if (feed_.readers().may_wait()) [[unlikely]]
      return woken(offset);
    return offset;
  }
  Result<Offset> woken(Offset offset);
  Result<Offset> offset_at_time(Timestamp time) override;
  Result<Offset> offset_of_cursor(const std::string& name) override { return cursors_.offset_of(name); }

  QueueLog log_;
  const bool quick_;   // only one thread writes to the open batch
  const bool groups_;  // writers that wait for the disk append together
  MessagePacker packer_;
  ReaderFeed feed_;
  QueueRecovery recovery_;
  mutable HandOffMutex mutex_{[this] { serve_background(); }};
  RoomWaits room_;
  CursorRegistry registry_;
  QueueJobs jobs_;
  QueueSpace space_;
  QueueAppender appender_;
  GroupCommit group_commit_;
  QueueCursors cursors_;
  std::uint64_t beat_call_ = 0;  // id of the call of each beat that wakes the background thread
};

}  // namespace lightq::queue
