/// Waits for messages without polling; waking costs nothing while no reader waits. Layer: queue.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <functional>
#include <mutex>

namespace lightq::queue {

/// Returns a timeout that can be added to any clock's time: at most a year.
constexpr std::chrono::milliseconds bounded(std::chrono::milliseconds timeout) {
  constexpr std::chrono::milliseconds year = std::chrono::hours(24 * 365);
  return timeout < year ? timeout : year;
}

/// Orders a store before a later load, on each of two sides that store and then read the other side's store.
/// The frequent side pays nothing, because the rare side uses membarrier(2) if the system has it. Thread:
/// any.
class AsymmetricFence {
 public:
  AsymmetricFence();
  /// The fence of the frequent side.
  void light() const {
    if (expedited_) {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
  }
  /// The fence of the rare side.
  void heavy() const;
  /// Returns true if the frequent side pays nothing.
  [[nodiscard]] bool is_free() const { return expedited_; }

 private:
  const bool expedited_;
};

/// A number that only grows and that threads can wait for. Uses the minimum of system calls: no lock, no
/// spinning, one call to wake all threads, and none if no thread sleeps. Thread: any.
class WaitedCount {
 public:
  [[nodiscard]] std::uint32_t value() const { return value_.load(std::memory_order_acquire); }
  /// Adds one. All waiting threads continue, and see the stores made before this call.
  void increase();
  /// Waits until the value is not `seen`.
  void wait_while(std::uint32_t seen) const;
  /// Waits until the value is not `seen`. Returns false if it still is at the time `until`.
  bool wait_while(std::uint32_t seen, std::chrono::steady_clock::time_point until) const;

 private:
  void sleep_while(std::uint32_t seen, const timespec* timeout) const;
  std::atomic<std::uint32_t> value_{0};
  mutable std::atomic<std::uint32_t> sleepers_{0};
};

/// Lets readers wait and a writer wake them. Thread: any. `wake_if_waiting` is a plain load while no reader
/// waits. The writer's last store has to be ordered before that load. If AsymmetricFence is free, a reader
/// that goes to sleep pays for that.
class Waiters {
 public:
  Waiters() : nobody_(fence_.is_free() ? 0 : 1), waiting_(nobody_) {}
  /// Waits until `ready` returns true; it is called again after each wake. Returns false after `timeout`.
  bool wait(std::chrono::milliseconds timeout, const std::function<bool()>& ready);
  /// Returns true if `wake` has to be called. Requires: the stores that make `ready` true were made before.
  [[nodiscard]] bool may_wait() const {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return waiting_.load(std::memory_order_relaxed) != 0;
  }
  void wake();
  void wake_if_waiting() {
    if (may_wait()) wake();
  }

 private:
  const AsymmetricFence fence_;
  // The value of waiting_ without a waiting reader. It is 1 if the fence has a cost, so that `wake` is always
  // called and pays it.
  const int nobody_;
  std::atomic<int> waiting_;
  std::mutex mutex_;
  std::condition_variable woken_;
};

}  // namespace lightq::queue
