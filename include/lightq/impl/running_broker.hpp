/// The definitions of <lightq/detail/running_broker.hpp>. Layer: client.
#pragma once

#include <lightq/detail/running_broker.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <lightq/base/private_file.hpp>
#include <lightq/protocol/json_functions.hpp>

namespace lightq::inline v1::detail {

LIGHTQ_INLINE std::string mounted_device([[maybe_unused]] const std::filesystem::path& file) {
#ifdef STATX_MNT_ID
  struct statx facts{};
  if (::statx(AT_FDCWD, file.c_str(), 0, STATX_MNT_ID, &facts) != 0) return {};
  if ((facts.stx_mask & STATX_MNT_ID) == 0) return {};
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::uint64_t id = 0;
    std::uint64_t parent = 0;
    unsigned major_number = 0;
    unsigned minor_number = 0;
    char colon = 0;
    words >> id >> parent >> major_number >> colon >> minor_number;
    if (!words || id != facts.stx_mnt_id) continue;
    char text[32];
    std::snprintf(text, sizeof text, "%02x:%02x", major_number, minor_number);
    return text;
  }
#endif
  return {};
}

LIGHTQ_INLINE std::vector<std::string> lock_names(const std::filesystem::path& file) {
  struct stat facts{};
  if (::stat(file.c_str(), &facts) != 0) return {};
  const std::string inode = ":" + std::to_string(facts.st_ino);
  char device[32];
  std::snprintf(device, sizeof device, "%02x:%02x", major(facts.st_dev), minor(facts.st_dev));
  std::vector<std::string> names = {device + inode};
  if (const std::string mounted = mounted_device(file); !mounted.empty()) names.push_back(mounted + inode);
  return names;
}

LIGHTQ_INLINE bool is_exclusive_lock(const std::string& line, const std::vector<std::string>& names) {
  std::istringstream words(line);
  std::string number, kind, way, access, holder, file;
  // the kind is "->" if the process waits for the lock
  words >> number >> kind >> way >> access >> holder >> file;
  return kind == "FLOCK" && access == "WRITE" && std::find(names.begin(), names.end(), file) != names.end();
}

LIGHTQ_INLINE bool is_locked(const std::filesystem::path& directory) {
  std::vector<std::string> names = lock_names(directory / "lock");
  std::ifstream locks("/proc/locks");
  // without /proc/locks it is unknown
  if (!locks) return !names.empty();
  for (std::string& name : lock_names(directory)) names.push_back(std::move(name));  // "lock" may be removed
  for (std::string line; std::getline(locks, line);)
    if (is_exclusive_lock(line, names)) return true;
  return false;
}

LIGHTQ_INLINE OwnerSocket::OwnerSocket(const std::filesystem::path& directory, const std::string& name) {
  std::error_code ignored;
  const std::filesystem::path path = std::filesystem::absolute(directory, ignored) / name;
  path_ = path.string();
  if (path_.size() < sizeof(sockaddr_un::sun_path)) return;
  directory_ = std::make_shared<const ScopedDescriptor>(
      ::open(path.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  path_ = "/proc/self/fd/" + std::to_string(directory_->get()) + "/" + name;
}

LIGHTQ_INLINE bool OwnerSocket::answers() const {
  sockaddr_un address{};
  if (path_.size() >= sizeof address.sun_path) return false;
  address.sun_family = AF_UNIX;
  std::copy(path_.begin(), path_.end(), address.sun_path);
  const ScopedDescriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (probe.get() < 0) return false;
  const auto* const at = reinterpret_cast<const sockaddr*>(&address);
  // EAGAIN: a listener with a full queue
  return ::connect(probe.get(), at, sizeof address) == 0 || errno == EAGAIN;
}

LIGHTQ_INLINE bool is_running(const std::filesystem::path& directory, const protocol::BrokerFile& file) {
  if (is_locked(directory)) return true;
  return !file.control_socket.empty() && OwnerSocket(directory, file.control_socket).answers();
}

}  // namespace lightq::inline v1::detail
