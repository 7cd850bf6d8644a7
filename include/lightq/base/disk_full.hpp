/// Tells when a disk is full, and how large a file of this process may be. Layer: base.
#pragma once

#include <sys/resource.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include <lightq/base/error.hpp>

namespace lightq::inline v1 {

/// Returns true if this errno means lack of space: on the disk, in the user's quota, or within the process's
/// largest file size.
constexpr bool says_disk_full(int number) {
  return number == ENOSPC || number == EDQUOT || number == EFBIG;
}

/// Returns the error code of a write that failed with this errno.
constexpr ErrorCode write_error_code(int number) {
  return says_disk_full(number) ? ErrorCode::no_space : ErrorCode::io_error;
}

/// The process's largest file size (RLIMIT_FSIZE). A write beyond the limit sends SIGXFSZ. That signal ends a
/// program that does not ignore it. A library may not change a program's signal handling, so this library
/// checks the limit before it writes. Thread: any.
class FileSizeLimit {
 public:
  /// Returns true if a byte may be written at `position`. Asks the system only if the limit seen last forbids
  /// the write.
  static bool allows(std::uint64_t position) {
    return position < seen_.load(std::memory_order_relaxed) || position < look();
  }
  /// Asks the system for the present limit, and returns it. Called when a file is opened or grows, to notice
  /// a lowered limit.
  static std::uint64_t look() {
    rlimit limit{};
    const bool is_known = getrlimit(RLIMIT_FSIZE, &limit) == 0;
    const std::uint64_t bytes = is_known ? limit.rlim_cur : RLIM_INFINITY;
    seen_.store(bytes, std::memory_order_relaxed);
    return bytes;
  }

 private:
  static inline std::atomic<std::uint64_t> seen_ = 0;
};

}  // namespace lightq::inline v1
