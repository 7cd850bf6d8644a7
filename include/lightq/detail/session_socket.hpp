/// A nonblocking TCP or Unix stream socket that carries a session. Layer: client.
#pragma once

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <lightq/base/loopback.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/socket_wake.hpp>
#include <lightq/detail/session_sock_address.hpp>
#include <lightq/detail/session_wire.hpp>

namespace lightq::inline v1 {

/// The client's end of a stream connection. No call waits, except for the name server in `connect`.
/// Move-only. For one thread.
class SessionSocket final : public SessionWire {
 public:
  SessionSocket() = default;
  SessionSocket(SessionSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  SessionSocket& operator=(SessionSocket&& other) noexcept {
    if (this != &other) {
      close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~SessionSocket() override { close(); }

  /// Starts to connect to `uri` (see resolve_session_uri); `connected` reports when that is done. Sets
  /// TCP_NODELAY and keep-alive. Errors: invalid_argument, limit_reached (no descriptors), io_error (for
  /// example refused immediately).
  static Result<SessionSocket> connect(const std::string& uri) {
    Result<SessionSockAddress> address = resolve_session_uri(uri);
    if (!address) return address.error();
    SessionSocket made;
    made.fd_ = ::socket(address->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (made.fd_ < 0) return failure("cannot create a socket for " + uri, errno);
    if (address->storage.ss_family == AF_UNIX) {
      allow_descriptors(made.fd_, false);
    } else {
      const int on = 1;
      (void)::setsockopt(made.fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      (void)::setsockopt(made.fd_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
      // As the broker does: a lost peer is noticed after about 90 s without traffic.
      const int idle_s = 60, interval_s = 10, probes = 3;
      (void)::setsockopt(made.fd_, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
      (void)::setsockopt(made.fd_, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
      (void)::setsockopt(made.fd_, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
      send_unpaced_on_loopback(made.fd_, address->storage);
    }
    if (::connect(made.fd_, reinterpret_cast<const sockaddr*>(&address->storage), address->bytes) != 0 &&
        errno != EINPROGRESS && errno != EINTR) {
      return failure("cannot connect to " + uri, errno);
    }
    return made;
  }

  Result<bool> connected() override {
    pollfd entry{fd_, POLLOUT, 0};
    if (::poll(&entry, 1, 0) <= 0) return false;
    int number = 0;
    socklen_t bytes = sizeof number;
    if (::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &number, &bytes) != 0) number = errno;
    if (number != 0) return failure("cannot connect", number);
    return true;
  }

  Result<std::size_t> read(std::span<std::byte> to) override {
    return received(::recv(fd_, to.data(), to.size(), 0));
  }
  /// Reads into several buffers, one after the other.
  Result<std::size_t> read_parts(std::span<iovec> to) {
    msghdr message{};
    message.msg_iov = to.data();
    message.msg_iovlen = to.size();
    return received(::recvmsg(fd_, &message, 0));
  }

  /// Requires: at most IOV_MAX parts.
  Result<std::size_t> write(std::span<iovec> parts) override {
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t sent = ::sendmsg(fd_, &message, MSG_NOSIGNAL);
    if (sent >= 0) return static_cast<std::size_t>(sent);
    return nothing_or(errno, "cannot send");
  }
  [[nodiscard]] std::size_t write_bytes_target() const override { return SIZE_MAX; }

  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  /// Returns the descriptor; -1 if closed.
  [[nodiscard]] int fd() const override { return fd_; }
  [[nodiscard]] bool tells_room_by_writable() const override { return true; }
  bool pending(short /*events*/) override { return false; }

  /// Converts the result of a receive call: the number of bytes, 0 if nothing had arrived, or an error.
  static Result<std::size_t> received(ssize_t got) {
    if (got > 0) return static_cast<std::size_t>(got);
    if (got == 0) return Error{ErrorCode::closed, "the broker ended the connection"};
    return nothing_or(errno, "cannot receive");
  }

 private:
  static Error failure(const std::string& what, int number) {
    const bool full = number == EMFILE || number == ENFILE;
    return {full ? ErrorCode::limit_reached : ErrorCode::io_error, what, number};
  }
  static Result<std::size_t> nothing_or(int number, const char* what) {
    if (number == EAGAIN || number == EWOULDBLOCK || number == EINTR) return std::size_t{0};
    if (number == EPIPE || number == ECONNRESET) return Error{ErrorCode::closed, what, number};
    return failure(what, number);
  }

  int fd_ = -1;
};

}  // namespace lightq::inline v1
