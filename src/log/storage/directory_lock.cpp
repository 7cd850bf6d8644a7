/// Locks a directory so that only one process at a time writes to it. Layer: log.
#include "log/storage/directory_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>

#include <lightq/base/disk_full.hpp>
#include <lightq/base/standard_streams.hpp>

#include "log/storage/posix_storage.hpp"

namespace lightq::log {

namespace {

Error failed(const std::string& what, const std::string& path, int number) {
  return {write_error_code(number), "cannot " + what + " " + path, number};
}

// The process with the lock has written its id into the file, but the file may have been removed since.
Error in_use(const std::string& directory, int fd) {
  std::array<char, 32> text{};
  const auto bytes = fd == -1 ? 0 : ::pread(fd, text.data(), text.size() - 1, 0);
  const std::string holder(text.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  const std::string id = holder.substr(0, holder.find('\n'));
  return {ErrorCode::in_use,
          directory + " is in use by " + (id.empty() ? "another process" : "process " + id), 0};
}

/// Gives a file that belongs to root to the owner of its directory, if this process is root. Returns false on
/// an error.
bool give_to_owner(int file, int directory) {
  if (::geteuid() != 0) return true;
  struct stat present{};
  struct stat wanted{};
  if (::fstat(file, &present) != 0 || ::fstat(directory, &wanted) != 0) return false;
  return present.st_uid != 0 || wanted.st_uid == 0 || ::fchown(file, wanted.st_uid, wanted.st_gid) == 0;
}

}  // namespace

Result<DirectoryLock> DirectoryLock::acquire(const std::string& directory) {
  if (auto made = PosixStorage().make_directory(directory); !made) return made.error();
  const std::string path = directory + "/lock";
  DirectoryLock lock;
  lock.directory_ = directory;
  lock.directory_fd_ = above_standard_streams(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock.directory_fd_ == -1) return failed("open", directory, errno);
  const bool is_taken = ::flock(lock.directory_fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  const int create = is_taken ? 0 : O_CREAT;
  // Not through a link: root could be made to truncate a file elsewhere.
  lock.fd_ = above_standard_streams(
      ::openat(lock.directory_fd_, "lock", O_RDWR | create | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (is_taken) return in_use(directory, lock.fd_);
  if (lock.fd_ == -1) return failed("open", path, errno);
  if (!give_to_owner(lock.fd_, lock.directory_fd_)) return failed("change the owner of", path, errno);
  if (::flock(lock.fd_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return failed("lock", path, errno);
    return in_use(directory, lock.fd_);
  }
  const std::string own = std::to_string(::getpid()) + "\n";
  if (FileSizeLimit::look() < own.size()) return failed("write", path, EFBIG);
  if (::ftruncate(lock.fd_, 0) != 0 || ::pwrite(lock.fd_, own.data(), own.size(), 0) < 0) {
    return failed("write", path, errno);
  }
  return lock;
}

// Comparing the inode numbers is safe: while the directory is open, the system gives its number to no other
// one.
Result<void> DirectoryLock::check() const {
  if (directory_fd_ == -1) return {};
  struct stat held{};
  struct stat found{};
  const bool in_place = ::fstat(directory_fd_, &held) == 0 && ::stat(directory_.c_str(), &found) == 0 &&
                        held.st_dev == found.st_dev && held.st_ino == found.st_ino;
  if (in_place) return {};
  return Error{ErrorCode::no_space,
               directory_ +
                   " is no longer the directory that was locked: it was moved, removed or unmounted. Nothing "
                   "is written until it is back at its path",
               0};
}

DirectoryLock::~DirectoryLock() {
  if (fd_ != -1) ::close(fd_);
  if (directory_fd_ != -1) ::close(directory_fd_);
}

}  // namespace lightq::log
