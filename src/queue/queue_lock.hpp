/// The lock of a queue, and waiting without it. Layer: queue.
#pragma once

#include <chrono>
#include <mutex>

#include "queue/hand_off_mutex.hpp"
#include "queue/waiters.hpp"

namespace lightq::queue {

/// Guards the log and the state of a queue's parts. A function that gets one requires that it is held.
using QueueLock = std::unique_lock<HandOffMutex>;

/// Releases the lock until `count` has grown. Returns false if it has not grown by `until`.
inline bool wait_without(QueueLock& lock, const WaitedCount& count,
                         std::chrono::steady_clock::time_point until) {
  const std::uint32_t seen = count.value();
  lock.unlock();
  const bool came = count.wait_while(seen, until);
  lock.lock();
  return came;
}

/// Releases the lock until `count` has grown.
inline void wait_without(QueueLock& lock, const WaitedCount& count) {
  const std::uint32_t seen = count.value();
  lock.unlock();
  count.wait_while(seen);
  lock.lock();
}

}  // namespace lightq::queue
