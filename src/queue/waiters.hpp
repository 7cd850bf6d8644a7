/// Waiting for messages without polling, and waking at no cost while nobody waits. Layer: queue.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <functional>
#include <mutex>

namespace lightq::queue {

/// A timeout that can be added to any clock's time: what is longer counts as a year.
constexpr std::chrono::milliseconds bounded(std::chrono::milliseconds timeout) {
  constexpr std::chrono::milliseconds year = std::chrono::hours(24 * 365);
  return timeout < year ? timeout : year;
}

/// Orders a store before a load that follows it, on both of two sides that each store and then look at what
/// the other has stored. The frequent side pays nothing: the rare one makes up for it (membarrier(2)), where
/// the system has that. Any thread.
class AsymmetricFence {
 public:
  AsymmetricFence();
  /// Of the frequent side.
  void light() const {
    if (expedited_) {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
  }
  /// Of the rare side.
  void heavy() const;
  /// Whether the frequent side pays nothing.
  [[nodiscard]] bool is_free() const { return expedited_; }

 private:
  const bool expedited_;
};

/// A number that only grows and that threads wait on; with the least that the system needs for it: no lock,
/// no spinning, one call to wake all, and none where nobody sleeps. Any thread.
class WaitedCount {
 public:
  [[nodiscard]] std::uint32_t value() const { return value_.load(std::memory_order_acquire); }
  /// One more: everybody who waits goes on, and sees what was done before.
  void increase();
  /// Until the value is not `seen`.
  void wait_while(std::uint32_t seen) const;
  /// The same; false if it still is at `until`.
  bool wait_while(std::uint32_t seen, std::chrono::steady_clock::time_point until) const;

 private:
  void sleep_while(std::uint32_t seen, const timespec* timeout) const;
  std::atomic<std::uint32_t> value_{0};
  mutable std::atomic<std::uint32_t> sleepers_{0};
};

/// Readers wait, a writer wakes them. Any thread. `wake_if_waiting` is a plain load as long as nobody waits:
/// the price of the ordering between the writer's last store and that load is paid by whoever goes to sleep,
/// where AsymmetricFence is free.
class Waiters {
 public:
  Waiters() : nobody_(fence_.is_free() ? 0 : 1), waiting_(nobody_) {}
  /// Waits until `ready`, which is asked again after each wake. False after `timeout`.
  bool wait(std::chrono::milliseconds timeout, const std::function<bool()>& ready);
  /// After what makes `ready` true: whether `wake` is to be called.
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
  // One more than there are where the fence has a price: that is paid in `wake` then.
  const int nobody_;
  std::atomic<int> waiting_;
  std::mutex mutex_;
  std::condition_variable woken_;
};

}  // namespace lightq::queue
