/// The background thread of an embedded queue. Layer: queue.
#include "queue/disk_thread.hpp"

#include <cassert>
#include <utility>

#include <lightq/base/unsignalled_thread.hpp>

namespace lightq::queue {

void DiskThread::start(std::function<void()> look_up) {
  assert(!thread_.joinable() && !stop_);
  thread_ = start_unsignalled([this, look_up = std::move(look_up)] { run(look_up); });
}

void DiskThread::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  due_.notify_one();
  thread_.join();
}

// Notifies after unlocking, because the thread would otherwise wake only to wait for the lock.
void DiskThread::post(std::unique_ptr<log::DiskJob> job) {
  {
    const std::lock_guard lock(mutex_);
    assert(job_ == nullptr && done_ == nullptr);
    job_ = std::move(job);
  }
  due_.notify_one();
}

std::unique_ptr<log::DiskJob> DiskThread::take_done() {
  const std::lock_guard lock(mutex_);
  return std::move(done_);
}

void DiskThread::call(std::vector<std::function<void()>> calls) {
  {
    const std::lock_guard lock(mutex_);
    for (auto& each : calls) calls_.push_back(std::move(each));
  }
  due_.notify_one();
}

void DiskThread::set_timer(std::chrono::milliseconds timer) {
  bool shorter = false;
  {
    const std::lock_guard lock(mutex_);
    shorter = timer < timer_;
    timer_ = timer;
  }
  if (shorter) due_.notify_one();  // the thread may already be waiting, for a longer time
}

void DiskThread::wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  due_.notify_one();
}

void DiskThread::run_one(std::unique_lock<std::mutex>& lock) {
  if (!calls_.empty()) {
    const auto calls = std::exchange(calls_, {});
    lock.unlock();
    for (const auto& each : calls) each();
    lock.lock();
  }
  if (job_ == nullptr) return;
  auto job = std::move(job_);
  lock.unlock();
  job->run();
  lock.lock();
  done_ = std::move(job);
}

// Returns false if it was woken only because the timer has become shorter.
bool DiskThread::wait(std::unique_lock<std::mutex>& lock) {
  const auto timer = timer_;
  const auto has_to_act = [&] { return woken_ || stop_ || has_work(); };
  const bool told = due_.wait_for(lock, timer, [&] { return has_to_act() || timer_ < timer; });
  return !told || has_to_act();
}

void DiskThread::run(const std::function<void()>& look_up) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (!has_work() && stop_) return;
    if (!has_work() && !wait(lock)) continue;
    woken_ = false;
    run_one(lock);
    lock.unlock();
    look_up();
    lock.lock();
  }
}

}  // namespace lightq::queue
