/// Limits the disk space of topics, and counts how often they reach the limits. Layer: broker.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "admission/limit_counts.hpp"
#include "broker/config.hpp"
#include "broker/data_directory.hpp"
#include "log/segment/segment_pool.hpp"
#include "log/storage/disk_quota.hpp"

namespace lightq::broker {

/// Returns the size of all files below the directories.
inline std::uint64_t bytes_below(const std::vector<std::filesystem::path>& directories) {
  std::uint64_t bytes = 0;
  for (const auto& directory : directories) {
    std::error_code failed;
    std::filesystem::recursive_directory_iterator at(directory, failed);
    for (; !failed && at != std::filesystem::recursive_directory_iterator(); at.increment(failed)) {
      std::error_code gone;  // the file may be deleted meanwhile
      const std::uint64_t size = at->is_regular_file(gone) ? at->file_size(gone) : 0;
      if (!gone) bytes += size;
    }
  }
  return bytes;
}

/// Counts that a topic begins to wait for space, under the setting that limits it.
inline void count_wait(LimitCounts& counts, log::SpaceBound bound) {
  if (bound == log::SpaceBound::quota || bound == log::SpaceBound::share) counts.count(Limit::disk_bytes_max);
  if (bound == log::SpaceBound::floor) counts.count(Limit::min_free_bytes);
}

/// Returns the configured quota; nothing: only the disk limits topics. Lifetime: `counter` must end before
/// the quota.
inline std::optional<log::DiskQuota> quota_of(const Config& config, const DataDirectory& directory,
                                              std::jthread& counter) {
  if (config.disk_bytes_max == 0) return std::nullopt;
  return std::optional<log::DiskQuota>(
      std::in_place, config.disk_bytes_max,
      [directories = std::vector{directory.topics(), directory.pool()}] { return bytes_below(directories); },
      [&counter](std::function<void()> task) {
        try {
          counter = std::jthread(std::move(task));
          return true;
        } catch (const std::system_error&) {
          return false;  // too many threads
        }
      });
}

}  // namespace lightq::broker
