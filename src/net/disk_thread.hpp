/// The thread that waits for disks, so that no reactor does. Layer: net.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "log/log.hpp"

namespace lightq::broker {

/// Runs disk jobs one after another. Thread: any may call `submit`.
class DiskThread {
 public:
  using Done = std::function<void(std::unique_ptr<log::DiskJob>)>;

  DiskThread();
  DiskThread(const DiskThread&) = delete;
  DiskThread& operator=(const DiskThread&) = delete;
  /// Waits for the running job, and drops the jobs that have not started.
  ~DiskThread();

  /// Runs the job, then calls `done` with it on the disk thread. `done` posts the job to its owner's thread.
  /// A topic has at most one job of each kind here at a time (log, cursors, producers, removal), so that the
  /// number of topics bounds the queue.
  void submit(std::unique_ptr<log::DiskJob> job, Done done);

 private:
  struct Entry {
    std::unique_ptr<log::DiskJob> job;
    Done done;
  };
  void work(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Entry> queue_;  // guarded by mutex_
  std::jthread thread_;      // last: stops before the other members are destroyed
};

}  // namespace lightq::broker
