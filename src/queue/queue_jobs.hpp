/// The disk jobs and syncs of a queue. Layer: queue.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "log/log.hpp"
#include "queue/disk_thread.hpp"
#include "queue/durability.hpp"
#include "queue/queue_lock.hpp"
#include "queue/queue_log.hpp"
#include "queue/room_waits.hpp"

namespace lightq::queue {

/// Runs the log's disk jobs: on the background thread if there is one, else on the thread that has made them
/// due. Tells waiting threads and callbacks how much has become durable.
///
/// Owns the background thread, the callbacks, and the count that threads wait for. Called by all parts that
/// append or drop, and by Engine. Thread: guarded by the queue's lock, except where a function says
/// otherwise. The lock is never held while a job runs or a callback is called.
///
/// Invariant: at most one job is out. Example: a writer waits until its message 99 is durable while a job
/// syncs up to 80. It sleeps until that job is finished, and then runs the job that syncs up to 99 itself.
class QueueJobs {
 public:
  /// Lifetime: both must outlive this object.
  QueueJobs(QueueLog& log, RoomWaits& room) : log_(log), room_(room) {}

  /// Publishes the log's state that other threads read without the lock. Wakes writers if there is more
  /// space, and reports a failed sync.
  void note_log();
  /// Reports a failed sync that was not part of a job. It happened while a file was removed to make space, or
  /// the first cursor was created.
  void tell_failure(QueueLock& lock);

  /// Does the work that is due, or lets the background thread do it.
  void do_or_post(QueueLock& lock);
  /// Posts the work that is due to the background thread. Requires: there is one.
  void post();
  /// Lets the background thread sync after flush.interval, if it has not been told to yet.
  void start_timer();
  /// Returns true if a job is out.
  [[nodiscard]] bool is_out() const { return is_out_; }
  /// Waits without the lock until the job that is out is finished. Requires: one is out.
  void wait_for_job(QueueLock& lock) { wait_without(lock, done_); }
  /// Makes everything before `offset` durable. One waiting thread syncs for all. Messages that other threads
  /// append meanwhile are part of the next sync.
  Result<void> sync_up_to(QueueLock& lock, Offset offset);

  /// Waits until everything before `offset` is durable, or a sync has failed. Returns at `until` at the
  /// latest.
  void wait_durable(QueueLock& lock, Offset offset, std::chrono::steady_clock::time_point until);
  /// Returns true if everything before `offset` is durable, or will not be because a sync has failed.
  [[nodiscard]] bool is_settled(Offset offset) const;
  void add_callback(Offset offset, DurabilityWaits::Callback done) {
    durability_.add(offset, std::move(done));
  }
  /// Returns the callbacks for everything that is durable, or all that are left.
  std::vector<DurabilityWaits::Callback> take_due() { return durability_.take(log_.durable_offset()); }
  std::vector<DurabilityWaits::Callback> take_all() { return durability_.take_all(); }

  /// Starts the background thread. It calls `look_up` when it has looked for work, without the lock.
  void start(std::function<void()> look_up);
  /// Takes over the job that the background thread has run. Returns false if the queue is being closed.
  bool take_over();
  /// Lets the background thread look for work again when the next work may be due. Called when it has looked.
  void renew_timer();
  /// Lets no more jobs be posted.
  void begin_stop() { stopping_ = true; }
  /// Stops the background thread after its job. Requires: the lock is not held.
  void stop() { background_.stop(); }

  /// A new segment has made work due. The next message, or a beat, wakes the background thread for it.
  void put_off_wake() { wake_is_put_off_.store(true, std::memory_order_relaxed); }
  /// Forgets put_off_wake, because the work is posted now.
  void forget_wake() { wake_is_put_off_.store(false, std::memory_order_relaxed); }
  /// Wakes the background thread if that was put off. Thread: any; never waits.
  void wake_if_put_off() {
    if (wake_is_put_off_.load(std::memory_order_relaxed) && wake_is_put_off_.exchange(false))
      background_.wake();
  }

 private:
  [[nodiscard]] bool flush_is_due() const;
  [[nodiscard]] std::unique_ptr<log::DiskJob> take_due_job();
  void run(QueueLock& lock, std::unique_ptr<log::DiskJob> job);
  void finish(std::unique_ptr<log::DiskJob> job);
  [[nodiscard]] std::vector<std::function<void()>> take_calls();
  void call_in_background();
  void tell_durable(QueueLock& lock);
  [[nodiscard]] std::chrono::milliseconds next_timer() const;
  void set_timer() { background_.set_timer(next_timer()); }

  QueueLog& log_;
  RoomWaits& room_;
  DurabilityWaits durability_;
  WaitedCount done_;  // increased for threads that wait for a sync, or for the end of a job
  bool is_out_ = false;
  bool stopping_ = false;          // no more jobs are posted
  bool failure_is_known_ = false;  // a sync has failed, and all threads that wait for one were woken
  bool timer_runs_ = false;        // the background thread knows that some messages are not durable
  // A new segment has made work due, for which the background thread should wake. The next message wakes it,
  // or a beat.
  std::atomic<bool> wake_is_put_off_{false};
  DiskThread background_;  // the last member, because its thread uses all others
};

}  // namespace lightq::queue
