/// Whether the broker of a data directory runs, and whether it is the one that listens at its address. Layer:
/// client.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/base/error.hpp>
#include <lightq/base/result.hpp>
#include <lightq/tcp_uri.hpp>

namespace lightq::inline v1::detail {

/// Returns true if a process holds the lock of the data directory, as a broker does while it lives. Asks the
/// system's list of locks: to try the lock could keep a broker from starting. Locks of processes in other pid
/// namespaces are not on that list.
inline bool is_locked(const std::filesystem::path& directory) {
  struct stat facts{};
  if (::stat((directory / "lock").c_str(), &facts) != 0) return false;
  const std::string inode = ":" + std::to_string(facts.st_ino);
  std::ifstream locks("/proc/locks");
  if (!locks) return true;  // nothing tells: check_listener is left
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, kind, way, access, holder, file;
    words >> number >> kind >> way >> access >> holder >> file;  // "->" in place of the kind: it waits
    if (kind == "FLOCK" && access == "WRITE" && file.ends_with(inode)) return true;
  }
  return false;
}

/// The local addresses, as /proc/net/tcp and tcp6 write them, of listeners that connections to this numeric
/// host come to: its own, as an IPv4 and as a mapped IPv6 one, and that of all. Empty: the host is a name,
/// which may stand for any address.
inline std::vector<std::string> listening_forms(std::string_view host) {
  const std::string text(host);
  const std::string all_of_ipv6(32, '0');
  in_addr four{};
  if (::inet_pton(AF_INET, text.c_str(), &four) == 1) {
    char hex[9] = {};
    std::snprintf(hex, sizeof hex, "%08X", static_cast<unsigned>(four.s_addr));
    return {hex, "00000000", all_of_ipv6, "0000000000000000FFFF0000" + std::string(hex)};
  }
  in6_addr six{};
  if (::inet_pton(AF_INET6, text.c_str(), &six) != 1) return {};
  char hex[33] = {};
  for (std::size_t i = 0; i < 4; ++i) {
    std::uint32_t word = 0;
    std::memcpy(&word, six.s6_addr + i * sizeof word, sizeof word);
    std::snprintf(hex + i * 8, 9, "%08X", static_cast<unsigned>(word));
  }
  return {hex, all_of_ipv6};
}

/// The users whose processes listen at a TCP port of this machine, where connections to `host` come to.
inline std::vector<uid_t> tcp_listeners(std::string_view host, std::string_view port) {
  std::vector<uid_t> users;
  const auto forms = listening_forms(host);
  char wanted[8] = {};
  std::snprintf(wanted, sizeof wanted, ":%04X",
                static_cast<unsigned>(std::strtoul(std::string(port).c_str(), nullptr, 10)) & 0xffffU);
  for (const char* const table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream rows(table);
    std::string line;
    std::getline(rows, line);  // the heading
    while (std::getline(rows, line)) {
      std::istringstream words(line);
      std::string number, local, remote, state, queues, timers, retransmits;
      uid_t user = 0;
      words >> number >> local >> remote >> state >> queues >> timers >> retransmits >> user;
      if (state != "0A") break;  // those that listen come first
      if (!words || !local.ends_with(wanted)) continue;
      const std::string address = local.substr(0, local.find(':'));
      if (forms.empty() || std::find(forms.begin(), forms.end(), address) != forms.end())
        users.push_back(user);
    }
  }
  return users;
}

/// The user whose process listens at a Unix socket; nothing: nobody does, as far as can be seen.
inline std::vector<uid_t> unix_listeners(const std::string& path) {
  sockaddr_un address{};
  if (path.empty() || path.size() >= sizeof address.sun_path) return {};
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), address.sun_path);
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  ucred peer{};
  socklen_t size = sizeof peer;
  const bool known =
      descriptor >= 0 &&
      ::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
  if (descriptor >= 0) ::close(descriptor);
  if (!known) return {};
  return {peer.uid};
}

/// An error if a process of another user than the `trusted` ones listens at `uri` on this machine. Error:
/// unauthorized_access.
inline Result<void> check_listener(const std::string& uri, std::span<const uid_t> trusted) {
  constexpr std::string_view ipc = "ipc://";
  const auto [host, port] = split_tcp(uri);
  const std::vector<uid_t> users =
      uri.starts_with(ipc) ? unix_listeners(uri.substr(ipc.size())) : tcp_listeners(host, port);
  for (const uid_t user : users) {
    if (std::find(trusted.begin(), trusted.end(), user) != trusted.end()) continue;
    return Error{ErrorCode::unauthorized_access,
                 "a process of user " + std::to_string(user) + " listens at " + uri +
                     ", which is not this broker's user: nothing was said to it"};
  }
  return {};
}

/// The same for the broker of a data directory: it runs as root, as this user or as the directory's owner.
inline Result<void> check_listener(const std::string& uri, const std::filesystem::path& directory) {
  struct stat facts{};
  if (::stat(directory.c_str(), &facts) != 0) return {};
  const uid_t trusted[] = {0, ::geteuid(), facts.st_uid};
  return check_listener(uri, trusted);
}

}  // namespace lightq::inline v1::detail
