/// Resolves the address of a session. Layer: client.
#pragma once

#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include <lightq/base/result.hpp>

namespace lightq::inline v1 {

/// An address in the form that system calls take.
struct SessionSockAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
};

namespace session_detail {

inline Error bad_uri(const std::string& uri, const char* why) {
  return {ErrorCode::invalid_argument, "'" + uri + "' is not an address of a session: " + why};
}

inline Result<SessionSockAddress> unix_address(const std::string& uri, std::string_view path) {
  SessionSockAddress made;
  sockaddr_un name{};
  if (path.empty()) return bad_uri(uri, "the path is missing");
  if (path.size() >= sizeof name.sun_path) return bad_uri(uri, "the path is too long for a Unix socket");
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.data(), path.size());
  std::memcpy(&made.storage, &name, sizeof name);
  made.bytes = static_cast<socklen_t>(sizeof name);
  return made;
}

inline Result<SessionSockAddress> tcp_address(const std::string& uri, std::string_view where) {
  const std::size_t colon = where.rfind(':');
  if (colon == std::string_view::npos) return bad_uri(uri, "the port is missing");
  std::string host(where.substr(0, colon));
  const std::string port(where.substr(colon + 1));
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host.empty() || port.empty()) return bad_uri(uri, "host or port is missing");
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int failure = getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
  if (failure == EAI_NONAME || failure == EAI_SERVICE) return bad_uri(uri, gai_strerror(failure));
  if (failure != 0 || list == nullptr) {
    return Error{ErrorCode::io_error, "cannot resolve '" + uri + "': " + gai_strerror(failure),
                 failure == EAI_SYSTEM ? errno : 0};
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, &freeaddrinfo);
  SessionSockAddress made;
  if (list->ai_addrlen > sizeof made.storage) return bad_uri(uri, "its address family is unknown");
  std::memcpy(&made.storage, list->ai_addr, list->ai_addrlen);
  made.bytes = list->ai_addrlen;
  return made;
}

}  // namespace session_detail

/// Resolves `uri`. Looking up a host name may wait for a name server. Errors: invalid_argument, io_error.
/// Thread: any.
inline Result<SessionSockAddress> resolve_session_uri(const std::string& uri) {
  const std::string_view text = uri;
  constexpr std::string_view tcp = "tcp://";
  constexpr std::string_view ipc = "ipc://";
  if (text.substr(0, ipc.size()) == ipc) return session_detail::unix_address(uri, text.substr(ipc.size()));
  if (text.substr(0, tcp.size()) == tcp) return session_detail::tcp_address(uri, text.substr(tcp.size()));
  return session_detail::bad_uri(uri, "it must begin with tcp:// or ipc://");
}

}  // namespace lightq::inline v1
