/// A clock that costs one load to read. Layer: queue.
#include "queue/coarse_clock.hpp"

#include <unistd.h>

#include <utility>

#include <lightq/base/unsignalled_thread.hpp>

namespace lightq::queue {

namespace {

constexpr int idle_beats_max = 5;

}  // namespace

std::shared_ptr<CoarseClock> CoarseClock::shared() {
  static std::mutex mutex;
  static std::weak_ptr<CoarseClock> known;
  const std::lock_guard lock(mutex);
  std::shared_ptr<CoarseClock> pulse = known.lock();
  if (pulse == nullptr || pulse->process_ != ::getpid()) {
    // In a child process the parent's pulse is leaked. Its thread does not exist there, so joining it or
    // waiting on its condition variable would never end.
    known = pulse = std::shared_ptr<CoarseClock>(new CoarseClock, [](const CoarseClock* last) {
      if (last->process_ == ::getpid()) delete last;
    });
  }
  return pulse;
}

CoarseClock::CoarseClock() : process_(::getpid()), thread_(start_unsignalled([this] { run(); })) {}

CoarseClock::~CoarseClock() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  due_.notify_one();
  thread_.join();
}

void CoarseClock::run() {
  std::unique_lock lock(mutex_);
  std::uint32_t last = still;
  int idle_beats = idle_beats_max;
  while (!stop_) {
    if (wanted_.exchange(false, std::memory_order_relaxed)) idle_beats = 0;
    if (idle_beats >= idle_beats_max) {
      sleep(lock);
      continue;
    }
    ++idle_beats;
    last += 2;
    if (last == still) last += 2;
    beat_.store(last, std::memory_order_relaxed);
    lock.unlock();
    make_calls();
    lock.lock();
    due_.wait_for(lock, period, [&] { return stop_; });
  }
}

void CoarseClock::make_calls() {
  const std::lock_guard lock(calls_mutex_);
  for (const auto& [id, call] : calls_) call();
}

std::uint64_t CoarseClock::call_each_beat(std::function<void()> call) {
  const std::lock_guard lock(calls_mutex_);
  calls_.emplace(next_call_, std::move(call));
  return next_call_++;
}

void CoarseClock::stop_calling(std::uint64_t id) {
  const std::lock_guard lock(calls_mutex_);
  calls_.erase(id);
}

// Sleeps until a beat is requested. The fence ensures that either the requesting thread sees that this one
// sleeps, or this one sees the request.
void CoarseClock::sleep(std::unique_lock<std::mutex>& lock) {
  beat_.store(still, std::memory_order_relaxed);
  asleep_.store(true, std::memory_order_relaxed);
  fence_.heavy();
  due_.wait(lock, [&] { return stop_ || wanted_.load(std::memory_order_relaxed); });
  asleep_.store(false, std::memory_order_relaxed);
}

void CoarseClock::wake() {
  {
    const std::lock_guard lock(mutex_);
  }  // by now the thread sleeps, or has not checked yet
  due_.notify_one();
}

}  // namespace lightq::queue
