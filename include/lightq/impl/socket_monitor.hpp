/// The definitions of <lightq/detail/socket_monitor.hpp>. Layer: client.
#pragma once

#include <lightq/detail/socket_monitor.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include <zmq.hpp>

#include <lightq/detail/zmq_socket.hpp>

namespace lightq::inline v1 {

LIGHTQ_INLINE void SocketMonitor::open(zmq::context_t& context, zmq::socket_t& watched, int events) {
  const std::string name = "inproc://lightq-monitor-" + std::to_string(++opened_);
  if (zmq_socket_monitor(watched.handle(), name.c_str(), events) != 0) throw zmq::error_t();
  socket_ = zmq::socket_t(context, zmq::socket_type::pair);
  socket_.set(zmq::sockopt::linger, 0);
  socket_.set(zmq::sockopt::rcvhwm, 0);  // otherwise unread events would block libzmq's own thread
  socket_.connect(name);
}

LIGHTQ_INLINE int SocketMonitor::next() {
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

LIGHTQ_INLINE void SocketMonitor::stop(zmq::socket_t& watched) noexcept {
  if (watched.handle() != nullptr) zmq_socket_monitor(watched.handle(), nullptr, 0);
}

}  // namespace lightq::inline v1
