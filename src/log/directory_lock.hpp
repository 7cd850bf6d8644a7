/// One process at a time writes a directory: a lock that the kernel frees when the process is gone. Layer:
/// log.
#pragma once

#include <string>
#include <utility>

#include <lightq/base/result.hpp>

namespace lightq::log {

/// Holds two locks of a directory; freed when destroyed. Move-only. That on the directory itself cannot be
/// removed, as the file `lock` can. Earlier versions know only that on the file, and file systems that lock
/// no directories (NFS) have only that.
class DirectoryLock {
 public:
  DirectoryLock() = default;  ///< holds none
  /// Locks the directory, which is made if it is not there, and the file `lock` in it. Errors: in_use
  /// (another process, or this one, has one of the locks; names the process if it is known), io_error,
  /// no_space.
  static Result<DirectoryLock> acquire(const std::string& directory);
  DirectoryLock(DirectoryLock&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), directory_fd_(std::exchange(other.directory_fd_, -1)) {}
  DirectoryLock& operator=(DirectoryLock&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(directory_fd_, other.directory_fd_);
    return *this;
  }
  ~DirectoryLock();

 private:
  int fd_ = -1;
  int directory_fd_ = -1;
};

}  // namespace lightq::log
