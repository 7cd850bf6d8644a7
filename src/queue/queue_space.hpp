/// Makes space in a queue: retention, dropping committed messages, and the overflow policy. Layer: queue.
#pragma once

#include <cstddef>
#include <cstdint>

#include "log/log.hpp"
#include "queue/cursor_registry.hpp"
#include "queue/message_packer.hpp"
#include "queue/queue_jobs.hpp"
#include "queue/queue_lock.hpp"
#include "queue/queue_log.hpp"
#include "queue/room_waits.hpp"

namespace lightq::queue {

/// Decides which messages a queue drops, and makes a writer wait or fail if there is no space.
///
/// Owns the number of messages that the overflow policy has dropped. Called by QueueAppender before each
/// batch, by QueueCursors after commits, and by Engine. Thread: guarded by the queue's lock.
///
/// Invariants: with drop_committed, only messages before the lowest committed offset are dropped, unless the
/// overflow policy or retention drops others. While a batch is open, the last segment stays, because the
/// batch lies in it.
class QueueSpace {
 public:
  /// Lifetime: all must outlive this object.
  QueueSpace(QueueLog& log, MessagePacker& packer, const CursorRegistry& cursors, RoomWaits& room,
             QueueJobs& jobs)
      : log_(log), packer_(packer), cursors_(cursors), room_(room), jobs_(jobs) {}

  /// Drops the messages that all cursors have committed, with QueueOptions::drop_committed.
  void drop_committed();
  /// Drops messages that the settings of retention do not keep.
  void apply_retention();
  /// Closes the open batch and makes space. On success no batch is open. While this waits for space, the lock
  /// may be released, and another writer may open a batch. Errors: limit_reached, timeout, and those of the
  /// log.
  Result<void> make(QueueLock& lock, std::size_t bytes, std::uint64_t records);
  /// Returns the error for an append that the log has refused. Also reports a failed sync, which may be the
  /// reason.
  [[nodiscard]] Error refused(QueueLock& lock, log::AppendOutcome outcome, std::size_t bytes);
  /// Returns how many messages were dropped for newer ones.
  [[nodiscard]] std::uint64_t dropped_messages() const { return dropped_messages_; }

 private:
  [[nodiscard]] bool make_from_committed(std::size_t bytes, std::uint64_t records);
  Result<void> make_by_policy(QueueLock& lock, std::size_t bytes, std::uint64_t records);
  Result<void> wait(QueueLock& lock, std::size_t bytes, std::uint64_t records);
  [[nodiscard]] Error error_of(log::AppendOutcome outcome, std::size_t bytes) const;

  QueueLog& log_;
  MessagePacker& packer_;
  const CursorRegistry& cursors_;
  RoomWaits& room_;
  QueueJobs& jobs_;
  std::uint64_t dropped_messages_ = 0;
};

}  // namespace lightq::queue
