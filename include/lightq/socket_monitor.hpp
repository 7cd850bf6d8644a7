/// Tells what becomes of a ZeroMQ socket's connections. Layer: client.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include <zmq.hpp>

#include <lightq/zmq_socket.hpp>

namespace lightq::inline v1 {

/// The events of one socket, from libzmq's own thread. Move-only. One thread at a time, the socket's.
class SocketMonitor {
 public:
  /// Begins to watch `watched` for `events` (of zmq_socket_monitor). Throws zmq::error_t.
  void open(zmq::context_t& context, zmq::socket_t& watched, int events) {
    static std::atomic<std::uint64_t> opened{0};
    const std::string name = "inproc://lightq-monitor-" + std::to_string(++opened);
    if (zmq_socket_monitor(watched.handle(), name.c_str(), events) != 0) throw zmq::error_t();
    socket_ = zmq::socket_t(context, zmq::socket_type::pair);
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::rcvhwm, 0);  // else unread events would block libzmq's own thread
    socket_.connect(name);
  }

  /// The next event's kind; 0: there is none now.
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
  /// What libzmq says with the last event: of a failed handshake why.
  [[nodiscard]] std::uint32_t value() const { return value_; }

  /// Ends what `open` began. To be called before either socket is closed, unless ZMQ_EVENT_MONITOR_STOPPED is
  /// waited for: libzmq's own thread waits for ever, and with it every socket of the context, when it has an
  /// event to tell and nobody is there any more.
  static void stop(zmq::socket_t& watched) noexcept {
    if (watched.handle() != nullptr) zmq_socket_monitor(watched.handle(), nullptr, 0);
  }
  void close() noexcept { socket_.close(); }

  /// Readable when there are events; of no other use.
  [[nodiscard]] zmq::socket_t& socket() { return socket_; }

 private:
  ZmqSocket socket_;
  std::uint32_t value_ = 0;
};

}  // namespace lightq::inline v1
