/// Reports the events of a ZeroMQ socket's connections. Layer: client.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include <zmq.hpp>

#include <lightq/zmq_socket.hpp>

namespace lightq::inline v1 {

/// The events of one socket, from libzmq's own thread. Move-only. Thread: one at a time, the one that uses
/// the socket.
class SocketMonitor {
 public:
  /// Starts to monitor `watched` for `events` (of zmq_socket_monitor). Throws zmq::error_t.
  void open(zmq::context_t& context, zmq::socket_t& watched, int events) {
    static std::atomic<std::uint64_t> opened{0};
    const std::string name = "inproc://lightq-monitor-" + std::to_string(++opened);
    if (zmq_socket_monitor(watched.handle(), name.c_str(), events) != 0) throw zmq::error_t();
    socket_ = zmq::socket_t(context, zmq::socket_type::pair);
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::rcvhwm, 0);  // otherwise unread events would block libzmq's own thread
    socket_.connect(name);
  }

  /// Returns the next event's kind; 0 if there is none now.
  int next() {
    if (socket_.handle() == nullptr) return 0;
    zmq::message_t event;
    zmq::message_t address;
    if (zmq_msg_recv(event.handle(), socket_.handle(), ZMQ_DONTWAIT) < 0) return 0;
    zmq_msg_recv(address.handle(), socket_.handle(), ZMQ_DONTWAIT);
    std::uint16_t kind = 0;
    if (event.size() < sizeof kind) return 0;
    std::memcpy(&kind, event.data(), sizeof kind);
    value_ = 0;
    if (event.size() >= sizeof kind + sizeof value_)
      std::memcpy(&value_, static_cast<const std::byte*>(event.data()) + sizeof kind, sizeof value_);
    return kind;
  }
  /// Returns libzmq's value of the last event; after a failed handshake, the reason.
  [[nodiscard]] std::uint32_t value() const { return value_; }

  /// Ends the monitoring that `open` started. Call it before closing either socket, unless the caller waits
  /// for ZMQ_EVENT_MONITOR_STOPPED. Otherwise libzmq's own thread waits forever when it has an event for a
  /// closed socket, and all sockets of the context wait with it.
  static void stop(zmq::socket_t& watched) noexcept {
    if (watched.handle() != nullptr) zmq_socket_monitor(watched.handle(), nullptr, 0);
  }
  void close() noexcept { socket_.close(); }

  /// Returns the socket, which is readable when there are events. Use it only for waiting.
  [[nodiscard]] zmq::socket_t& socket() { return socket_; }

 private:
  ZmqSocket socket_;
  std::uint32_t value_ = 0;
};

}  // namespace lightq::inline v1
