/// Receives a topic's messages over a plain ZeroMQ PULL or SUB socket. Layer: client.
#pragma once

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
#include <lightq/data_socket.hpp>
#include <lightq/membership.hpp>
#include <lightq/message.hpp>
#include <lightq/message_range.hpp>
#include <lightq/options.hpp>
#include <lightq/ticket_renewal.hpp>

namespace lightq::inline v1 {

/// A consumer of one topic, made by Client::plain_consumer. Move-only; one thread at a time.
///
/// What is promised: messages come in the topic's order, at most once each. `pull` consumers of a topic
/// share its messages; a `sub` consumer gets every message from its join on, and when it falls so far behind
/// that the log has moved past it, what it lost is counted in the topic's stats. What is not: there is no
/// acknowledgement. Messages handed to a pull consumer that dies, or that closes without leave(), are gone.
///
/// When the broker restarts, its endpoints keep their ports and libzmq reconnects by itself. If connected()
/// stays false although the broker answers, the endpoint is gone: call rejoin().
///
/// When the broker refuses the connection (the ticket of the last join has expired, or the broker has another
/// key) the next receive() joins again by itself and goes on at the same endpoint, at its place. Being
/// refused again at once is an error of the call, unauthorized_access.
class PlainConsumer {
 public:
  using Messages = MessageRange<PlainConsumer, Message>;

  PlainConsumer(PlainConsumer&&) noexcept = default;
  PlainConsumer& operator=(PlainConsumer&&) noexcept = default;
  /// Disconnects at once, without telling the broker: messages handed over and not received are gone. Use
  /// leave() to end in order.
  ~PlainConsumer() = default;

  /// Whether the options are in their ranges. Error: invalid_argument.
  static Result<void> check(const PlainConsumerOptions& options) {
    if (is_high_water_mark(options.high_water_messages)) return {};
    return Error{ErrorCode::invalid_argument, "high_water_messages must be 1 to 1,000,000, not " +
                                                  std::to_string(options.high_water_messages)};
  }

  /// Connects to the endpoint at `address`, of `membership`'s topic. Used by Client::plain_consumer. Errors:
  /// invalid_argument (options out of their range), limit_reached, io_error.
  static Result<PlainConsumer> open(std::shared_ptr<zmq::context_t> context,
                                    std::unique_ptr<Membership> membership, const EndpointAddress& address,
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

  /// The next message; nothing when none came in time (0 does not wait), or when finished(). Errors: closed,
  /// io_error; corrupt for frames that are not this protocol's (they are dropped); where it has to join again
  /// the broker's, and unauthorized_access.
  Result<std::optional<Message>> receive(Timeout timeout) {
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

  /// A range for loops: `for (const Message& m : consumer.messages(10s))`. Ends after `idle_timeout` without
  /// a message, when `stop` is requested (noticed within 100 ms), when finished(), or at an error, which the
  /// range's result() then tells.
  [[nodiscard]] Messages messages(Timeout idle_timeout, std::stop_token stop = {});

  /// Ends in order: tells the broker that this consumer takes no more. A pull consumer then goes on
  /// receiving what had been handed to it already, until finished(); a sub consumer is finished at once. A
  /// second call does nothing. Errors: the broker's, timeout; the consumer is then as before.
  Result<void> leave() {
    if (left_) return {};
    if (membership_ == nullptr) return closed_error();
    Result<std::uint64_t> handed = membership_->leave(socket_.uri());
    if (!handed) return handed.error();
    left_ = true;
    handed_ = options_.mode == Mode::pull ? *handed : 0;
    return {};
  }
  /// Whether this consumer has left and has received all that it was handed.
  [[nodiscard]] bool finished() const { return left_ && received_here_ >= handed_; }
  /// After leave(): how many messages had been handed to this consumer and are still to be received.
  [[nodiscard]] std::uint64_t outstanding() const {
    return left_ && handed_ > received_here_ ? handed_ - received_here_ : 0;
  }

  /// Closes at once, as the destructor does.
  void close() { (void)socket_.close(Timeout(0)); }

  /// Joins the topic again and goes on at a new endpoint; for a consumer whose endpoint is gone. What is
  /// left of a former endpoint's messages is dropped. Errors: the broker's, timeout, closed.
  Result<void> rejoin() {
    if (!socket_.is_open()) return closed_error();
    Result<EndpointAddress> address = membership_->join();
    if (!address) return address.error();
    const std::string former = socket_.uri();
    socket_.look();
    if (address->uri == former && !socket_.was_refused()) return {};
    if (Result<void> connected = socket_.connect(*address); !connected) return connected;
    if (address->uri == former) return {};
    (void)membership_->leave(former);  // as a rule the broker knows it no longer: that is why we are here
    left_ = false;
    handed_ = received_here_ = 0;
    return {};
  }

  /// Whether the broker's end of the endpoint is there now, as far as libzmq has noticed.
  [[nodiscard]] bool connected() { return socket_.connected(); }
  /// Waits until it is; false when it is not in time, or refuses.
  [[nodiscard]] bool wait_connected(Timeout timeout) { return socket_.wait_connected(timeout); }
  /// Whether the broker has refused the connection, as far as was noticed; the next receive() joins again.
  [[nodiscard]] bool refused() const { return socket_.was_refused(); }

  /// A descriptor for an event loop (ZMQ_FD). It turns readable, once, when the socket's state changes: call
  /// receive(0) until it yields nothing after every turn, and once before waiting the first time. Do not
  /// read from it. It does not tell that the broker has refused the connection: call receive(0) now and then.
  /// -1 once the consumer is closed.
  [[nodiscard]] int descriptor() {
    if (!socket_.is_open()) return -1;
    try {
      return socket_.socket().get(zmq::sockopt::fd);
    } catch (const zmq::error_t&) {  // the context was shut down
      return -1;
    }
  }

  /// Messages received over this consumer's whole life.
  [[nodiscard]] std::uint64_t received() const { return received_; }
  [[nodiscard]] Mode mode() const { return options_.mode; }
  /// Empty once moved from.
  [[nodiscard]] const std::string& topic() const {
    static const std::string none;
    return membership_ == nullptr ? none : membership_->topic();
  }
  /// The endpoint in use.
  [[nodiscard]] const std::string& bind_uri() const { return socket_.uri(); }

 private:
  PlainConsumer(std::unique_ptr<Membership> membership, DataSocket socket,
                const PlainConsumerOptions& options)
      : membership_(std::move(membership)), socket_(std::move(socket)), options_(options) {}

  [[nodiscard]] Error closed_error() const {
    return {ErrorCode::closed, "topic '" + topic() + "': the consumer is closed"};
  }

  /// Joins again if the connection was refused. The new ticket is good at the old endpoint too, where this
  /// consumer has its place; the endpoint that came with it is not needed.
  Result<void> stay() {
    socket_.look();
    if (!socket_.was_refused()) return {};
    Result<EndpointAddress> address = renewal_.join(*membership_, socket_.connections());
    if (!address) return address.error();
    const std::string spare = std::exchange(address->uri, socket_.uri());
    if (Result<void> connected = socket_.connect(*address); !connected) return connected;
    if (spare != address->uri) (void)membership_->leave(spare);
    return {};
  }

  /// Turns the frames that begin with `frame` into a message: (payload) for pull, (topic, payload) for sub.
  Result<std::optional<Message>> take(zmq::message_t frame) {
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
                                           " frames came from " + bind_uri() + ", not of " +
                                           std::to_string(expected)};
    }
    ++received_;
    return std::optional<Message>(Message(std::move(frame)));
  }

  std::unique_ptr<Membership> membership_;
  DataSocket socket_;
  PlainConsumerOptions options_;
  std::uint64_t received_ = 0;
  std::uint64_t received_here_ = 0;  // on the present endpoint, bad ones included
  std::uint64_t handed_ = 0;
  bool left_ = false;
  TicketRenewal renewal_;
};

inline PlainConsumer::Messages PlainConsumer::messages(Timeout idle_timeout, std::stop_token stop) {
  return {*this, idle_timeout, std::move(stop)};
}

}  // namespace lightq::inline v1
