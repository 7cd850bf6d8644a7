/// Finds out immediately why a broker's address cannot be reached, if the system knows it. Layer: client.
#pragma once

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include <lightq/base/error.hpp>
#include <lightq/base/result.hpp>
#include <lightq/detail/tcp_uri.hpp>
#include <lightq/options.hpp>

namespace lightq::inline v1::detail {

/// Checks the port of a TCP address. Errors: invalid_argument.
inline Result<void> check_port(const std::string& uri) {
  const std::string_view text = split_tcp(uri).second;
  if (text.empty()) return {};
  unsigned port = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), port);
  const bool is_number = end == text.data() + text.size() && fault != std::errc::invalid_argument;
  if (!is_number || (fault == std::errc() && port >= 1 && port <= 65'535)) return {};
  return Error{ErrorCode::invalid_argument,
               "cannot connect to '" + uri + "': port " + std::string(text) + " is not 1 to 65535"};
}

/// Connects once. Returns 0 if the connection succeeds or is still undecided after `patience`, otherwise the
/// system's error number.
inline int try_to_connect(int family, const sockaddr* address, socklen_t size, Timeout patience) {
  const int descriptor = ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return 0;
  int error = ::connect(descriptor, address, size) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    error = 0;
    pollfd entry{descriptor, POLLOUT, 0};
    socklen_t length = sizeof error;
    if (::poll(&entry, 1, static_cast<int>(patience.count())) > 0)
      (void)::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length);
  }
  ::close(descriptor);
  return error == EAGAIN || error == EINTR ? 0 : error;
}

inline std::optional<Error> nobody_at(const std::string& uri, int number) {
  if (number == 0) return std::nullopt;
  return Error{ErrorCode::io_error,
               number == ECONNREFUSED ? "no broker listens at " + uri : "cannot connect to " + uri, number};
}

/// Returns the reason why `uri` cannot be reached; nothing if it can be, or if that is unknown. Connects once
/// to find out. Resolves a host name unless `patience` is zero; that may take longer than `patience`. Errors:
/// invalid_argument (there is no such host), io_error with the system's error number (ECONNREFUSED: no
/// process listens there).
inline std::optional<Error> why_unreachable(const std::string& uri, Timeout patience) {
  constexpr std::string_view ipc = "ipc://";
  if (uri.starts_with(ipc)) {
    sockaddr_un address{};
    const std::string path = uri.substr(ipc.size());
    if (path.empty() || path.front() == '@' || path.size() >= sizeof address.sun_path) return std::nullopt;
    address.sun_family = AF_UNIX;
    std::copy(path.begin(), path.end(), address.sun_path);
    return nobody_at(
        uri, try_to_connect(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof address, patience));
  }
  const auto [host, port] = split_tcp(uri);
  if (host.empty()) return std::nullopt;
  addrinfo hints{};
  hints.ai_family = is_ipv6(uri) ? AF_INET6 : AF_INET;  // as the control connection does
  hints.ai_socktype = SOCK_STREAM;
  const bool looks_up = patience.count() > 0;
  if (!looks_up) hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  const int fault = ::getaddrinfo(std::string(host).c_str(), std::string(port).c_str(), &hints, &found);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
  if (fault != 0 && !looks_up) return std::nullopt;
  if (fault == EAI_NONAME || fault == EAI_NODATA)
    return Error{ErrorCode::invalid_argument,
                 "cannot connect to " + uri + ": there is no host '" + std::string(host) + "'"};
  if (fault != 0)
    return Error{ErrorCode::io_error, "cannot connect to " + uri + ": looking up '" + std::string(host) +
                                          "' fails: " + ::gai_strerror(fault)};
  int number = 0;
  for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
    number = try_to_connect(each->ai_family, each->ai_addr, each->ai_addrlen, patience);
    if (number == 0) return std::nullopt;
  }
  return nobody_at(uri, number);
}

}  // namespace lightq::inline v1::detail
