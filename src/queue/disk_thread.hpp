/// The queue's background thread: runs one disk job at a time, and looks up at times. Layer: queue.
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

/// Runs what it is given. It takes no lock but its own, so that whoever gives it work never waits for it.
/// Any thread, but for start and stop.
class DiskThread {
 public:
  DiskThread() = default;
  DiskThread(const DiskThread&) = delete;
  DiskThread& operator=(const DiskThread&) = delete;
  ~DiskThread() { stop(); }
  /// `look_up` is called on the thread: after a job, when the timer has run out, and after `wake`.
  void start(std::function<void()> look_up);
  /// What was posted is run and called first. Nothing if it does not run.
  void stop();

  /// To be run. Requires that the last one's `take_done` has been given out.
  void post(std::unique_ptr<log::DiskJob> job);
  /// The job that has been run; null if there is none.
  std::unique_ptr<log::DiskJob> take_done();
  /// To be called on the thread.
  void call(std::vector<std::function<void()>> calls);
  /// How long it waits for something to do before it looks up.
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
  std::thread thread_;  // the last member: it uses all others
};

}  // namespace lightq::queue
