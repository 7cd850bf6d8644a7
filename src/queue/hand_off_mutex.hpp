/// A mutex with a duty that never waits for it. Layer: queue.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <utility>

namespace lightq::queue {

/// A mutex, and something short that is to be done under it on request. A thread that asks for it never waits
/// for the lock: it does it itself if the lock is free, else whoever holds the lock does it when letting go.
/// So a writer that takes the lock for each message neither starves a background thread nor has to wake one
/// that waits for the lock. Lockable, for std::unique_lock; not for condition variables, which let go of it
/// while they hold a lock of their own that the duty may want. Any thread.
class HandOffMutex {
 public:
  /// `duty` is called with the lock held and must not take it, wait or throw.
  explicit HandOffMutex(std::function<void()> duty) : duty_(std::move(duty)) {}

  void lock() { mutex_.lock(); }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() {
    mutex_.unlock();
    // Read, modify and write: either this sees the request, or who made it sees that the lock is free.
    if (wanted_.fetch_or(0, std::memory_order_acq_rel) != 0) [[unlikely]]
      do_if_free();
  }
  /// Has the duty done, soon.
  void request() {
    wanted_.exchange(1, std::memory_order_acq_rel);
    do_if_free();
  }

 private:
  void do_if_free() {
    while (wanted_.fetch_or(0, std::memory_order_acq_rel) != 0 && mutex_.try_lock()) {
      if (wanted_.exchange(0, std::memory_order_acq_rel) != 0) duty_();
      mutex_.unlock();
    }
  }

  std::mutex mutex_;
  std::atomic<int> wanted_{0};
  const std::function<void()> duty_;
};

}  // namespace lightq::queue
