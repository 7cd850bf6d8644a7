/// How many bytes all segment files together may take of the disk. Layer: log.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>

namespace lightq::log {

/// Counts what is made and what is removed. Some files go by other ways than the pool's (a damaged topic that
/// is deleted, what recovery throws away), so where the count says that there is no room the files themselves
/// are counted again, now and then: elsewhere, for nobody who wants room is to wait for that. Any thread.
class DiskQuota {
 public:
  using Clock = std::chrono::steady_clock;
  /// The bytes of all files that count; may take its time. Called in the constructor, and then elsewhere.
  using Count = std::function<std::uint64_t()>;

  /// Has the task called once, on another thread, before the quota ends; false: that is not possible now. Not
  /// called again before the task is done, or nearly: it may wait for the thread's end.
  using Elsewhere = std::function<bool(std::function<void()> task)>;

  /// `bytes_max`: at least 1.
  DiskQuota(std::uint64_t bytes_max, Count count, Elsewhere elsewhere);
  DiskQuota(const DiskQuota&) = delete;
  DiskQuota& operator=(const DiskQuota&) = delete;

  /// Whether there is room for so many more; then they are taken. What a count finds, a later call sees.
  bool take(std::uint64_t bytes, Clock::time_point now = Clock::now());
  /// Takes so many whether or not there is room, for a file that lets others go at once.
  void take_anyway(std::uint64_t bytes);
  /// Whether there is room for so many more without the last eighth. `unused` of those that are taken no log
  /// has. Takes nothing.
  bool leaves_last(std::uint64_t bytes, std::uint64_t unused, Clock::time_point now = Clock::now());
  /// A file of so many is gone, or was not made after all.
  void give_back(std::uint64_t bytes);

  [[nodiscard]] std::uint64_t bytes_max() const { return bytes_max_; }
  [[nodiscard]] std::uint64_t last_bytes() const { return bytes_max_ / 8; }

 private:
  void count_again(Clock::time_point now);

  const std::uint64_t bytes_max_;
  const Count count_;
  const Elsewhere elsewhere_;
  std::mutex mutex_;
  std::uint64_t bytes_;            // guarded by mutex_
  Clock::time_point counted_at_;   // likewise: when the last count began
  bool counting_ = false;          // likewise
  std::uint64_t taken_since_ = 0;  // likewise: while it is counted
};

}  // namespace lightq::log
