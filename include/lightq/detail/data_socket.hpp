/// A connected ZeroMQ socket that knows whether its peer is connected. Layer: client.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include <zmq.hpp>

#include <lightq/base/reset_by_move.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/separate.hpp>
#include <lightq/detail/membership.hpp>
#include <lightq/detail/socket_monitor.hpp>
#include <lightq/detail/zmq_socket.hpp>
#include <lightq/options.hpp>

namespace lightq::inline v1 {

/// Returns a linger as libzmq takes it: finite, 0 to a day, in milliseconds.
LIGHTQ_INLINE int linger_ms(Timeout linger);

/// Returns true if a socket may have this high-water mark, in messages.
LIGHTQ_INLINE bool is_high_water_mark(int messages);

/// A PUSH, PULL or SUB socket that is connected to one endpoint. libzmq reconnects it by itself when the
/// broker restarts at the same port. After a refusal libzmq does not reconnect; the owner must call connect
/// again. Move-only. One thread at a time.
class DataSocket {
 public:
  /// A socket that was moved from is not open.
  DataSocket(DataSocket&&) noexcept = default;
  /// Replaces the members in an order in which no socket outlives its context.
  DataSocket& operator=(DataSocket&& other) noexcept;
  ~DataSocket() { abandon(); }

  /// Opens an unconnected socket with a linger of 0. Errors: limit_reached, io_error.
  static Result<DataSocket> open(std::shared_ptr<zmq::context_t> context, zmq::socket_type type);

  /// Disconnects from the former address, and connects to `address`. Drops messages that wait for the former
  /// one.
  Result<void> connect(const EndpointAddress& address);

  [[nodiscard]] zmq::socket_t& socket() { return socket_; }
  [[nodiscard]] const std::string& uri() const { return uri_; }

  /// Updates the state of the connection from the monitor's events.
  void look();
  /// Returns true if the connection was up at the last look.
  [[nodiscard]] bool was_connected() const { return connected_; }
  /// Returns true if the broker had refused the connection at the last look. libzmq then does not connect
  /// again, and drops the messages that it had for the connection.
  [[nodiscard]] bool was_refused() const { return refused_; }
  /// Returns how many connections were established by the last look, over this object's life.
  [[nodiscard]] std::uint64_t connections() const { return connections_; }
  /// Returns true if the connection is up now, as far as libzmq has noticed.
  [[nodiscard]] bool connected();

  /// Waits until the connection is up. Returns false after `timeout`, or if the broker refuses the
  /// connection.
  [[nodiscard]] bool wait_connected(Timeout timeout);

  /// Waits until the socket is readable or writable, or the connection's state changes, and then looks.
  /// Returns false at the deadline.
  bool wait_or_look(short events, std::chrono::steady_clock::time_point deadline);

  /// Waits until `socket` is readable or writable. Returns false at the deadline.
  static bool wait(zmq::socket_t& socket, short events, std::chrono::steady_clock::time_point deadline);

  /// Closes the socket. Waits up to `linger` until its unsent messages have left. Returns false if some did
  /// not leave in time; these are dropped.
  bool close(Timeout linger);

  /// Returns true if the socket is open. In a child that was forked later, returns false: the socket belongs
  /// to the parent.
  [[nodiscard]] bool is_open() const { return socket_.is_here() && socket_.handle() != nullptr; }

 private:
  DataSocket() = default;

  /// Disconnects with a linger of 0. Otherwise libzmq would keep trying to reach the peer for the socket's
  /// linger. Throws zmq::error_t.
  void drop_peer();

  /// Closes the socket without waiting. libzmq sends unsent messages in the background for up to the socket's
  /// linger.
  void abandon() noexcept;

  /// Sets the credentials for the next connect. Throws zmq::error_t.
  void show(const EndpointAddress& address);

  /// Takes one event off the monitor, and updates the state. Returns 0 if there is no event.
  int next_event();

  std::shared_ptr<zmq::context_t> context_;  // outlives the sockets: constructed first, destroyed last
  SocketMonitor monitor_;
  ZmqSocket socket_;
  std::string uri_;
  ResetByMove<bool> connected_;
  ResetByMove<bool> refused_;
  std::uint64_t connections_ = 0;
};

}  // namespace lightq::inline v1

#if defined(LIGHTQ_WITH_DEFINITIONS)
#include <lightq/impl/data_socket.hpp>  // IWYU pragma: export
#endif
