/// Creates, checks and locks the data directory, and publishes the broker's address and key in it. Layer:
/// broker.
#include "broker/data_directory.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>
#include <vector>

#include <lightq/base/disk_full.hpp>
#include <lightq/protocol/json_fields.hpp>
#include <lightq/version.hpp>

#include "access/private_file.hpp"
#include "log/storage/posix_storage.hpp"

namespace lightq::broker {

namespace {

namespace fs = std::filesystem;

constexpr const char* control_socket_name = "control.sock";

constexpr mode_t own_mode = 0755;   // for the directory itself: every user may read broker.json
constexpr mode_t room_mode = 0700;  // for its subdirectories
constexpr mode_t ipc_directory_mode =
    0711;  // for directories of Unix sockets: users who know a name may connect

constexpr mode_t written_by_others = 0022;
constexpr mode_t used_by_others = 0077;

Error failed(const std::string& what, const fs::path& path, int number) {
  return {write_error_code(number), "data directory: cannot " + what + " " + path.string(), number};
}

Result<void> make_directory(const fs::path& path, mode_t mode) {
  if (mkdir(path.c_str(), mode) == 0) return {};
  const int number = errno;
  std::error_code ignored;
  if (number == EEXIST && fs::is_directory(path, ignored)) return {};
  return failed("make", path, number == EEXIST ? ENOTDIR : number);
}

/// Returns true for a volume that its administrator has given to a group of this process.
bool is_given_to_our_group(const struct stat& found) {
  if (found.st_uid != 0 || geteuid() == 0) return false;
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(getgroups(0, nullptr), 0)));
  if (getgroups(static_cast<int>(groups.size()), groups.data()) < 0) groups.clear();
  return found.st_gid == getegid() || std::ranges::find(groups, found.st_gid) != groups.end();
}

/// Returns true if both paths lead to the same file. std::filesystem::equivalent does not work for sockets:
/// in libstdc++ 12 and older it reports that the operation is not supported.
bool is_one_file(const fs::path& one, const fs::path& other) {
  struct stat found{};
  struct stat also_found{};
  if (stat(one.c_str(), &found) != 0 || stat(other.c_str(), &also_found) != 0) return false;
  return found.st_dev == also_found.st_dev && found.st_ino == also_found.st_ino;
}

/// Checks that a directory belongs to this user or root, and that nobody else may do `forbidden` there. A
/// group of this process may, if root has given the directory to it. `may_be_sticky`: a sticky directory is
/// permitted, as /tmp is.
Result<void> check_is_ours(const fs::path& path, mode_t forbidden,
                           const std::string& subject = "data directory", bool may_be_sticky = false) {
  struct stat found{};
  if (stat(path.c_str(), &found) != 0) return failed("examine", path, errno);
  if (found.st_uid != geteuid() && found.st_uid != 0)
    return Error{ErrorCode::invalid_argument,
                 subject + ": " + path.string() + " belongs to another user (uid " +
                     std::to_string(found.st_uid) + "): it must belong to the broker's user"};
  if (may_be_sticky && (found.st_mode & S_ISVTX) != 0) return {};
  const mode_t by_group = is_given_to_our_group(found) ? mode_t{S_IRWXG} : mode_t{0};
  if ((found.st_mode & forbidden & ~by_group) == 0) return {};
  std::array<char, 8> mode{};
  std::snprintf(mode.data(), mode.size(), "0%o", found.st_mode & 07777U);
  const bool closed = forbidden == used_by_others;
  return Error{ErrorCode::invalid_argument, subject + ": " + path.string() +
                                                (closed ? " is open to" : " can be written by") +
                                                " other users: its mode is " + mode.data() + "; chmod " +
                                                (closed ? "go-rwx" : "go-w") + " it"};
}

/// Opens a socket directory to other users if a strict umask or an earlier broker has created it closed.
Result<void> open_ipc_directory(const fs::path& path) {
  struct stat found{};
  if (stat(path.c_str(), &found) != 0) return failed("examine", path, errno);
  const bool closed = found.st_uid == geteuid() && (found.st_mode & 0777U) == room_mode;
  if (closed && chmod(path.c_str(), ipc_directory_mode) != 0) return failed("open", path, errno);
  return {};
}

/// Creates a directory and its parents. The new names survive a power cut. Errors: as make_directory.
Result<void> make_directories(const fs::path& path, mode_t mode) {
  std::error_code ignored;
  if (fs::exists(path, ignored)) return make_directory(path, mode);
  const fs::path above = path.parent_path();
  if (!fs::exists(above, ignored)) {
    if (auto made = make_directories(above, 0777); !made) return made;
  }
  if (auto made = make_directory(path, mode); !made) return made;
  return log::PosixStorage().sync_directory(above.string());
}

}  // namespace

Result<std::unique_ptr<DataDirectory>> DataDirectory::open(const fs::path& given) {
  std::error_code code;
  const fs::path path = fs::absolute(given, code).lexically_normal();
  if (code) return failed("find", given, code.value());
  if (auto made = make_directories(path, own_mode); !made) return made.error();
  if (auto ours = check_is_ours(path, written_by_others); !ours) return ours.error();
  auto lock = log::DirectoryLock::acquire(path.string());
  if (!lock) {
    const Error& error = lock.error();
    return Error{error.code, "data directory: " + error.message, error.system_error};
  }
  auto held = HeldDirectory::open(path);
  if (!held) return held.error();
  std::unique_ptr<DataDirectory> directory(new DataDirectory(path, std::move(*lock), std::move(*held)));
  for (const auto& room : {directory->topics(), directory->pool(), directory->catalogue()}) {
    if (auto made = make_directory(room, room_mode); !made) return made.error();
    if (auto ours = check_is_ours(room, used_by_others); !ours) return ours.error();
  }
  if (auto made = make_directory(directory->ipc(), ipc_directory_mode); !made) return made.error();
  if (auto ours = check_is_ours(directory->ipc(), written_by_others); !ours) return ours.error();
  if (auto opened = open_ipc_directory(directory->ipc()); !opened) return opened.error();
  fs::remove(path / "broker.json", code);  // left by a broker that was killed
  if (auto synced = log::PosixStorage().sync_directory(path.string()); !synced) return synced.error();
  return directory;
}

Result<void> check_socket_directory(std::string_view setting, const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return {};
  return check_is_ours(path, written_by_others, std::string(setting), true);
}

Result<std::unique_ptr<CurveKeyPair>> DataDirectory::curve_key(const fs::path& given, bool renews) {
  std::error_code code;
  const fs::path path = fs::absolute(given, code).lexically_normal();
  if (code) return failed("find", given, code.value());
  if (auto made = make_directories(path, own_mode); !made) return made.error();
  const CurveKeyFiles files = curve_key_files(path);
  const fs::path& file = files.current;
  if (fs::exists(file, code)) return renews ? renew_curve_key(files) : open_curve_key(file);
  auto lock = log::DirectoryLock::acquire(path.string());
  if (lock) return open_curve_key(file);
  Error error = lock.error();
  error.message = "there is no key yet, and the running broker does not encrypt: " + error.message;
  return error;
}

DataDirectory::~DataDirectory() {
  if (published_) held_->remove("broker.json");  // leaves another directory at this path alone
  if (has_control_socket_) held_->remove(control_socket_name);
}

Result<std::optional<ListeningSocket>> DataDirectory::listen_for_owner(const std::string& control_uri) {
  constexpr std::string_view ipc_prefix = "ipc://";
  if (control_uri.starts_with(ipc_prefix) &&
      is_one_file(control_uri.substr(ipc_prefix.size()), path_ / control_socket_name)) {
    has_control_socket_ = true;
    return std::optional<ListeningSocket>();
  }
  auto socket = listen_unix(held_->socket_path(control_socket_name), SocketMode::owner);
  if (!socket) return socket.error();
  has_control_socket_ = true;
  return std::optional(std::move(*socket));
}

/// Writes server_key.json, which stays when the broker stops. Clients then refuse an impostor in its place
/// that speaks without encryption. Written before broker.json, which announces the broker.
Result<void> DataDirectory::keep_server_key(const std::string& control_uri,
                                            const std::string& server_key) const {
  const fs::path file = path_ / "server_key.json";
  if (!server_key.empty()) {
    const protocol::detail::OrderedJson document{{"control_uri", control_uri}, {"server_key", server_key}};
    return write_file_atomically(file, protocol::detail::dump(document) + "\n", 0644);
  }
  std::error_code code;
  if (!fs::remove(file, code)) return code ? failed("remove", file, code.value()) : Result<void>();
  return log::PosixStorage().sync_directory(path_.string());
}

Result<void> DataDirectory::publish(const std::string& control_uri, const std::string& server_key,
                                    const std::string& http_uri) {
  protocol::detail::OrderedJson document{
      {"pid", getpid()}, {"control_uri", control_uri}, {"version", version_text}};
  if (auto kept = keep_server_key(control_uri, server_key); !kept) return kept;
  if (!server_key.empty()) document["server_key"] = server_key;
  if (has_control_socket_) document["control_socket"] = control_socket_name;
  if (!http_uri.empty()) document["http_uri"] = http_uri;
  auto written = write_file_atomically(path_ / "broker.json", protocol::detail::dump(document) + "\n", 0644);
  published_ = written.ok();
  return written;
}

}  // namespace lightq::broker
