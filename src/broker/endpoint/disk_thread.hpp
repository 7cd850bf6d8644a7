/// The thread that waits for disks, so that no reactor does. Layer: endpoint.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "log/log.hpp"

namespace lightq::broker {

/// Runs disk jobs one after the other. `submit` from any thread.
class DiskThread {
 public:
  using Done = std::function<void(std::unique_ptr<log::DiskJob>)>;

  DiskThread();
  DiskThread(const DiskThread&) = delete;
  DiskThread& operator=(const DiskThread&) = delete;
  /// Drops the jobs that have not begun.
  ~DiskThread();

  /// Runs the job, then calls `done` with it on the disk thread (which posts it to where it belongs). At most
  /// one job a log is out at a time, so that the number of topics bounds the queue.
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
  std::jthread thread_;      // last: stops before the rest goes
};

}  // namespace lightq::broker
