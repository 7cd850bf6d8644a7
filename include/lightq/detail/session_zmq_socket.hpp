/// A libzmq socket that carries one encrypted session. docs/session.md, "Transport". Layer: client.
#pragma once

#include <poll.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <zmq.hpp>

#include <lightq/base/limits.hpp>
#include <lightq/base/result.hpp>
#include <lightq/curve_identity.hpp>
#include <lightq/detail/session_wire.hpp>
#include <lightq/detail/socket_monitor.hpp>
#include <lightq/detail/tcp_uri.hpp>
#include <lightq/detail/zmq_socket.hpp>
#include <lightq/zmq_error.hpp>

namespace lightq::inline v1 {

/// A DEALER with one connection, encrypted by CURVE (SessionZmtpSocket is the unencrypted one). Like a stream
/// socket, the object serves one connection and cannot be used after it ends. A write sends one message of
/// one part, as a whole or not at all; received messages are read as a stream of their bytes. After the
/// destructor, written bytes are still sent for up to a second; only the end of the context waits for that.
/// Not movable. Thread: one at a time.
class SessionZmqSocket final : public SessionWire {
 public:
  SessionZmqSocket(const SessionZmqSocket&) = delete;
  SessionZmqSocket& operator=(const SessionZmqSocket&) = delete;
  ~SessionZmqSocket() override { close(); }

  /// Starts to connect to `uri` (`tcp://HOST:PORT` or `ipc://PATH`); `connected` reports when that is done.
  /// `identity`, which must not be null, has the keys for encryption. `frame_bytes_max` is the longest frame
  /// accepted from the broker; each frame is a message. A longer message ends the connection before memory is
  /// allocated for it. 0: any length. Errors: invalid_argument, limit_reached (no descriptors), closed (the
  /// context ended), io_error.
  static Result<std::unique_ptr<SessionZmqSocket>> connect(
      const std::string& uri, std::shared_ptr<zmq::context_t> context,
      const std::shared_ptr<const CurveIdentity>& identity, std::uint64_t frame_bytes_max = 0) {
    const std::string_view text = uri;
    if (!text.starts_with("tcp://") && !text.starts_with("ipc://"))
      return bad_uri(uri, "it must begin with tcp:// or ipc://");
    try {
      std::unique_ptr<SessionZmqSocket> made(new SessionZmqSocket(uri, std::move(context)));
      if (Result<void> waitable = made->make_waitable(); !waitable) return waitable.error();
      identity->show(made->socket_);
      if (frame_bytes_max != 0) {
        const auto bytes = static_cast<std::int64_t>(frame_bytes_max + message_overhead_max);
        made->socket_.set(zmq::sockopt::maxmsgsize, bytes);
      }
      made->socket_.connect(uri);
      return made;
    } catch (const zmq::error_t& error) {
      if (error.num() == EINVAL || error.num() == ENAMETOOLONG) return bad_uri(uri, error.what());
      return zmq_error("cannot connect to " + uri, error.num());
    }
  }

  Result<bool> connected() override {
    take_events();
    (void)events();  // resets the descriptor: its events were handled
    if (!connected_ && ended_) return Error{ErrorCode::io_error, "cannot connect to " + uri_};
    return connected_;
  }

  Result<std::size_t> read(std::span<std::byte> to) override {
    std::size_t got = 0;
    while (got < to.size()) {
      if (taken_ == message_.size()) {
        Result<bool> next = next_message();
        if (!next && got == 0) return next.error();
        if (!next || !*next) break;
      }
      const std::size_t part = std::min(to.size() - got, message_.size() - taken_);
      if (part > 0) std::memcpy(to.data() + got, message_.data<std::byte>() + taken_, part);
      taken_ += part;
      got += part;
    }
    return got;
  }

  Result<std::size_t> write(std::span<iovec> parts) override {
    if (blocked_) {
      take_events();
      if (ended_) return Error{ErrorCode::closed, "the broker ended the connection"};
      if ((events() & ZMQ_POLLOUT) == 0) return std::size_t{0};
    }
    std::size_t bytes = 0;
    for (const iovec& part : parts) bytes += part.iov_len;
    zmq_msg_t message;
    if (zmq_msg_init_size(&message, bytes) != 0) return zmq_error("cannot send", zmq_errno());
    auto* to = static_cast<std::byte*>(zmq_msg_data(&message));
    for (const iovec& part : parts) {
      std::memcpy(to, part.iov_base, part.iov_len);
      to += part.iov_len;
    }
    drained_ = false;  // Sending may consume the descriptor's notice of received messages.
    blocked_ = zmq_msg_send(&message, socket_.handle(), ZMQ_DONTWAIT) < 0;
    // libzmq may not have checked for a millisecond whether its thread has freed space.
    if (blocked_ && zmq_errno() == EAGAIN && (events() & ZMQ_POLLOUT) != 0)
      blocked_ = zmq_msg_send(&message, socket_.handle(), ZMQ_DONTWAIT) < 0;
    if (!blocked_) return bytes;
    const int number = zmq_errno();
    zmq_msg_close(&message);
    if (number == EAGAIN || number == EINTR) return std::size_t{0};
    return zmq_error("cannot send", number);
  }

  [[nodiscard]] std::size_t write_bytes_target() const override { return message_bytes_target; }

  void close() {
    if (epoll_fd_ >= 0) ::close(std::exchange(epoll_fd_, -1));
    if (!is_open() || !socket_.is_here()) return;
    const int linger_ms = connected_ && !ended_ ? linger_ms_max : 0;
    (void)zmq_setsockopt(socket_.handle(), ZMQ_LINGER, &linger_ms, sizeof linger_ms);
    SocketMonitor::stop(socket_);
    socket_.close();
    monitor_.close();
  }
  [[nodiscard]] bool is_open() const { return socket_.handle() != nullptr; }

  /// Returns a descriptor for poll(2) that is readable when there is something to do, apart from the cases
  /// that `pending` reports.
  [[nodiscard]] int fd() const override { return epoll_fd_; }
  [[nodiscard]] bool tells_room_by_writable() const override { return false; }
  bool pending(short wanted) override {
    const bool reads = (wanted & POLLIN) != 0;
    const bool writes = (wanted & POLLOUT) != 0;
    if (reads && (ended_ || taken_ < message_.size())) return true;
    if (!writes && (!reads || drained_)) return false;
    if (writes) take_events();  // needed because nothing is read meanwhile
    if (writes && ended_) return true;
    const int can = events();
    return (reads && (can & ZMQ_POLLIN) != 0) || (writes && (can & ZMQ_POLLOUT) != 0);
  }

 private:
  static constexpr std::uint32_t of_socket = 0;  // epoll data: which socket reports
  static constexpr std::uint32_t of_monitor = 1;
  static constexpr int linger_ms_max = 1000;
  // Messages queued in libzmq in each direction. The session's credit and window limit bytes; this limits the
  // number of small messages.
  static constexpr int waiting_messages_max = 16;
  static constexpr std::size_t message_bytes_target = 1 * limits::MiB;
  static constexpr std::uint64_t message_overhead_max = 1 * limits::KiB;  // more than CURVE adds
  // With libzmq's own "never" (-1), received messages that were not read are dropped when the connection
  // ends.
  static constexpr int reconnect_ms = std::chrono::milliseconds(std::chrono::hours(24)).count();

  SessionZmqSocket(std::string uri, std::shared_ptr<zmq::context_t> context)
      : context_(std::move(context)), uri_(std::move(uri)), socket_(*context_, zmq::socket_type::dealer) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::sndhwm, waiting_messages_max);
    socket_.set(zmq::sockopt::rcvhwm, waiting_messages_max);
    socket_.set(zmq::sockopt::reconnect_ivl, reconnect_ms);
    socket_.set(zmq::sockopt::tcp_keepalive, 1);
    socket_.set(zmq::sockopt::ipv6, detail::is_ipv6(uri_));
  }

  static Error bad_uri(const std::string& uri, const char* why) {
    return {ErrorCode::invalid_argument, "'" + uri + "' is not an address of a session: " + why};
  }

  /// Starts to monitor the socket, and creates the descriptor.
  Result<void> make_waitable() {
    monitor_.open(*context_, socket_,
                  ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CONNECT_RETRIED |
                      ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                      ZMQ_EVENT_HANDSHAKE_FAILED_AUTH);
    epoll_fd_ = ::epoll_create1(EPOLL_CLOEXEC);
    for (zmq::socket_t* each : {static_cast<zmq::socket_t*>(&socket_), &monitor_.socket()}) {
      epoll_event entry{};
      entry.events = EPOLLIN;
      entry.data.u32 = each == &socket_ ? of_socket : of_monitor;
      if (epoll_fd_ < 0 || ::epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, each->get(zmq::sockopt::fd), &entry) != 0)
        return zmq_error("cannot connect to " + uri_, errno);
    }
    return {};
  }

  /// Makes the next message the current one. Returns false if there is none now.
  Result<bool> next_message() {
    if (drained_ && !ended_) look();
    if (drained_ && !ended_) return false;
    // Messages from before the end may have arrived after the last attempt to take one.
    if (Result<bool> taken = take_message(); !taken || *taken) return taken;
    if (!ended_) return false;
    return Error{ErrorCode::closed, "the broker ended the connection"};
  }
  /// Checks the epoll descriptor with one system call. libzmq's own functions need two calls each to find out
  /// that there is nothing.
  void look() {
    std::array<epoll_event, 2> told{};
    const int count = ::epoll_wait(epoll_fd_, told.data(), static_cast<int>(told.size()), 0);
    for (int at = 0; at < count; ++at) {
      if (told.at(static_cast<std::size_t>(at)).data.u32 == of_monitor) {
        take_events();
      } else {
        drained_ = false;
      }
    }
  }
  Result<bool> take_message() {
    if (is_bad_) return Error{ErrorCode::invalid_request, "the broker sent a message of several parts"};
    taken_ = 0;
    drained_ = false;
    while (zmq_msg_recv(message_.handle(), socket_.handle(), ZMQ_DONTWAIT) >= 0) {
      if (message_.more()) {
        is_bad_ = true;
        message_.rebuild();
        return take_message();
      }
      if (message_.size() > 0) return true;
    }
    const int number = zmq_errno();
    message_.rebuild();
    if (number != EAGAIN && number != EINTR) return zmq_error("cannot receive", number);
    drained_ = number == EAGAIN;
    return false;
  }

  /// Handles all events of the monitor, so that the descriptor reports later ones.
  void take_events() {
    while (const int kind = monitor_.next()) {
      if (kind == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
        connected_ = true;
      } else {
        ended_ = true;
      }
    }
  }

  /// Returns the possible operations of the socket, ZMQ_POLLIN and ZMQ_POLLOUT.
  int events() {
    int can = 0;
    std::size_t bytes = sizeof can;
    // The next call of the socket reports the error.
    if (zmq_getsockopt(socket_.handle(), ZMQ_EVENTS, &can, &bytes) != 0) can = ZMQ_POLLIN | ZMQ_POLLOUT;
    drained_ = (can & ZMQ_POLLIN) == 0;
    return can;
  }

  std::shared_ptr<zmq::context_t> context_;  // declared first: outlives the sockets
  std::string uri_;
  SocketMonitor monitor_;
  ZmqSocket socket_;
  int epoll_fd_ = -1;
  zmq::message_t message_;  // the message that is being read
  std::size_t taken_ = 0;   // bytes read from it
  bool drained_ = false;    // no received message that the descriptor does not show
  bool blocked_ = false;    // libzmq did not accept the last write
  bool connected_ = false;  // was connected at some time
  bool ended_ = false;      // the connection ended, or failed
  bool is_bad_ = false;     // received bytes cannot be read any more
};

}  // namespace lightq::inline v1
