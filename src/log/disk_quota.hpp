/// How many bytes all segment files together may take of the disk. Layer: log.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>

namespace lightq::log {

/// Counts what is made and what is removed. Some files go by other ways than the pool's (a damaged topic that
/// is deleted, what recovery throws away), so where the count says that there is no room the files themselves
/// are counted again, now and then. Any thread.
class DiskQuota {
 public:
  using Clock = std::chrono::steady_clock;
  /// The bytes of all files that count; may take its time.
  using Count = std::function<std::uint64_t()>;

  /// `bytes_max`: at least 1.
  DiskQuota(std::uint64_t bytes_max, Count count);
  DiskQuota(const DiskQuota&) = delete;
  DiskQuota& operator=(const DiskQuota&) = delete;

  /// Whether there is room for so many more; then they are taken.
  bool take(std::uint64_t bytes, Clock::time_point now = Clock::now());
  /// A file of so many is gone, or was not made after all.
  void give_back(std::uint64_t bytes);

  [[nodiscard]] std::uint64_t bytes_max() const { return bytes_max_; }

 private:
  const std::uint64_t bytes_max_;
  const Count count_;
  std::mutex mutex_;
  std::uint64_t bytes_;           // guarded by mutex_
  Clock::time_point counted_at_;  // likewise
};

}  // namespace lightq::log
