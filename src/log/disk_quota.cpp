/// Layer: log.
#include "log/disk_quota.hpp"

#include <algorithm>
#include <utility>

namespace lightq::log {

namespace {
constexpr auto count_again_after = std::chrono::seconds(5);
}

DiskQuota::DiskQuota(std::uint64_t bytes_max, Count count)
    : bytes_max_(bytes_max), count_(std::move(count)), bytes_(count_()), counted_at_(Clock::now()) {}

bool DiskQuota::take(std::uint64_t bytes, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const auto has_room = [&] { return bytes <= bytes_max_ && bytes_ <= bytes_max_ - bytes; };
  if (!has_room() && now - counted_at_ >= count_again_after) {
    bytes_ = count_();
    counted_at_ = now;
  }
  if (!has_room()) return false;
  bytes_ += bytes;
  return true;
}

void DiskQuota::give_back(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_ -= std::min(bytes_, bytes);
}

}  // namespace lightq::log
