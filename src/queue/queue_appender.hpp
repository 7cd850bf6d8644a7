/// Appends messages and batches to a queue. Layer: queue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <lightq/queue.hpp>

#include "queue/message_packer.hpp"
#include "queue/queue_jobs.hpp"
#include "queue/queue_lock.hpp"
#include "queue/queue_log.hpp"
#include "queue/queue_space.hpp"
#include "queue/reader_feed.hpp"

namespace lightq::queue {

/// Appends everything that the open batch does not take: begins and completes batches, writes large messages
/// and whole batches, and does the work that an append makes due.
///
/// Owns a builder for single messages, and the knowledge of which segment it has seen. Called by Engine and
/// GroupCommit. Thread: many writers at a time, guarded by the queue's lock; else the writer's.
///
/// Invariants: a message is shown to readers only after it is completely stored. In a queue that is not
/// mapped, at most about 48 MiB are not durable, because an opening after a power cut has to scan them.
class QueueAppender {
 public:
  /// Lifetime: all must outlive this object.
  QueueAppender(QueueLog& log, HandOffMutex& mutex, MessagePacker& packer, ReaderFeed& feed, QueueJobs& jobs,
                QueueSpace& space)
      : log_(log), mutex_(mutex), packer_(packer), feed_(feed), jobs_(jobs), space_(space) {}

  /// Adds a message to the open batch or a new one, or writes it as a batch of its own. Requires: the log is
  /// mapped.
  Result<Offset> enqueue_packed(ByteView payload);
  /// Writes a message as a batch. Requires: the log is not mapped.
  Result<Offset> enqueue_written(ByteView payload);
  /// Appends a batch, and syncs it with flush.each_append.
  Result<Offset> append(std::span<std::byte> batch);
  /// Appends a batch and does not wait for a sync.
  Result<Offset> append_unsynced(QueueLock& lock, std::span<std::byte> batch, std::uint64_t records);

  /// Refuses all further appends.
  void close() { closed_ = true; }
  [[nodiscard]] bool is_closed() const { return closed_; }
  static Error closed_error() { return {ErrorCode::closed, "the queue was closed", 0}; }

 private:
  [[nodiscard]] QueueLock lock_writer();
  Offset show(Offset offset) {
    feed_.show(offset + 1);
    return offset;
  }
  Result<Offset> enqueue_into_new_batch(QueueLock& lock, ByteView payload);
  Result<Offset> enqueue_large(QueueLock& lock, ByteView payload);
  Result<void> open_batch(QueueLock& lock, std::size_t payload_bytes);
  void announce_new_segment();
  Result<Offset> append_locked(QueueLock& lock, std::span<std::byte> batch, std::uint64_t records);
  void after_append(QueueLock& lock);

  QueueLog& log_;
  HandOffMutex& mutex_;
  MessagePacker& packer_;
  ReaderFeed& feed_;
  QueueJobs& jobs_;
  QueueSpace& space_;
  BatchBuilder builder_;  // with many_writers guarded by the lock; else the writer's
  std::uint64_t rolls_seen_ = 0;
  bool closed_ = false;
};

}  // namespace lightq::queue
