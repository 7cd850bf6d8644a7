/// One process at a time writes a directory: a lock that the kernel frees when the process is gone. Layer:
/// log.
#pragma once

#include <string>
#include <utility>

#include <lightq/base/result.hpp>

namespace lightq::log {

/// Holds the lock of a directory; freed when destroyed. Move-only.
class DirectoryLock {
 public:
  DirectoryLock() = default;  ///< holds none
  /// Locks the file `lock` in the directory, which is made if it is not there. Errors: in_use (another
  /// process, or this one, has it; names the process), io_error, no_space.
  static Result<DirectoryLock> acquire(const std::string& directory);
  DirectoryLock(DirectoryLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  DirectoryLock& operator=(DirectoryLock&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~DirectoryLock();

 private:
  explicit DirectoryLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace lightq::log
