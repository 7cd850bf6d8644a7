/// Waits for messages without polling. Layer: queue.
#include "queue/waiters.hpp"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace lightq::queue {

namespace {

bool membarrier(int command) {
  return ::syscall(SYS_membarrier, command, 0, 0) == 0;
}

bool register_membarrier() {
#if defined(__SANITIZE_THREAD__)
  return false;  // the sanitizer knows only the language's fences
#else
  return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
#endif
}

}  // namespace

AsymmetricFence::AsymmetricFence() : expedited_(register_membarrier()) {}

void AsymmetricFence::heavy() const {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (expedited_) membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

// Wakes all sleeping threads. A thread that is about to sleep is either counted in sleepers_ here, or sees
// the new value and does not sleep.
void WaitedCount::increase() {
  value_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
  ::syscall(SYS_futex, &value_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

// The system compares the value again before it lets the thread sleep.
void WaitedCount::sleep_while(std::uint32_t seen, const timespec* timeout) const {
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  ::syscall(SYS_futex, &value_, FUTEX_WAIT_PRIVATE, seen, timeout, nullptr, 0);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

// Checks the value after each wake. A thread may be woken without a reason, or by the late wake of an earlier
// increase.
void WaitedCount::wait_while(std::uint32_t seen) const {
  while (value() == seen) sleep_while(seen, nullptr);
}

bool WaitedCount::wait_while(std::uint32_t seen, std::chrono::steady_clock::time_point until) const {
  while (value() == seen) {
    const auto left = std::chrono::nanoseconds(until - std::chrono::steady_clock::now()).count();
    if (left <= 0) return false;
    const timespec timeout{left / 1'000'000'000, left % 1'000'000'000};
    sleep_while(seen, &timeout);
  }
  return true;
}

bool Waiters::wait(std::chrono::milliseconds timeout, const std::function<bool()>& ready) {
  if (ready()) return true;
  std::unique_lock lock(mutex_);
  waiting_.fetch_add(1, std::memory_order_seq_cst);
  // From here on, either the writer sees that a reader waits, or `ready` sees the writer's stores.
  fence_.heavy();
  const bool came = woken_.wait_for(lock, bounded(timeout), ready);
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  return came;
}

void Waiters::wake() {
  fence_.light();
  if (waiting_.load(std::memory_order_relaxed) == nobody_) return;
  const std::lock_guard lock(mutex_);
  woken_.notify_all();
}

}  // namespace lightq::queue
