/// Runs jobs on a thread. Layer: net.
#include "net/job_thread.hpp"

#include <optional>
#include <utility>

#include "admission/memory_reserve.hpp"

namespace lightq::broker {

JobThread::JobThread(JobMemory memory, JobPlace place) : memory_(memory), place_(place) {
  if (place == JobPlace::own_thread)
    thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
}

JobThread::~JobThread() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void JobThread::submit(std::unique_ptr<log::DiskJob> job, Done done) {
  if (place_ == JobPlace::at_once) return run({std::move(job), std::move(done)});
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back({std::move(job), std::move(done)});
  }
  changed_.notify_one();
}

void JobThread::work(const std::stop_token& stop) {
  while (true) {
    Entry entry;
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [this] { return !queue_.empty(); })) return;
      entry = std::move(queue_.front());
      queue_.pop_front();
    }
    run(std::move(entry));
  }
}

void JobThread::run(Entry entry) const {
  {
    std::optional<FallibleAllocations> fallible;
    if (memory_ == JobMemory::fallible) fallible.emplace();
    entry.job->run();
  }
  entry.done(std::move(entry.job));
}

}  // namespace lightq::broker
