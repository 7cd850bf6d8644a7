/// When a disk takes no more, and how large a file of this process may be. Layer: base.
#pragma once

#include <sys/resource.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include <lightq/base/error.hpp>

namespace lightq::inline v1 {

/// True if writing may succeed again when there is room: on the disk, in the user's quota, or within the
/// process's largest file size.
constexpr bool says_disk_full(int number) {
  return number == ENOSPC || number == EDQUOT || number == EFBIG;
}

/// The code of a write that failed with this error number.
constexpr ErrorCode write_error_code(int number) {
  return says_disk_full(number) ? ErrorCode::no_space : ErrorCode::io_error;
}

/// The process's largest file size (RLIMIT_FSIZE). A write beyond it sends SIGXFSZ, which ends a program that
/// does not ignore it, and a library may not change what a program does with signals: it looks here before
/// it writes. Any thread.
class FileSizeLimit {
 public:
  /// True if a byte may be written at `position`. Asks the system only where the limit seen last forbids it.
  static bool allows(std::uint64_t position) {
    return position < seen_.load(std::memory_order_relaxed) || position < look();
  }
  /// Returns the limit of now. Called where a file is opened or grows, to notice one that was lowered.
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
