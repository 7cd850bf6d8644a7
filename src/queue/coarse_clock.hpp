/// A clock that costs one load to read: a number that changes every few milliseconds. Layer: queue.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "queue/waiters.hpp"

namespace lightq::queue {

/// Beats on a thread of its own while beats are requested; otherwise the thread sleeps. A writer of many
/// small messages compares two beats to see that little time has passed. Reading the system's clock would
/// cost as much as half a message. Thread: any.
class CoarseClock {
 public:
  static constexpr std::chrono::milliseconds period{4};
  /// The value of `beat` while the thread sleeps: the reader has to use a real clock.
  static constexpr std::uint32_t still = 0;

  /// Returns the pulse of this process. It ends with its last user.
  static std::shared_ptr<CoarseClock> shared();

  CoarseClock();
  CoarseClock(const CoarseClock&) = delete;
  CoarseClock& operator=(const CoarseClock&) = delete;
  ~CoarseClock();

  /// Returns the beat: another even number after each period, or `still`. It may be late if the machine is
  /// busy.
  [[nodiscard]] const std::atomic<std::uint32_t>& beat() const { return beat_; }
  /// Keeps the pulse beating for a few periods; call it again before they have passed. Cheap while the pulse
  /// beats.
  void keep_beating() {
    if (!wanted_.load(std::memory_order_relaxed)) wanted_.store(true, std::memory_order_relaxed);
    fence_.light();
    if (asleep_.load(std::memory_order_relaxed)) wake();
  }

  /// Calls `call` on the pulse's thread with each beat from now on. Returns the id for stop_calling.
  /// Requires: `call` is short, and calls neither call_each_beat nor stop_calling.
  std::uint64_t call_each_beat(std::function<void()> call);
  /// Stops calling the function with this id, and waits if it is being called. Does nothing for an unknown
  /// id.
  void stop_calling(std::uint64_t id);

 private:
  void run();
  void make_calls();
  void sleep(std::unique_lock<std::mutex>& lock);
  void wake();

  const pid_t process_;          // a child process has the memory of its parent, but not the thread
  const AsymmetricFence fence_;  // between requesting a beat and going to sleep
  std::atomic<std::uint32_t> beat_{still};
  std::atomic<bool> wanted_{false};
  std::atomic<bool> asleep_{false};
  std::mutex mutex_;
  std::condition_variable due_;
  bool stop_ = false;
  std::mutex calls_mutex_;  // locked while calls are made
  std::map<std::uint64_t, std::function<void()>> calls_;
  std::uint64_t next_call_ = 1;
  std::thread thread_;  // the last member, because the thread uses all others
};

}  // namespace lightq::queue
