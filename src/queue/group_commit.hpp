/// Appends the messages of several writers together, so that one sync serves all. Layer: queue.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include <lightq/queue.hpp>

#include "queue/append_group.hpp"
#include "queue/queue_appender.hpp"
#include "queue/queue_jobs.hpp"
#include "queue/queue_lock.hpp"
#include "queue/queue_log.hpp"

namespace lightq::queue {

/// Group commit, for many writers that each wait for the disk. While one sync runs, arriving messages join
/// the next group; its first writer appends and syncs for all.
///
/// Owns the group that messages can join. Called by Engine. Thread: any; takes the queue's lock.
///
/// Invariant: a writer returns only when its message is durable, or cannot become so. Example: writers A, B
/// and C enqueue while a sync runs. A leads: after that sync it appends one batch of three messages, syncs
/// it, and wakes B and C.
class GroupCommit {
 public:
  /// Lifetime: all must outlive this object.
  GroupCommit(QueueLog& log, HandOffMutex& mutex, QueueJobs& jobs, QueueAppender& appender)
      : log_(log), mutex_(mutex), jobs_(jobs), appender_(appender) {}

  /// Returns true if writers of a queue with these settings append in groups. Not if an append may wait for
  /// space, because then one writer would wait on behalf of the whole group.
  [[nodiscard]] static bool suits(const QueueOptions& options);
  /// Appends a message in a group, and returns its offset once it is durable.
  Result<Offset> enqueue(ByteView payload);

 private:
  void lead(QueueLock& lock, AppendGroup& group);
  void gather(QueueLock& lock, const AppendGroup& group) const;
  static void lock_soon(QueueLock& lock);
  void append_each(QueueLock& lock, AppendGroup& group);

  QueueLog& log_;
  HandOffMutex& mutex_;
  QueueJobs& jobs_;
  QueueAppender& appender_;
  std::shared_ptr<AppendGroup> group_;          // the group that messages can join; null: none
  std::uint32_t last_group_ = 0;                // the number of messages in the last group
  std::chrono::nanoseconds last_group_took_{};  // time from its append until it was durable
};

}  // namespace lightq::queue
