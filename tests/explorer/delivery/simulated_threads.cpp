/// Takes the place of net/job_thread.cpp, of the steady clock and of getrandom in the programs that link it.
#include "explorer/delivery/simulated_threads.hpp"

#include <sys/random.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <utility>

namespace lightq::test {

namespace {

struct WaitingJob {
  const broker::JobThread* thread;
  std::unique_ptr<log::DiskJob> job;
  broker::JobThread::Done done;
};
std::deque<WaitingJob> waiting_jobs;

}  // namespace

bool run_waiting_job(const broker::DiskThread& disk) {
  const auto* const begin = reinterpret_cast<const std::byte*>(&disk);
  for (auto each = waiting_jobs.begin(); each != waiting_jobs.end(); ++each) {
    const auto* const thread = reinterpret_cast<const std::byte*>(each->thread);
    if (std::less<>()(thread, begin) || !std::less<>()(thread, begin + sizeof disk)) continue;
    WaitingJob next = std::move(*each);
    waiting_jobs.erase(each);
    next.job->run();
    next.done(std::move(next.job));
    return true;
  }
  return false;
}

}  // namespace lightq::test

namespace lightq::broker {

JobThread::JobThread(JobMemory memory) : memory_(memory) {}

JobThread::~JobThread() {
  std::erase_if(test::waiting_jobs, [this](const auto& each) { return each.thread == this; });
}

void JobThread::submit(std::unique_ptr<log::DiskJob> job, Done done) {
  test::waiting_jobs.push_back({this, std::move(job), std::move(done)});
}

}  // namespace lightq::broker

// The program's definitions take precedence over those of shared libraries.
std::chrono::steady_clock::time_point std::chrono::steady_clock::now() noexcept {
  return time_point(std::chrono::microseconds(lightq::test::SimulatedClock::us));
}

extern "C" ssize_t getrandom(void* to, std::size_t bytes, unsigned /*flags*/) {
  for (std::size_t i = 0; i < bytes; ++i)
    static_cast<std::byte*>(to)[i] = static_cast<std::byte>(lightq::test::simulated_random.next());
  return static_cast<ssize_t>(bytes);
}
