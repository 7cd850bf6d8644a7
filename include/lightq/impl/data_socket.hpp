/// The definitions of <lightq/detail/data_socket.hpp>. Layer: client.
#pragma once

#include <lightq/detail/data_socket.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <zmq.hpp>

#include <lightq/base/result.hpp>
#include <lightq/curve_identity.hpp>
#include <lightq/detail/deadline.hpp>
#include <lightq/detail/membership.hpp>
#include <lightq/detail/socket_monitor.hpp>
#include <lightq/detail/tcp_uri.hpp>
#include <lightq/detail/zmq_socket.hpp>
#include <lightq/options.hpp>
#include <lightq/zmq_error.hpp>

namespace lightq::inline v1 {

LIGHTQ_INLINE int linger_ms(Timeout linger) {
  return static_cast<int>(std::clamp(linger, Timeout(0), Timeout(std::chrono::hours(24))).count());
}

LIGHTQ_INLINE bool is_high_water_mark(int messages) {
  return messages >= limits::high_water_messages_min && messages <= limits::high_water_messages_max;
}

LIGHTQ_INLINE DataSocket& DataSocket::operator=(DataSocket&& other) noexcept {
  abandon();
  socket_ = std::move(other.socket_);
  monitor_ = std::move(other.monitor_);
  context_ = std::move(other.context_);
  uri_ = std::move(other.uri_);
  connected_ = std::move(other.connected_);
  refused_ = std::move(other.refused_);
  connections_ = other.connections_;
  return *this;
}

LIGHTQ_INLINE Result<DataSocket> DataSocket::open(std::shared_ptr<zmq::context_t> context,
                                                  zmq::socket_type type) {
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

LIGHTQ_INLINE Result<void> DataSocket::connect(const EndpointAddress& address) {
  const std::string& uri = address.uri;
  try {
    if (!uri_.empty()) drop_peer();
    look();  // takes the former peer's events off the monitor
    connected_ = false;
    refused_ = false;
    uri_ = uri;
    show(address);
    socket_.set(zmq::sockopt::ipv6, detail::is_ipv6(uri));
    socket_.connect(uri);
    return {};
  } catch (const zmq::error_t& error) {
    return zmq_error("cannot connect to " + uri, error.num());
  }
}

LIGHTQ_INLINE void DataSocket::look() {
  while (next_event() != 0) {
  }
}

LIGHTQ_INLINE bool DataSocket::connected() {
  look();
  return connected_;
}

LIGHTQ_INLINE bool DataSocket::wait_connected(Timeout timeout) {
  if (!is_open()) return false;
  const auto deadline = deadline_after(timeout);
  while (!connected()) {
    if (refused_ || !wait(monitor_.socket(), ZMQ_POLLIN, deadline)) return connected();
  }
  return true;
}

LIGHTQ_INLINE bool DataSocket::wait_or_look(short events, std::chrono::steady_clock::time_point deadline) {
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

LIGHTQ_INLINE bool DataSocket::wait(zmq::socket_t& socket, short events,
                                    std::chrono::steady_clock::time_point deadline) {
  while (true) {
    zmq_pollitem_t item{socket.handle(), 0, events, 0};
    const Timeout left = time_left(deadline);
    const int ready = zmq_poll(&item, 1, static_cast<long>(left.count()));
    if (ready > 0) return true;
    if (ready < 0 && zmq_errno() != EINTR) return true;  // the next send or receive returns the error
    if (left.count() == 0) return false;
  }
}

LIGHTQ_INLINE bool DataSocket::close(Timeout linger) {
  if (!is_open()) return true;
  // libzmq gets a linger a little longer than this deadline. If it gives up, it does so after the deadline.
  // So an earlier end means that everything was sent.
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

LIGHTQ_INLINE void DataSocket::drop_peer() {
  const int linger = socket_.get(zmq::sockopt::linger);
  socket_.set(zmq::sockopt::linger, 0);
  zmq_disconnect(socket_.handle(), uri_.c_str());
  socket_.set(zmq::sockopt::linger, linger);
}

LIGHTQ_INLINE void DataSocket::abandon() noexcept {
  if (!socket_.is_here()) return;
  monitor_.stop(socket_);
  socket_.close();
  monitor_.close();
}

LIGHTQ_INLINE void DataSocket::show(const EndpointAddress& address) {
  if (address.identity != nullptr) return address.identity->show(socket_);
  const auto& ticket = address.ticket;
  if (!ticket) {
    if (zmq_setsockopt(socket_.handle(), ZMQ_PLAIN_USERNAME, nullptr, 0) != 0) throw zmq::error_t();
    return;
  }
  socket_.set(zmq::sockopt::plain_username, ticket->id);
  socket_.set(zmq::sockopt::plain_password, ticket->secret.expose());
}

LIGHTQ_INLINE int DataSocket::next_event() {
  const int kind = monitor_.next();
  if (kind == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
    connected_ = true;
    ++connections_;
  }
  if (kind == ZMQ_EVENT_DISCONNECTED) connected_ = false;
  // libzmq 4.3.4 does not know the broker's ERROR command, and reports that command as a breach of the
  // protocol.
  if (kind == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH || kind == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL) refused_ = true;
  return kind;
}

}  // namespace lightq::inline v1
