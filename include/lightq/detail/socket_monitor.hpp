/// Reports the events of a ZeroMQ socket's connections. Layer: client.
#pragma once

#include <atomic>
#include <cstdint>

#include <zmq.hpp>

#include <lightq/base/separate.hpp>
#include <lightq/detail/zmq_socket.hpp>

namespace lightq::inline v1 {

/// The events of one socket, from libzmq's own thread. Move-only. Thread: one at a time, the one that uses
/// the socket.
class SocketMonitor {
 public:
  /// Starts to monitor `watched` for `events` (of zmq_socket_monitor). Throws zmq::error_t.
  void open(zmq::context_t& context, zmq::socket_t& watched, int events);

  /// Returns the next event's kind; 0 if there is none now.
  int next();
  /// Returns libzmq's value of the last event; after a failed handshake, the reason.
  [[nodiscard]] std::uint32_t value() const { return value_; }

  /// Ends the monitoring that `open` started. Call it before closing either socket, unless the caller waits
  /// for ZMQ_EVENT_MONITOR_STOPPED. Otherwise libzmq's own thread waits forever when it has an event for a
  /// closed socket, and all sockets of the context wait with it.
  static void stop(zmq::socket_t& watched) noexcept;
  void close() noexcept { socket_.close(); }

  /// Returns the socket, which is readable when there are events. Use it only for waiting.
  [[nodiscard]] zmq::socket_t& socket() { return socket_; }

 private:
  static inline std::atomic<std::uint64_t> opened_ = 0;  // for the names of the sockets

  ZmqSocket socket_;
  std::uint32_t value_ = 0;
};

}  // namespace lightq::inline v1

#if defined(LIGHTQ_WITH_DEFINITIONS)
#include <lightq/impl/socket_monitor.hpp>  // IWYU pragma: export
#endif
