/// The space on a disk. Layer: metrics.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace lightq::broker {

/// The disk of the data directory, in bytes.
struct DiskUse {
  std::uint64_t size_bytes = 0;
  std::uint64_t free_bytes = 0;      ///< for this process
  std::uint64_t free_bytes_min = 0;  ///< appends wait with less
};

/// Asks the system for the disk of a directory. Nothing if it does not answer. Thread: any.
std::optional<DiskUse> disk_use(const std::filesystem::path& directory, std::uint64_t free_bytes_min);

}  // namespace lightq::broker
