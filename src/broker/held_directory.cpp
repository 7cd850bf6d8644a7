/// Opens a directory, and checks that its path still leads to the same device and inode. Layer: broker.
#include "broker/held_directory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <string>

#include <lightq/base/disk_full.hpp>

namespace lightq::broker {

namespace {

std::int64_t last_tick_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

Result<std::unique_ptr<const HeldDirectory>> HeldDirectory::open(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct stat facts{};
  if (descriptor >= 0 && fstat(descriptor, &facts) == 0)
    return std::unique_ptr<const HeldDirectory>(
        new HeldDirectory(path, descriptor, facts.st_dev, facts.st_ino));
  const int number = errno;
  if (descriptor >= 0) close(descriptor);
  return Error{ErrorCode::io_error, "cannot open the directory " + path.string(), number};
}

HeldDirectory::~HeldDirectory() {
  close(descriptor_);
}

bool HeldDirectory::is_in_place() const {
  const std::int64_t now = last_tick_ns();
  if (seen_ns_.load(std::memory_order_relaxed) == now) return true;
  struct stat found{};
  if (stat(path_.c_str(), &found) != 0 || found.st_dev != device_ || found.st_ino != file_) return false;
  seen_ns_.store(now, std::memory_order_relaxed);
  return true;
}

Result<void> HeldDirectory::check() const {
  if (is_in_place()) return {};
  return Error{ErrorCode::no_space,
               path_.string() +
                   " is no longer the directory that this broker opened: it was moved, removed or unmounted. "
                   "Nothing is written until it is back at its path",
               0};
}

Result<int> HeldDirectory::open_below(const std::filesystem::path& path) const {
  const std::filesystem::path below = path.lexically_relative(path_);
  const int descriptor = openat(descriptor_, below.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) return descriptor;
  const int number = errno;
  return Error{write_error_code(number), "cannot open the directory " + path.string(), number};
}

void HeldDirectory::remove(const char* name) const {
  static_cast<void>(unlinkat(descriptor_, name, 0));
}

std::string HeldDirectory::socket_path(const std::string& name) const {
  std::string path = (path_ / name).string();
  if (path.size() < sizeof(sockaddr_un::sun_path)) return path;
  return "/proc/self/fd/" + std::to_string(descriptor_) + "/" + name;
}

}  // namespace lightq::broker
