/// The definitions of <lightq/plain_producer.hpp>. Layer: client.
#pragma once

#include <lightq/detail/deadline.hpp>
#include <lightq/plain_producer.hpp>

#include <time.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <deque>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <zmq.hpp>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>
#include <lightq/detail/data_socket.hpp>
#include <lightq/detail/membership.hpp>
#include <lightq/detail/ticket_renewal.hpp>
#include <lightq/detail/unsent_messages.hpp>
#include <lightq/options.hpp>
#include <lightq/zmq_error.hpp>

namespace lightq::inline v1 {

LIGHTQ_INLINE Result<void> PlainProducer::check(const PlainProducerOptions& options) {
  if (is_high_water_mark(options.high_water_messages) && options.high_water_bytes > 0) return {};
  return Error{ErrorCode::invalid_argument,
               "high_water_messages must be 1 to 1,000,000 and high_water_bytes at least 1, not " +
                   std::to_string(options.high_water_messages) + " and " +
                   std::to_string(options.high_water_bytes)};
}

LIGHTQ_INLINE Result<PlainProducer> PlainProducer::open(std::shared_ptr<zmq::context_t> context,
                                                        std::unique_ptr<Membership> membership,
                                                        const EndpointAddress& address,
                                                        const PlainProducerOptions& options) {
  if (Result<void> valid = check(options); !valid) return valid.error();
  Result<DataSocket> socket = DataSocket::open(std::move(context), zmq::socket_type::push);
  if (!socket) return socket.error();
  PlainProducer made(std::move(membership), std::move(*socket), options);
  made.socket_.socket().set(zmq::sockopt::sndhwm, options.high_water_messages);
  made.socket_.socket().set(zmq::sockopt::linger, linger_ms(options.linger));
  if (Result<void> connected = made.socket_.connect(address); !connected) return connected.error();
  return made;
}

LIGHTQ_INLINE Result<void> PlainProducer::send(std::string_view payload, Timeout timeout) {
  return send(as_byte_view(payload), timeout);
}

LIGHTQ_INLINE Result<void> PlainProducer::send(ByteView payload, Timeout timeout) {
  std::optional<std::chrono::steady_clock::time_point> deadline;
  while (true) {
    switch (try_send(payload)) {
      case SendOutcome::sent: return {};
      case SendOutcome::closed: return send_error();
      case SendOutcome::would_block: break;
    }
    if (!deadline) deadline = deadline_after(timeout);
    if (!wait_for_room(*deadline)) return send_timeout(timeout);
  }
}

LIGHTQ_INLINE SendOutcome PlainProducer::try_send(ByteView payload) {
  if (!socket_.is_open()) return SendOutcome::closed;
  if (look_is_due()) look();
  if (socket_.was_refused() || !again_.empty()) {
    if (!settle()) return SendOutcome::closed;
    if (!again_.empty()) return SendOutcome::would_block;
  }
  if (!unsent_.is_below(options_.high_water_bytes)) return SendOutcome::would_block;
  if (!hand_over(payload)) return is_full() ? SendOutcome::would_block : SendOutcome::closed;
  if (++sent_ % forget_interval == 0 && was_connected_) unsent_.forget_passed();
  return SendOutcome::sent;
}

LIGHTQ_INLINE Result<void> PlainProducer::close(Timeout linger) {
  if (!socket_.is_open()) return {};
  const auto deadline = deadline_after(linger);
  look();
  bool left = false;
  while (settle() && !(left = has_left(deadline)) && time_left(deadline).count() > 0) look();
  left = socket_.close(time_left(deadline)) && left;
  if (left || linger.count() == 0) return {};
  if (refusal_) return *refusal_;
  return Error{ErrorCode::timeout, "topic '" + topic() + "': some messages could not be sent within " +
                                       std::to_string(linger.count()) + " ms and are dropped"};
}

LIGHTQ_INLINE Result<void> PlainProducer::rejoin() {
  if (!socket_.is_open()) return closed_error();
  Result<EndpointAddress> address = membership_->join();
  if (!address) return address.error();
  look();
  if (address->uri == socket_.uri() && !socket_.was_refused()) return {};
  if (Result<void> connected = connect_again(*address); !connected) return connected;
  hand_over_again();
  return {};
}

LIGHTQ_INLINE bool PlainProducer::connected() {
  look();
  return socket_.was_connected();
}

LIGHTQ_INLINE bool PlainProducer::wait_connected(Timeout timeout) {
  const bool connected = socket_.wait_connected(timeout);
  look();
  return connected;
}

LIGHTQ_INLINE const std::string& PlainProducer::topic() const {
  static const std::string none;
  return membership_ == nullptr ? none : membership_->topic();
}

LIGHTQ_INLINE bool PlainProducer::look_is_due() {
  constexpr std::int64_t interval_ns = 5'000'000;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  const std::int64_t now_ns = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  if (now_ns - looked_ns_ < interval_ns) return false;
  looked_ns_ = now_ns;
  return true;
}

LIGHTQ_INLINE void PlainProducer::look() {
  socket_.look();
  if (was_connected_ || connections_ != socket_.connections()) unsent_.forget_passed();
  was_connected_ = socket_.was_connected();
  connections_ = socket_.connections();
}

LIGHTQ_INLINE bool PlainProducer::settle() {
  refusal_.reset();
  if (socket_.was_refused()) {
    Result<void> joined = join_again();
    if (!joined) {
      refusal_ = joined.error();
      return false;
    }
  }
  hand_over_again();
  return true;
}

LIGHTQ_INLINE void PlainProducer::hand_over_again() {
  while (!again_.empty() && hand_over(again_.front())) again_.pop_front();
}

LIGHTQ_INLINE Result<void> PlainProducer::join_again() {
  Result<EndpointAddress> address = renewal_.join(*membership_, socket_.connections());
  if (!address) return address.error();
  return connect_again(*address);
}

LIGHTQ_INLINE Result<void> PlainProducer::connect_again(const EndpointAddress& address) {
  if (!was_connected_) {
    std::deque<std::vector<std::byte>> waiting;
    unsent_.copy_to(waiting);
    std::move(again_.begin(), again_.end(), std::back_inserter(waiting));
    again_ = std::move(waiting);
  }
  // Messages that wait for the former endpoint do not count towards the limit any more.
  unsent_ = UnsentMessages();
  was_connected_ = false;
  return socket_.connect(address);
}

LIGHTQ_INLINE bool PlainProducer::hand_over(ByteView payload) {
  if (payload.size() >= limits::counted_message_bytes_min && !has_room()) return false;
  if (unsent_.send(socket_.socket(), payload)) return true;
  send_errno_ = zmq_errno();
  return false;
}

LIGHTQ_INLINE bool PlainProducer::has_room() {
  int events = 0;
  std::size_t size = sizeof events;
  const bool known = zmq_getsockopt(socket_.socket().handle(), ZMQ_EVENTS, &events, &size) == 0;
  send_errno_ = known ? EAGAIN : zmq_errno();
  return known && (events & ZMQ_POLLOUT) != 0;
}

LIGHTQ_INLINE bool PlainProducer::has_left(std::chrono::steady_clock::time_point deadline) {
  const auto until = std::min(deadline, std::chrono::steady_clock::now() + patience);
  if (again_.empty()) return unsent_.wait_gone(until);
  socket_.wait_or_look(ZMQ_POLLOUT, until);
  return false;
}

LIGHTQ_INLINE bool PlainProducer::wait_for_room(std::chrono::steady_clock::time_point deadline) {
  while (true) {
    const auto until = std::min(deadline, std::chrono::steady_clock::now() + patience);
    const bool below = unsent_.wait_below(options_.high_water_bytes, until);
    look();
    if (socket_.was_refused()) return true;
    if (below && socket_.wait_or_look(ZMQ_POLLOUT, until)) return true;
    if (until == deadline) return false;
  }
}

LIGHTQ_INLINE Error PlainProducer::closed_error() const {
  return {ErrorCode::closed, "topic '" + topic() + "': the producer is closed"};
}

LIGHTQ_INLINE Error PlainProducer::send_error() const {
  if (!socket_.is_open()) return closed_error();
  if (refusal_) return *refusal_;
  return zmq_error("topic '" + topic() + "': cannot send", send_errno_);
}

LIGHTQ_INLINE Error PlainProducer::send_timeout(Timeout timeout) {
  const char* why = connected() ? " accepts no messages: the log may be full" : " is not connected";
  return {ErrorCode::timeout, "topic '" + topic() + "': not sent within " + std::to_string(timeout.count()) +
                                  " ms; endpoint " + bind_uri() + why};
}

}  // namespace lightq::inline v1
