/// Limits the disk space of all segment files together. Layer: log.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>

namespace lightq::log {

/// Counts the bytes of files that are created and removed. Some files are removed without the pool: those of
/// a damaged topic that is deleted, and those that recovery discards. The count can therefore be too high. A
/// request that does not fit starts a new count of the files themselves, at most every five seconds. That
/// count runs on another thread, so the request does not wait for it. Thread: any.
class DiskQuota {
 public:
  using Clock = std::chrono::steady_clock;
  /// Returns the bytes of all files that count; may be slow. The constructor calls it, later calls run
  /// through Elsewhere.
  using Count = std::function<std::uint64_t()>;

  /// Runs the task once on another thread, before the quota is destroyed. Returns false if that is not
  /// possible now. The quota calls it again only when the earlier task is finished or about to return, so it
  /// may join that thread.
  using Elsewhere = std::function<bool(std::function<void()> task)>;

  /// Requires: `bytes_max` is at least 1.
  DiskQuota(std::uint64_t bytes_max, Count count, Elsewhere elsewhere);
  DiskQuota(const DiskQuota&) = delete;
  DiskQuota& operator=(const DiskQuota&) = delete;

  /// Takes `bytes` and returns true if they fit. Otherwise returns false; a new count may let a later call
  /// succeed.
  bool take(std::uint64_t bytes, Clock::time_point now = Clock::now());
  /// Takes `bytes` even if they do not fit, for a file that lets others be removed immediately.
  void take_anyway(std::uint64_t bytes);
  /// Returns whether `bytes` more would fit and still leave the last eighth free. `unused` is the part of the
  /// taken bytes that no log uses; it counts as free. Takes nothing.
  bool leaves_last(std::uint64_t bytes, std::uint64_t unused, Clock::time_point now = Clock::now());
  /// Returns the bytes of a file that was removed, or was not created after all.
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
  Clock::time_point counted_at_;   // guarded by mutex_: when the last count began
  bool counting_ = false;          // guarded by mutex_: a count is running
  std::uint64_t taken_since_ = 0;  // guarded by mutex_: bytes taken while a count runs
};

}  // namespace lightq::log
