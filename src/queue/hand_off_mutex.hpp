/// A mutex with a duty: a function that is called with the lock held, without waiting for the lock. Layer:
/// queue.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <utility>

namespace lightq::queue {

/// A mutex, and a short duty that is done on request, with the mutex locked. A thread that requests it never
/// waits for the lock: it does the duty itself if the lock is free. Otherwise the current holder does it when
/// it unlocks. So a writer that locks for each message cannot starve a background thread, and need not wake
/// one that waits for the lock. Lockable, for std::unique_lock. Not for condition variables, which unlock it
/// while they hold an internal lock that the duty may need. Thread: any.
class HandOffMutex {
 public:
  /// `duty` is called with the lock held. It must not lock this mutex, wait or throw.
  explicit HandOffMutex(std::function<void()> duty) : duty_(std::move(duty)) {}

  void lock() { mutex_.lock(); }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() {
    mutex_.unlock();
    // Read-modify-write, so that either this call sees the request, or the requesting thread sees that the
    // lock is free.
    if (wanted_.fetch_or(0, std::memory_order_acq_rel) != 0) [[unlikely]]
      do_if_free();
  }
  /// Requests the duty: it is done now or by the holder of the lock.
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
