/// Limits the disk space of all segment files together. Layer: log.
#include "log/storage/disk_quota.hpp"

#include <algorithm>
#include <utility>

namespace lightq::log {

namespace {
constexpr auto count_again_after = std::chrono::seconds(5);
}

DiskQuota::DiskQuota(std::uint64_t bytes_max, Count count, Elsewhere elsewhere)
    : bytes_max_(bytes_max),
      count_(std::move(count)),
      elsewhere_(std::move(elsewhere)),
      bytes_(count_()),
      counted_at_(Clock::now()) {}

bool DiskQuota::take(std::uint64_t bytes, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const auto has_room = [&] { return bytes <= bytes_max_ && bytes_ <= bytes_max_ - bytes; };
  if (!has_room()) {
    count_again(now);
    return false;
  }
  bytes_ += bytes;
  if (counting_) taken_since_ += bytes;
  return true;
}

void DiskQuota::take_anyway(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_ += bytes;
  if (counting_) taken_since_ += bytes;
}

bool DiskQuota::leaves_last(std::uint64_t bytes, std::uint64_t unused, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t used = bytes_ - std::min(bytes_, unused);
  const std::uint64_t most = bytes_max_ - last_bytes();
  if (bytes <= most && used <= most - bytes) return true;
  count_again(now);
  return false;
}

/// Starts a new count, at most one every five seconds. While it runs, a new file may be counted twice and a
/// removed one may still be counted: the result is too large rather than too small, until the next count.
/// Requires: mutex_ is locked.
void DiskQuota::count_again(Clock::time_point now) {
  if (counting_ || now - counted_at_ < count_again_after) return;
  counted_at_ = now;
  taken_since_ = 0;
  counting_ = true;
  counting_ = elsewhere_([this] {
    const std::uint64_t found = count_();
    const std::lock_guard lock(mutex_);
    bytes_ = found + taken_since_;
    counting_ = false;
  });
}

void DiskQuota::give_back(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_ -= std::min(bytes_, bytes);
}

}  // namespace lightq::log
