/// The definitions of <lightq/plain_consumer.hpp>. Layer: client.
#pragma once

#include <lightq/detail/deadline.hpp>
#include <lightq/plain_consumer.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include <zmq.hpp>

#include <lightq/base/result.hpp>
#include <lightq/detail/data_socket.hpp>
#include <lightq/detail/membership.hpp>
#include <lightq/detail/ticket_renewal.hpp>
#include <lightq/message.hpp>
#include <lightq/message_range.hpp>
#include <lightq/options.hpp>
#include <lightq/zmq_error.hpp>

namespace lightq::inline v1 {

LIGHTQ_INLINE Result<void> PlainConsumer::check(const PlainConsumerOptions& options) {
  if (is_high_water_mark(options.high_water_messages)) return {};
  return Error{ErrorCode::invalid_argument, "high_water_messages must be 1 to 1,000,000, not " +
                                                std::to_string(options.high_water_messages)};
}

LIGHTQ_INLINE Result<PlainConsumer> PlainConsumer::open(std::shared_ptr<zmq::context_t> context,
                                                        std::unique_ptr<Membership> membership,
                                                        const EndpointAddress& address,
                                                        const PlainConsumerOptions& options) {
  if (Result<void> valid = check(options); !valid) return valid.error();
  const bool pull = options.mode == Mode::pull;
  Result<DataSocket> socket =
      DataSocket::open(std::move(context), pull ? zmq::socket_type::pull : zmq::socket_type::sub);
  if (!socket) return socket.error();
  PlainConsumer made(std::move(membership), std::move(*socket), options);
  made.socket_.socket().set(zmq::sockopt::rcvhwm, options.high_water_messages);
  if (!pull) made.socket_.socket().set(zmq::sockopt::subscribe, made.topic());
  if (Result<void> connected = made.socket_.connect(address); !connected) return connected.error();
  return made;
}

LIGHTQ_INLINE Result<std::optional<Message>> PlainConsumer::receive(Timeout timeout) {
  if (!socket_.is_open()) return closed_error();
  std::optional<std::chrono::steady_clock::time_point> deadline;
  while (!finished()) {
    zmq::message_t frame;
    if (zmq_msg_recv(frame.handle(), socket_.socket().handle(), ZMQ_DONTWAIT) >= 0) {
      return take(std::move(frame));
    }
    if (zmq_errno() != EAGAIN && zmq_errno() != EINTR) {
      return zmq_error("topic '" + topic() + "': cannot receive", zmq_errno());
    }
    if (Result<void> stays = stay(); !stays) return stays.error();
    if (!deadline) deadline = deadline_after(timeout);
    if (!socket_.wait_or_look(ZMQ_POLLIN, *deadline)) break;
  }
  return std::optional<Message>{};
}

LIGHTQ_INLINE Result<void> PlainConsumer::leave() {
  if (left_) return {};
  if (membership_ == nullptr) return closed_error();
  Result<std::uint64_t> handed = membership_->leave(socket_.uri());
  if (!handed) return handed.error();
  left_ = true;
  handed_ = options_.mode == Mode::pull ? *handed : 0;
  return {};
}

LIGHTQ_INLINE std::uint64_t PlainConsumer::outstanding() const {
  return left_ && handed_ > received_here_ ? handed_ - received_here_ : 0;
}

LIGHTQ_INLINE Result<void> PlainConsumer::rejoin() {
  if (!socket_.is_open()) return closed_error();
  Result<EndpointAddress> address = membership_->join();
  if (!address) return address.error();
  const std::string former = socket_.uri();
  socket_.look();
  if (address->uri == former && !socket_.was_refused()) return {};
  if (Result<void> connected = socket_.connect(*address); !connected) return connected;
  if (address->uri == former) return {};
  (void)membership_->leave(former);  // usually the broker no longer has that endpoint, and the call fails
  left_ = false;
  handed_ = received_here_ = 0;
  return {};
}

LIGHTQ_INLINE int PlainConsumer::descriptor() {
  if (!socket_.is_open()) return -1;
  try {
    return socket_.socket().get(zmq::sockopt::fd);
  } catch (const zmq::error_t&) {  // the context was shut down
    return -1;
  }
}

LIGHTQ_INLINE const std::string& PlainConsumer::topic() const {
  static const std::string none;
  return membership_ == nullptr ? none : membership_->topic();
}

LIGHTQ_INLINE Error PlainConsumer::closed_error() const {
  return {ErrorCode::closed, "topic '" + topic() + "': the consumer is closed"};
}

LIGHTQ_INLINE Result<void> PlainConsumer::stay() {
  socket_.look();
  if (!socket_.was_refused()) return {};
  Result<EndpointAddress> address = renewal_.join(*membership_, socket_.connections());
  if (!address) return address.error();
  const std::string spare = std::exchange(address->uri, socket_.uri());
  if (Result<void> connected = socket_.connect(*address); !connected) return connected;
  if (spare != address->uri) (void)membership_->leave(spare);
  return {};
}

LIGHTQ_INLINE Result<std::optional<Message>> PlainConsumer::take(zmq::message_t frame) {
  const int expected = options_.mode == Mode::sub ? 2 : 1;
  int frames = 1;
  while (frame.more()) {
    frame.rebuild();
    if (zmq_msg_recv(frame.handle(), socket_.socket().handle(), ZMQ_DONTWAIT) < 0) break;
    ++frames;
  }
  ++received_here_;
  if (frames != expected) {
    return Error{ErrorCode::corrupt, "topic '" + topic() + "': a message of " + std::to_string(frames) +
                                         " frames was received from " + bind_uri() + ", but it must have " +
                                         std::to_string(expected)};
  }
  ++received_;
  return std::optional<Message>(Message(std::move(frame)));
}

LIGHTQ_INLINE PlainConsumer::Messages PlainConsumer::messages(Timeout idle_timeout, std::stop_token stop) {
  return {*this, idle_timeout, std::move(stop)};
}

}  // namespace lightq::inline v1
