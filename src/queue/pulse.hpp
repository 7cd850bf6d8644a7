/// A clock that costs a load: a number that changes every few milliseconds. Layer: queue.
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

/// Beats on a thread of its own, while somebody asks for it; sleeps else. To see that little time has passed
/// a writer of many small messages compares two beats: to ask the system for the time costs as much as half
/// a message. Any thread.
class Pulse {
 public:
  static constexpr std::chrono::milliseconds period{4};
  /// What `beat` is while it stands still: whoever reads it must look at a real clock.
  static constexpr std::uint32_t still = 0;

  /// The one of this process, which ends with whoever has it last.
  static std::shared_ptr<Pulse> shared();

  Pulse();
  Pulse(const Pulse&) = delete;
  Pulse& operator=(const Pulse&) = delete;
  ~Pulse();

  /// Another one after each period, or `still`. (Late where the machine has no time for the thread.) Always
  /// even.
  [[nodiscard]] const std::atomic<std::uint32_t>& beat() const { return beat_; }
  /// Goes on beating for a few periods; to be said again before they have passed. Cheap while it beats.
  void keep_beating() {
    if (!wanted_.load(std::memory_order_relaxed)) wanted_.store(true, std::memory_order_relaxed);
    fence_.light();
    if (asleep_.load(std::memory_order_relaxed)) wake();
  }

  /// Calls `call` on the pulse's thread with each beat from now on. It must be short, and must not come back
  /// to these two.
  std::uint64_t call_each_beat(std::function<void()> call);
  /// Waits for the call if it is under way. Of one that is not known: nothing happens.
  void stop_calling(std::uint64_t id);

 private:
  void run();
  void make_calls();
  void sleep(std::unique_lock<std::mutex>& lock);
  void wake();

  const pid_t process_;          // a child has the memory of its parent, but not the thread
  const AsymmetricFence fence_;  // between asking and going to sleep
  std::atomic<std::uint32_t> beat_{still};
  std::atomic<bool> wanted_{false};
  std::atomic<bool> asleep_{false};
  std::mutex mutex_;
  std::condition_variable due_;
  bool stop_ = false;
  std::mutex calls_mutex_;  // held while calls are made
  std::map<std::uint64_t, std::function<void()>> calls_;
  std::uint64_t next_call_ = 1;
  std::thread thread_;  // the last member: it uses all others
};

}  // namespace lightq::queue
