/// Opens, accepts and reads sockets with the system calls of Linux. Layer: net.
#include "net/socket.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include <lightq/base/limits.hpp>
#include <lightq/base/loopback.hpp>
#include <lightq/base/socket_wake.hpp>

#include "net/closing_thread.hpp"

namespace lightq::broker {

namespace {

constexpr int listen_backlog = 512;
constexpr mode_t socket_mode = 0666;  // the mode of a Unix socket's file
constexpr mode_t owner_socket_mode = 0600;
// TCP keep-alive detects the loss of a peer's machine after about a minute and a half.
constexpr int keep_alive_idle_s = 60;
constexpr int keep_alive_interval_s = 10;
constexpr int keep_alive_count = 3;

std::uint64_t descriptor_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

/// Returns true if the descriptor is one of the last `reserved` numbers below the limit. The kernel assigns
/// the lowest free number, so all numbers below it are in use then.
bool in_reserve(int descriptor, std::size_t reserved) {
  return static_cast<std::uint64_t>(descriptor) + reserved >= descriptor_limit();
}

Error out_of_descriptors(const std::string& what) {
  return {ErrorCode::limit_reached,
          what + ": out of file descriptors (limit " + std::to_string(descriptor_limit()) + ", of which " +
              std::to_string(limits::descriptors_reserved) + " are reserved; raise it with ulimit -n)"};
}

Error bind_error(const std::string& what) {
  const int error = errno;
  if (error == EMFILE || error == ENFILE) return out_of_descriptors(what);
  return {error == EADDRINUSE ? ErrorCode::address_in_use : ErrorCode::io_error, "cannot listen on " + what,
          error};
}

std::optional<Error> bind_and_listen(int descriptor, const sockaddr* address, socklen_t length,
                                     const std::string& what) {
  if (in_reserve(descriptor, limits::descriptors_reserved)) return out_of_descriptors(what);
  if (bind(descriptor, address, length) != 0 || listen(descriptor, listen_backlog) != 0)
    return bind_error(what);
  return std::nullopt;
}

std::uint16_t bound_port(int descriptor) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length);
  if (address.ss_family == AF_INET6) return ntohs(reinterpret_cast<sockaddr_in6*>(&address)->sin6_port);
  return ntohs(reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

void set_option(int descriptor, int level, int option, int value) {
  setsockopt(descriptor, level, option, &value, sizeof value);
}

/// Sets options that accepted TCP connections inherit from their listener (Linux).
void set_for_all_accepted(int listener) {
  set_option(listener, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(listener, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(listener, IPPROTO_TCP, TCP_KEEPIDLE, keep_alive_idle_s);
  set_option(listener, IPPROTO_TCP, TCP_KEEPINTVL, keep_alive_interval_s);
  set_option(listener, IPPROTO_TCP, TCP_KEEPCNT, keep_alive_count);
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Error cannot_resolve(const std::string& host, int why) {
  return {ErrorCode::invalid_argument, "cannot resolve " + host + ": " + gai_strerror(why)};
}

Result<Addresses> look_up(const std::string& host, std::uint16_t port, int flags, int family = AF_UNSPEC) {
  addrinfo hints{};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV | flags;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failed != 0) return cannot_resolve(host, failed);
  return Addresses(found, freeaddrinfo);
}

Result<sockaddr_un> unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Error{ErrorCode::invalid_argument, "the path of the ipc endpoint is too long (" +
                                                  std::to_string(path.size()) + " bytes, at most " +
                                                  std::to_string(sizeof address.sun_path - 1) + "): " + path};
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

/// Creates a Unix socket that refuses passed descriptors, if the system can do that. Connections that it
/// accepts inherit this.
UniqueFd make_unix_socket() {
  const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  return UniqueFd(made, made >= 0 && !allow_descriptors(made, false));
}

/// Removes a socket at `path` that an earlier process left, if no process listens on it. Returns the error of
/// binding there if anything else is at `path`.
std::optional<Error> make_way(const std::string& path, const sockaddr_un& address) {
  struct stat found{};
  if (lstat(path.c_str(), &found) != 0)
    return errno == ENOENT ? std::nullopt : std::optional(bind_error(path));
  if (!S_ISSOCK(found.st_mode)) return Error{ErrorCode::address_in_use, path + " exists and is not a socket"};
  const UniqueFd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!probe.valid()) return bind_error(path);
  const int failed = connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (failed == 0 || errno == EAGAIN)  // EAGAIN: a process listens there, and its queue is full
    return Error{ErrorCode::address_in_use, path + " is in use", EADDRINUSE};
  if (errno != ECONNREFUSED && errno != ENOENT)
    return Error{ErrorCode::io_error,
                 path + " exists, and connecting to it failed, so a process may be listening there", errno};
  return unlink(path.c_str()) == 0 || errno == ENOENT ? std::nullopt : std::optional(bind_error(path));
}

}  // namespace

void UniqueFd::reset() {
  if (descriptor_ >= 0) may_bring_descriptors_ ? close_apart(descriptor_) : void(close(descriptor_));
  descriptor_ = -1;
}

std::string uri_host(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

Result<std::string> resolve_host(const std::string& host) {
  // IPv4 comes first, because plain ZeroMQ sockets prefer it for a name with both kinds of addresses, such as
  // localhost.
  auto found = look_up(host, 0, 0, AF_INET);
  if (!found) found = look_up(host, 0, 0);
  if (!found && host == "localhost") found = look_up("127.0.0.1", 0, AI_NUMERICHOST);  // RFC 6761, 6.3
  if (!found) return found.error();
  char numeric[NI_MAXHOST];
  const addrinfo& first = **found;
  const int failed =
      getnameinfo(first.ai_addr, first.ai_addrlen, numeric, sizeof numeric, nullptr, 0, NI_NUMERICHOST);
  if (failed != 0) return cannot_resolve(host, failed);
  return std::string(numeric);
}

Result<ListeningSocket> listen_tcp(const std::string& address, std::uint16_t port) {
  const std::string what = uri_host(address) + ":" + std::to_string(port);
  const auto addresses = look_up(address, port, AI_NUMERICHOST);
  if (!addresses) return addresses.error();
  const addrinfo* const found = addresses->get();
  UniqueFd descriptor(socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!descriptor.valid()) return bind_error(what);
  set_option(descriptor.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  sockaddr_storage ours{};
  std::memcpy(&ours, found->ai_addr, found->ai_addrlen);
  set_for_all_accepted(descriptor.get());
  send_unpaced_on_loopback(descriptor.get(), ours);
  if (auto error = bind_and_listen(descriptor.get(), found->ai_addr, found->ai_addrlen, what)) return *error;
  const std::uint16_t bound = bound_port(descriptor.get());
  return ListeningSocket{std::move(descriptor), bound, is_loopback(ours), {}};
}

void SocketFile::remove() const {
  struct stat found{};
  if (path.empty() || lstat(path.c_str(), &found) != 0) return;
  if (found.st_dev == device && found.st_ino == inode) unlink(path.c_str());
}

Result<ListeningSocket> listen_unix(const std::string& path, SocketMode mode) {
  const auto address = unix_address(path);
  if (!address) return address.error();
  UniqueFd descriptor = make_unix_socket();
  if (!descriptor.valid()) return bind_error(path);
  if (auto error = make_way(path, *address)) return *error;
  const mode_t wanted = mode == SocketMode::owner ? owner_socket_mode : socket_mode;
  if (fchmod(descriptor.get(), wanted) != 0) return bind_error(path);  // bind creates the file with this mode
  if (auto error = bind_and_listen(descriptor.get(), reinterpret_cast<const sockaddr*>(&*address),
                                   sizeof *address, path)) {
    return *error;
  }
  // Sets the mode again, because the umask may have changed it. With SocketMode::everybody any process of the
  // machine may connect, as on loopback, unless the directory's mode forbids it.
  if (chmod(path.c_str(), wanted) != 0) return bind_error(path);
  struct stat made{};
  if (lstat(path.c_str(), &made) != 0) return bind_error(path);
  return ListeningSocket{std::move(descriptor), 0, true, {path, made.st_dev, made.st_ino}};
}

Accepted accept_connection(const ListeningSocket& listener, std::size_t reserved) {
  sockaddr_storage peer{};
  socklen_t bytes = sizeof peer;
  const int descriptor = accept4(listener.descriptor.get(), reinterpret_cast<sockaddr*>(&peer), &bytes,
                                 SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (descriptor < 0) {
    const bool out = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
    return {out ? AcceptOutcome::out_of_descriptors : AcceptOutcome::none, UniqueFd()};
  }
  UniqueFd owned(descriptor, listener.descriptor.may_bring_descriptors());
  if (in_reserve(descriptor, reserved)) return {AcceptOutcome::out_of_descriptors, UniqueFd()};
  if (!listener.loopback) send_unpaced_on_loopback(descriptor, peer);
  return {AcceptOutcome::accepted, std::move(owned)};
}

ssize_t receive(const UniqueFd& connection, std::span<std::byte> to) {
  if (!connection.may_bring_descriptors()) return recv(connection.get(), to.data(), to.size(), MSG_DONTWAIT);
  iovec part{to.data(), to.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  // A peek copies references to passed files and drops them immediately. References in the socket keep the
  // files open, so no close happens here.
  const ssize_t seen = recvmsg(connection.get(), &message, MSG_PEEK | MSG_DONTWAIT);
  if (seen <= 0) return seen;
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    errno = EPROTO;
    return -1;
  }
  return recv(connection.get(), to.data(), static_cast<std::size_t>(seen), MSG_DONTWAIT);
}

bool receive_wakes(const UniqueFd& connection) {
  return take_wakes([&connection](std::span<std::byte> to) { return receive(connection, to); });
}

void set_low_water(int descriptor, std::size_t bytes) {
  set_option(descriptor, SOL_SOCKET, SO_RCVLOWAT, static_cast<int>(bytes));
}

bool answers_nothing(int descriptor) {
  constexpr unsigned attempts = 4;
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  return info.tcpi_retransmits >= attempts || info.tcpi_probes >= attempts;
}

void keep_little(int descriptor) {
  set_option(descriptor, SOL_SOCKET, SO_RCVBUF, 0);
}

std::uint64_t raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  return descriptor_limit();
}

}  // namespace lightq::broker
