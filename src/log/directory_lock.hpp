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
      : fd_(std::exchange(other.fd_, -1)),
        directory_fd_(std::exchange(other.directory_fd_, -1)),
        directory_(std::move(other.directory_)) {}
  DirectoryLock& operator=(DirectoryLock&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(directory_fd_, other.directory_fd_);
    std::swap(directory_, other.directory_);
    return *this;
  }
  ~DirectoryLock();

  /// Errors: no_space, as of a disk that takes nothing for now, if the path does not lead to the locked
  /// directory: that was moved, removed or unmounted. One that holds no lock is content.
  [[nodiscard]] Result<void> check() const;

 private:
  int fd_ = -1;
  int directory_fd_ = -1;
  std::string directory_;  // its path
};

}  // namespace lightq::log
