/// A connected ZeroMQ socket that knows whether its peer is connected. Layer: client.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <zmq.hpp>

#include <lightq/base/result.hpp>
#include <lightq/curve_identity.hpp>
#include <lightq/deadline.hpp>
#include <lightq/membership.hpp>
#include <lightq/options.hpp>
#include <lightq/socket_monitor.hpp>
#include <lightq/tcp_uri.hpp>
#include <lightq/zmq_error.hpp>
#include <lightq/zmq_socket.hpp>

namespace lightq::inline v1 {

/// Returns a linger as libzmq takes it: finite, 0 to a day, in milliseconds.
inline int linger_ms(Timeout linger) {
  return static_cast<int>(std::clamp(linger, Timeout(0), Timeout(std::chrono::hours(24))).count());
}

/// Returns true if a socket may have this high-water mark, in messages.
inline bool is_high_water_mark(int messages) {
  return messages >= limits::high_water_messages_min && messages <= limits::high_water_messages_max;
}

/// A PUSH, PULL or SUB socket that is connected to one endpoint. libzmq reconnects it by itself when the
/// broker restarts at the same port. After a refusal libzmq does not reconnect; the owner must call connect
/// again. Move-only. One thread at a time.
class DataSocket {
 public:
  DataSocket(DataSocket&&) noexcept = default;
  /// Replaces the members in an order in which no socket outlives its context.
  DataSocket& operator=(DataSocket&& other) noexcept {
    abandon();
    socket_ = std::move(other.socket_);
    monitor_ = std::move(other.monitor_);
    context_ = std::move(other.context_);
    uri_ = std::move(other.uri_);
    connected_ = other.connected_;
    refused_ = other.refused_;
    connections_ = other.connections_;
    return *this;
  }
  ~DataSocket() { abandon(); }

  /// Opens an unconnected socket with a linger of 0. Errors: limit_reached, io_error.
  static Result<DataSocket> open(std::shared_ptr<zmq::context_t> context, zmq::socket_type type) {
    try {
      DataSocket made;
      made.context_ = std::move(context);
      made.socket_ = ZmqSocket(*made.context_, type);
      made.socket_.set(zmq::sockopt::linger, 0);
      made.socket_.set(zmq::sockopt::tcp_keepalive, 1);
      made.socket_.set(zmq::sockopt::tcp_keepalive_idle, 60);
      made.monitor_.open(*made.context_, made.socket_,
                         ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH |
                             ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_DISCONNECTED |
                             ZMQ_EVENT_MONITOR_STOPPED);
      return made;
    } catch (const zmq::error_t& error) {
      return zmq_error("cannot open a socket", error.num());
    }
  }

  /// Disconnects from the former address, and connects to `address`. Drops messages that wait for the former
  /// one.
  Result<void> connect(const EndpointAddress& address) {
    const std::string& uri = address.uri;
    try {
      if (!uri_.empty()) drop_peer();
      look();  // takes the former peer's events off the monitor
      connected_ = refused_ = false;
      uri_ = uri;
      show(address);
      socket_.set(zmq::sockopt::ipv6, detail::is_ipv6(uri));
      socket_.connect(uri);
      return {};
    } catch (const zmq::error_t& error) {
      return zmq_error("cannot connect to " + uri, error.num());
    }
  }

  [[nodiscard]] zmq::socket_t& socket() { return socket_; }
  [[nodiscard]] const std::string& uri() const { return uri_; }

  /// Updates the state of the connection from the monitor's events.
  void look() {
    while (next_event() != 0) {
    }
  }
  /// Returns true if the connection was up at the last look.
  [[nodiscard]] bool was_connected() const { return connected_; }
  /// Returns true if the broker had refused the connection at the last look. libzmq then does not connect
  /// again, and drops the messages that it had for the connection.
  [[nodiscard]] bool was_refused() const { return refused_; }
  /// Returns how many connections were established by the last look, over this object's life.
  [[nodiscard]] std::uint64_t connections() const { return connections_; }
  /// Returns true if the connection is up now, as far as libzmq has noticed.
  [[nodiscard]] bool connected() {
    look();
    return connected_;
  }

  /// Waits until the connection is up. Returns false after `timeout`, or if the broker refuses the
  /// connection.
  [[nodiscard]] bool wait_connected(Timeout timeout) {
    const auto deadline = deadline_after(timeout);
    while (!connected()) {
      if (refused_ || !wait(monitor_.socket(), ZMQ_POLLIN, deadline)) return connected();
    }
    return true;
  }

  /// Waits until the socket is readable or writable, or the connection's state changes, and then looks.
  /// Returns false at the deadline.
  bool wait_or_look(short events, std::chrono::steady_clock::time_point deadline) {
    while (true) {
      zmq_pollitem_t items[] = {{socket_.handle(), 0, events, 0},
                                {monitor_.socket().handle(), 0, ZMQ_POLLIN, 0}};
      const Timeout left = time_left(deadline);
      const int ready = zmq_poll(items, 2, static_cast<long>(left.count()));
      if (ready > 0 && items[1].revents != 0) look();
      if (ready > 0) return true;
      if (ready < 0 && zmq_errno() != EINTR) return true;  // the next send or receive returns the error
      if (left.count() == 0) return false;
    }
  }

  /// Waits until `socket` is readable or writable. Returns false at the deadline.
  static bool wait(zmq::socket_t& socket, short events, std::chrono::steady_clock::time_point deadline) {
    while (true) {
      zmq_pollitem_t item{socket.handle(), 0, events, 0};
      const Timeout left = time_left(deadline);
      const int ready = zmq_poll(&item, 1, static_cast<long>(left.count()));
      if (ready > 0) return true;
      if (ready < 0 && zmq_errno() != EINTR) return true;  // the next send or receive returns the error
      if (left.count() == 0) return false;
    }
  }

  /// Closes the socket. Waits up to `linger` until its unsent messages have left. Returns false if some did
  /// not leave in time; these are dropped.
  bool close(Timeout linger) {
    if (!is_open()) return true;
    // libzmq gets a linger a little longer than this deadline. So if the socket ends before the deadline,
    // everything has left.
    constexpr Timeout margin(50);
    const auto deadline = deadline_after(linger);
    socket_.set(zmq::sockopt::linger, linger.count() == 0 ? 0 : linger_ms(linger + margin));
    socket_.close();
    // libzmq reports "stopped" when the socket is closed: at the latest when the linger ends.
    bool in_time = true;
    const auto patience = deadline + std::chrono::seconds(1);
    while (next_event() != ZMQ_EVENT_MONITOR_STOPPED) {
      if (!wait(monitor_.socket(), ZMQ_POLLIN, patience)) break;
      in_time = std::chrono::steady_clock::now() < deadline;
    }
    monitor_.close();
    connected_ = false;
    return in_time;
  }

  /// Returns true if the socket is open. In a child that was forked later, returns false: the socket belongs
  /// to the parent.
  [[nodiscard]] bool is_open() const { return socket_.is_here() && socket_.handle() != nullptr; }

 private:
  DataSocket() = default;

  /// Disconnects with a linger of 0. Otherwise libzmq would keep trying to reach the peer for the socket's
  /// linger. Throws zmq::error_t.
  void drop_peer() {
    const int linger = socket_.get(zmq::sockopt::linger);
    socket_.set(zmq::sockopt::linger, 0);
    zmq_disconnect(socket_.handle(), uri_.c_str());
    socket_.set(zmq::sockopt::linger, linger);
  }

  /// Closes the socket without waiting. libzmq sends unsent messages in the background for up to the socket's
  /// linger.
  void abandon() noexcept {
    if (!socket_.is_here()) return;
    monitor_.stop(socket_);
    socket_.close();
    monitor_.close();
  }

  /// Sets the credentials for the next connect. Throws zmq::error_t.
  void show(const EndpointAddress& address) {
    if (address.identity != nullptr) return address.identity->show(socket_);
    const auto& ticket = address.ticket;
    if (!ticket) {
      if (zmq_setsockopt(socket_.handle(), ZMQ_PLAIN_USERNAME, nullptr, 0) != 0) throw zmq::error_t();
      return;
    }
    socket_.set(zmq::sockopt::plain_username, ticket->id);
    socket_.set(zmq::sockopt::plain_password, ticket->secret);
  }

  /// Takes one event off the monitor, and updates the state. Returns 0 if there is no event.
  int next_event() {
    const int kind = monitor_.next();
    if (kind == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
      connected_ = true;
      ++connections_;
    }
    if (kind == ZMQ_EVENT_DISCONNECTED) connected_ = false;
    // libzmq 4.3.4 does not know the broker's ERROR command, and reports it as a breach of the protocol.
    if (kind == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH || kind == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL)
      refused_ = true;
    return kind;
  }

  std::shared_ptr<zmq::context_t> context_;  // outlives the sockets: constructed first, destroyed last
  SocketMonitor monitor_;
  ZmqSocket socket_;
  std::string uri_;
  bool connected_ = false;
  bool refused_ = false;
  std::uint64_t connections_ = 0;
};

}  // namespace lightq::inline v1
