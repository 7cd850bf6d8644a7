/// The space on a disk. Layer: metrics.
#include "metrics/disk_use.hpp"

#include <system_error>

namespace lightq::broker {

std::optional<DiskUse> disk_use(const std::filesystem::path& directory, std::uint64_t free_bytes_min) {
  std::error_code failed;
  const auto space = std::filesystem::space(directory, failed);
  if (failed) return std::nullopt;
  return DiskUse{space.capacity, space.available, free_bytes_min};
}

}  // namespace lightq::broker
