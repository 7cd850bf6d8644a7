/// The thread that waits for disks, so that no reactor does, and one that prepares what it writes. Layer:
/// net.
#pragma once

#include <memory>
#include <utility>

#include "net/job_thread.hpp"

namespace lightq::broker {

/// Runs disk jobs one after another, and jobs that only compute one after another beside them: no disk waits
/// while a large state is encoded. Thread: any may call both functions.
class DiskThread {
 public:
  using Done = JobThread::Done;

  /// `place`: of both threads; see JobPlace.
  explicit DiskThread(JobPlace place = JobPlace::own_thread)
      : disk_(JobMemory::reserved, place), encoder_(JobMemory::fallible, place) {}

  /// Runs the job, then calls `done` with it on the disk thread. `done` posts the job to its owner's thread.
  /// A topic has at most one job of each kind here at a time (log, cursors, producers, removal), so that the
  /// number of topics bounds the queue.
  void submit(std::unique_ptr<log::DiskJob> job, Done done) { disk_.submit(std::move(job), std::move(done)); }
  /// Does the same on a second thread, for a job that touches no disk, and that catches std::bad_alloc. A
  /// topic has at most one such job.
  void compute(std::unique_ptr<log::DiskJob> job, Done done) {
    encoder_.submit(std::move(job), std::move(done));
  }

 private:
  JobThread disk_;
  JobThread encoder_;
};

}  // namespace lightq::broker
