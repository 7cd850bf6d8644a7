/// A thread that runs jobs. Layer: net.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "log/log.hpp"

namespace lightq::broker {

/// The memory that jobs may use: with `fallible` their allocations throw std::bad_alloc, which the job
/// catches, rather than use the process's reserve. See FallibleAllocations.
enum class JobMemory : std::uint8_t { reserved, fallible };

/// Where jobs run. `at_once`: within `submit`, for a program whose steps must not depend on the order in
/// which threads run.
enum class JobPlace : std::uint8_t { own_thread, at_once };

/// Runs jobs one after another on a thread of its own. Thread: any may call `submit`.
class JobThread {
 public:
  using Done = std::function<void(std::unique_ptr<log::DiskJob>)>;

  explicit JobThread(JobMemory memory = JobMemory::reserved, JobPlace place = JobPlace::own_thread);
  JobThread(const JobThread&) = delete;
  JobThread& operator=(const JobThread&) = delete;
  /// Waits for the running job, and drops the jobs that have not started.
  ~JobThread();

  /// Runs the job, then calls `done` with it on this thread. `done` posts the job to its owner's thread.
  void submit(std::unique_ptr<log::DiskJob> job, Done done);

 private:
  struct Entry {
    std::unique_ptr<log::DiskJob> job;
    Done done;
  };
  void work(const std::stop_token& stop);
  void run(Entry entry) const;

  const JobMemory memory_;
  const JobPlace place_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Entry> queue_;  // guarded by mutex_
  std::jthread thread_;      // last: stops before the other members are destroyed; none if jobs run at once
};

}  // namespace lightq::broker
