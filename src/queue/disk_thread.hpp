/// The background thread of an embedded queue: runs one disk job at a time, and calls the queue at intervals.
/// Layer: queue.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "log/log.hpp"

namespace lightq::queue {

/// Runs jobs and calls on a thread of its own. It takes no lock but its own, so that a thread that gives it
/// work never waits for it. Thread: any, except for `start` and `stop`.
class DiskThread {
 public:
  DiskThread() = default;
  DiskThread(const DiskThread&) = delete;
  DiskThread& operator=(const DiskThread&) = delete;
  ~DiskThread() { stop(); }
  /// Starts the thread. It calls `look_up` after each job, when the timer has run out, and after `wake`.
  void start(std::function<void()> look_up);
  /// Stops the thread after the posted job and calls are done. Does nothing if it does not run.
  void stop();

  /// Posts a job. Requires: `take_done` has returned the last one.
  void post(std::unique_ptr<log::DiskJob> job);
  /// Returns the job that was run, or null if there is none.
  std::unique_ptr<log::DiskJob> take_done();
  /// Posts functions to be called on the thread.
  void call(std::vector<std::function<void()>> calls);
  /// Sets how long the thread waits for work before it calls `look_up`.
  void set_timer(std::chrono::milliseconds timer);
  void wake();

 private:
  void run(const std::function<void()>& look_up);
  [[nodiscard]] bool has_work() const { return job_ != nullptr || !calls_.empty(); }
  bool wait(std::unique_lock<std::mutex>& lock);
  void run_one(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable due_;
  std::unique_ptr<log::DiskJob> job_;
  std::unique_ptr<log::DiskJob> done_;
  std::vector<std::function<void()>> calls_;
  std::chrono::milliseconds timer_ = std::chrono::hours(24);
  bool woken_ = false;
  bool stop_ = false;
  std::thread thread_;  // the last member, because the thread uses all others
};

}  // namespace lightq::queue
