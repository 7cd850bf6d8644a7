/// Implements Storage with the system calls of the real file system. Layer: log.
#include "log/storage/posix_storage.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <lightq/base/crc32c.hpp>
#include <lightq/base/disk_full.hpp>
#include <lightq/base/standard_streams.hpp>

#include "log/storage/mapped_memory.hpp"

namespace lightq::log {

namespace {

Error system_error(const std::string& what) {
  const int code = errno;
  return {write_error_code(code), what, code};
}

/// Repeats a system call while a signal interrupts it.
template <typename Call>
auto uninterrupted(Call call) {
  for (;;) {
    const auto result = call();
    if (result != -1 || errno != EINTR) return result;
  }
}

/// Writes as ::pwrite does, but beyond the file size limit it fails with EFBIG and does not raise SIGXFSZ.
ssize_t write_within_limit(int fd, ByteView bytes, std::uint64_t position) {
  if (FileSizeLimit::allows(position))
    return uninterrupted(
        [&] { return ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(position)); });
  errno = EFBIG;
  return -1;
}

class PosixMapping final : public Mapping {
 public:
  explicit PosixMapping(MappedMemory memory) : memory_(std::move(memory)) {}
  [[nodiscard]] const std::byte* data() const override { return memory_.data(); }
  [[nodiscard]] std::size_t size() const override { return memory_.size(); }
  void populate(std::size_t begin, std::size_t end) const override { memory_.populate(begin, end); }

 private:
  MappedMemory memory_;
};

class PosixWritableMapping final : public WritableMapping {
 public:
  explicit PosixWritableMapping(MappedMemory memory) : memory_(std::move(memory)) {}
  [[nodiscard]] std::byte* data() override { return memory_.data(); }
  [[nodiscard]] std::size_t size() const override { return memory_.size(); }
  void prefault() override { memory_.prefault(); }

 private:
  MappedMemory memory_;
};

class PosixDirectory final : public Directory {
 public:
  PosixDirectory(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~PosixDirectory() override { ::close(fd_); }
  Result<void> sync() override {
    if (uninterrupted([&] { return ::fsync(fd_); }) == 0) return {};
    return system_error("cannot sync the directory " + path_);
  }

 private:
  const int fd_;
  const std::string path_;
};

class PosixFile final : public File {
 public:
  PosixFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~PosixFile() override {
    if (fd_ != -1) ::close(fd_);
  }

  Result<std::size_t> write_some(ByteView bytes, std::uint64_t position) override {
    return use([&](int fd) -> Result<std::size_t> {
      const auto written = write_within_limit(fd, bytes, position);
      if (written == -1) {
        return system_error("cannot write " + std::to_string(bytes.size()) + " bytes at " +
                            std::to_string(position) + " of " + path_);
      }
      return static_cast<std::size_t>(written);
    });
  }

  Result<void> write_synced(ByteView bytes, std::uint64_t position) override {
#ifdef RWF_DSYNC
    const Result<void> written = use([&](int fd) { return write_through(fd, bytes, position); });
    if (!written) return written;
#endif
    return bytes.empty() ? Result<void>{} : File::write_synced(bytes, position);
  }

  Result<std::size_t> read_some(std::span<std::byte> to, std::uint64_t position) override {
    return use([&](int fd) -> Result<std::size_t> {
      const auto came =
          uninterrupted([&] { return ::pread(fd, to.data(), to.size(), static_cast<off_t>(position)); });
      if (came == -1) return system_error("cannot read at " + std::to_string(position) + " of " + path_);
      return static_cast<std::size_t>(came);
    });
  }

  Result<void> allocate(std::uint64_t bytes) override {
    return use([&](int fd) -> Result<void> {
      const bool is_allowed = bytes <= FileSizeLimit::look();
      if (!is_allowed) errno = EFBIG;
      if (is_allowed && uninterrupted([&] { return ::fallocate(fd, 0, 0, static_cast<off_t>(bytes)); }) == 0)
        return {};
      return system_error("cannot reserve " + std::to_string(bytes) + " bytes for " + path_);
    });
  }

  // Does not sync by a newly opened descriptor: the kernel may not report to it an error that another
  // descriptor has already reported.
  Result<void> sync() override {
    const std::shared_lock lock(mutex_);
    if (fd_ == -1) {
      const Result<void> synced = kept_open_.sync();
      return synced ? synced
                    : Error{ErrorCode::io_error, "cannot sync " + path_, synced.error().system_error};
    }
    if (uninterrupted([&] { return ::fdatasync(fd_); }) == 0) return {};
    return system_error("cannot sync " + path_);
  }

  bool release_descriptor(const std::string& path) override {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return false;
    if (fd_ == -1) return true;
    const bool writable = (::fcntl(fd_, F_GETFL) & O_ACCMODE) == O_RDWR;
    if (!writable || ::fstat(fd_, &itself_) != 0) return false;
    auto kept = MappedMemory::file_kept_open(fd_, static_cast<std::size_t>(itself_.st_size));
    if (!kept || !kept->valid()) return false;
    kept_open_ = std::move(*kept);
    path_ = path;
    ::close(std::exchange(fd_, -1));
    return true;
  }

  Result<std::uint64_t> size_bytes() override {
    return use([&](int fd) -> Result<std::uint64_t> {
      struct stat status = {};
      if (::fstat(fd, &status) != 0) return system_error("cannot get the size of " + path_);
      return static_cast<std::uint64_t>(status.st_size);
    });
  }

  Result<void> lock_shared() override {
    if (uninterrupted([&] { return ::flock(fd_, LOCK_SH | LOCK_NB); }) == 0) return {};
    if (errno == EWOULDBLOCK)
      return Error{ErrorCode::in_use, path_ + " is being recycled for a new segment", 0};
    return system_error("cannot lock " + path_);
  }

  void unlock() override { ::flock(fd_, LOCK_UN); }

  bool lock_exclusive() override {
    return uninterrupted([&] { return ::flock(fd_, LOCK_EX | LOCK_NB); }) == 0;
  }

  Result<std::unique_ptr<Mapping>> map(std::size_t bytes) override {
    return use([&](int fd) -> Result<std::unique_ptr<Mapping>> {
      auto memory = MappedMemory::file_read_only(fd, bytes);
      if (!memory) return Error{memory.error().code, "cannot map " + path_, memory.error().system_error};
      return std::unique_ptr<Mapping>(std::make_unique<PosixMapping>(std::move(*memory)));
    });
  }

  Result<std::unique_ptr<WritableMapping>> map_writable(std::size_t bytes) override {
    return use([&](int fd) -> Result<std::unique_ptr<WritableMapping>> {
      auto memory = MappedMemory::file_writable(fd, bytes);
      if (!memory) {
        return Error{memory.error().code, "cannot map " + path_ + " for writing",
                     memory.error().system_error};
      }
      return std::unique_ptr<WritableMapping>(std::make_unique<PosixWritableMapping>(std::move(*memory)));
    });
  }

 private:
  /// Calls `call` with the file's descriptor, or with a temporary one if that is released.
  template <typename Call>
  auto use(Call call) -> decltype(call(0)) {
    const std::shared_lock lock(mutex_);
    if (fd_ != -1) return call(fd_);
    const int fd = open_again();
    if (fd == -1) return system_error("cannot open " + path_ + " again");
    auto result = call(fd);
    ::close(fd);
    return result;
  }

  /// Opens the file at `path_`, but fails if another file has that name now.
  [[nodiscard]] int open_again() const {
    const int fd =
        above_standard_streams(uninterrupted([&] { return ::open(path_.c_str(), O_RDWR | O_CLOEXEC); }));
    struct stat status = {};
    if (fd == -1) return fd;
    if (::fstat(fd, &status) == 0 && status.st_dev == itself_.st_dev && status.st_ino == itself_.st_ino)
      return fd;
    ::close(fd);
    errno = ENOENT;
    return -1;
  }

#ifdef RWF_DSYNC
  /// Writes and syncs `bytes` with RWF_DSYNC. If the system does not support that, leaves the rest in
  /// `bytes`.
  Result<void> write_through(int fd, ByteView& bytes, std::uint64_t& position) {
    while (!bytes.empty() && FileSizeLimit::allows(position)) {
      const iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
      const auto written =
          uninterrupted([&] { return ::pwritev2(fd, &part, 1, static_cast<off_t>(position), RWF_DSYNC); });
      if (written == -1 && (errno == EOPNOTSUPP || errno == ENOSYS)) break;
      if (written == -1) return system_error("cannot write and sync " + path_);
      if (written == 0) break;
      bytes = bytes.subspan(static_cast<std::size_t>(written));
      position += static_cast<std::uint64_t>(written);
    }
    return {};
  }
#endif

  std::shared_mutex mutex_;  // locked exclusively by `release_descriptor`, which changes the members below
  int fd_;                   // -1: `release_descriptor` has closed it
  std::string path_;
  struct stat itself_ = {};  // while fd_ is -1: identifies the file
  MappedMemory kept_open_;   // while fd_ is -1: keeps the file open
};

}  // namespace

Result<std::unique_ptr<File>> PosixStorage::open(const std::string& path, OpenMode mode) {
  // O_NONBLOCK: a FIFO of this name must not block. A new file must not empty the file that a link names.
  int flags = O_CLOEXEC | O_NONBLOCK | (mode == OpenMode::read_only ? O_RDONLY : O_RDWR);
  if (mode == OpenMode::create) flags |= O_CREAT | O_TRUNC | O_NOFOLLOW;
  const int fd = above_standard_streams(uninterrupted([&] { return ::open(path.c_str(), flags, 0640); }));
  if (fd == -1) return system_error("cannot open " + path);
  if (mode != OpenMode::read_only) FileSizeLimit::look();
  return std::unique_ptr<File>(std::make_unique<PosixFile>(fd, path));
}

Result<void> PosixStorage::make_directory(const std::string& path) {
  const std::filesystem::path directory(path);
  const std::filesystem::path above = directory.parent_path();
  std::error_code error;
  if (!above.empty() && above != directory && !std::filesystem::exists(above, error) && !error) {
    if (auto made = make_directory(above.string()); !made) return made;
    if (auto synced = sync_directory(parent_of(above.string())); !synced) return synced;
  }
  std::filesystem::create_directory(directory, error);
  if (!error) return {};
  errno = error.value();
  return system_error("cannot create the directory " + path);
}

Result<void> PosixStorage::rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return {};
  return system_error("cannot rename " + from + " to " + to);
}

Result<void> PosixStorage::unlink(const std::string& path) {
  if (::unlink(path.c_str()) == 0) return {};
  return system_error("cannot remove " + path);
}

Result<void> PosixStorage::link(const std::string& from, const std::string& to) {
  if (::link(from.c_str(), to.c_str()) == 0) return {};
  return system_error("cannot link " + from + " as " + to);
}

Result<std::uint64_t> PosixStorage::link_count(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return system_error("cannot get the number of links of " + path);
  return static_cast<std::uint64_t>(status.st_nlink);
}

Result<void> PosixStorage::remove_directory(const std::string& path) {
  if (::rmdir(path.c_str()) == 0) return {};
  return system_error("cannot remove the directory " + path);
}

Result<void> PosixStorage::sync_directory(const std::string& path) {
  const auto directory = open_directory(path);
  return directory ? (*directory)->sync() : Result<void>(directory.error());
}

Result<std::unique_ptr<Directory>> PosixStorage::open_directory(const std::string& path) {
  const int fd = uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (fd == -1) return system_error("cannot open the directory " + path);
  return directory_of(fd, path);
}

std::unique_ptr<Directory> PosixStorage::directory_of(int descriptor, std::string path) {
  return std::make_unique<PosixDirectory>(descriptor, std::move(path));
}

Result<std::vector<std::string>> PosixStorage::list(const std::string& path) {
  std::vector<std::string> names;
  DIR* directory = ::opendir(path.c_str());
  if (directory == nullptr) return system_error("cannot list the directory " + path);
  errno = 0;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
    errno = 0;
  }
  Result<std::vector<std::string>> result = std::move(names);
  if (errno != 0) result = system_error("cannot list the directory " + path);
  ::closedir(directory);
  return result;
}

Result<std::uint64_t> PosixStorage::free_bytes(const std::string& path) {
  std::filesystem::path existing = path;
  struct statvfs status = {};
  while (::statvfs(existing.empty() ? "." : existing.c_str(), &status) != 0) {
    if (errno != ENOENT || existing.empty() || existing == existing.parent_path()) {
      return system_error("cannot get the free space of " + path);
    }
    existing = existing.parent_path();
  }
  return std::uint64_t{status.f_bavail} * status.f_frsize;
}

// The kernel's random UUID of this boot, folded into 64 bits (proc(5)).
std::uint64_t PosixStorage::boot_id() {
  static const std::uint64_t id = [] {
    std::array<char, 64> text{};
    const int fd = ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd == -1) return std::uint64_t{0};
    const auto came = uninterrupted([&] { return ::read(fd, text.data(), text.size()); });
    ::close(fd);
    if (came < 36) return std::uint64_t{0};
    const auto bytes = std::as_bytes(std::span<const char>(text.data(), 36));
    return (std::uint64_t{crc32c(bytes.first(18))} << 32 | crc32c(bytes.subspan(18))) | 1;
  }();
  return id;
}

std::uint64_t PosixStorage::random() {
  std::uint64_t value = 0;
  if (::getrandom(&value, sizeof value, 0) == sizeof value) return value;
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

}  // namespace lightq::log
