/// Locks a directory so that only one process at a time writes to it. The kernel releases the lock when the
/// process ends. Layer: log.
#pragma once

#include <string>
#include <utility>

#include <lightq/base/result.hpp>

namespace lightq::log {

/// Owns two locks: one on the directory itself and one on the file `lock` in it. Releases both when
/// destroyed. Move-only. The file can be removed, the directory's lock cannot be lost in that way. Earlier
/// versions take only the lock on the file, and file systems that cannot lock directories (NFS) have only
/// that one.
class DirectoryLock {
 public:
  DirectoryLock() = default;  ///< owns no lock
  /// Creates the directory if it is missing, then locks it and the file `lock` in it, which must be no link.
  /// If root makes that file, it belongs to the owner of the directory. Errors: in_use if another process, or
  /// this one, has one of the locks (the text names the process if its id is known); io_error; no_space.
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

  /// Checks that the path still leads to the locked directory. Succeeds if no lock is owned. Errors:
  /// no_space, as for a disk that takes no data for now, if the directory was moved, removed or unmounted.
  [[nodiscard]] Result<void> check() const;

 private:
  int fd_ = -1;
  int directory_fd_ = -1;
  std::string directory_;  // the directory's path
};

}  // namespace lightq::log
