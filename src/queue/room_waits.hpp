/// Writers that wait for space in a full queue. Layer: queue.
#pragma once

#include <atomic>
#include <chrono>

#include "queue/queue_lock.hpp"
#include "queue/waiters.hpp"

namespace lightq::queue {

/// Lets writers wait until messages are dropped, and tells consumers that their commits may make space.
///
/// Owns the number of waiting writers. Called by QueueSpace, and for each commit. Thread: any.
///
/// Invariant: a commit that does not see a waiting writer happened before that writer looked for space, so
/// no commit is missed.
class RoomWaits {
 public:
  /// Returns true if a writer waits; then each commit has to be noted.
  [[nodiscard]] bool is_wanted() const {
    fence_.light();
    return wanted_.load(std::memory_order_relaxed) != 0;
  }
  /// Lets waiting writers look for space again.
  void note_made() {
    if (is_wanted()) made_.increase();
  }
  /// States that a writer begins or ceases to wait. After `begin`, look for space before the first wait.
  void begin() {
    wanted_.fetch_add(1);
    fence_.heavy();
  }
  void end() { wanted_.fetch_sub(1); }
  /// Releases the lock until note_made is called. Returns false if it was not by `until`.
  bool wait(QueueLock& lock, std::chrono::steady_clock::time_point until) {
    return wait_without(lock, made_, until);
  }

 private:
  WaitedCount made_;
  std::atomic<int> wanted_{0};
  const AsymmetricFence fence_;  // between a commit and reading wanted_
};

}  // namespace lightq::queue
