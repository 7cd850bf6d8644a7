/// Sends messages to a topic over a plain ZeroMQ PUSH socket. Layer: client.
#pragma once

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
#include <lightq/data_socket.hpp>
#include <lightq/membership.hpp>
#include <lightq/options.hpp>
#include <lightq/ticket_renewal.hpp>
#include <lightq/unsent_messages.hpp>

namespace lightq::inline v1 {

/// The result of try_send.
enum class SendOutcome {
  sent,         ///< ZeroMQ has taken the message
  would_block,  ///< there is no space now, perhaps because the broker does not read; it was not taken
  closed,       ///< the producer is closed, or ZeroMQ refuses the message (send() returns the error)
};

/// A producer of one topic over plain ZeroMQ, made by Client::plain_producer. Move-only; one thread at a
/// time.
///
/// Guarantees: the messages of one producer enter the topic in the order they were sent. While the topic's
/// log is full the broker stops reading, so send() waits and nothing is dropped. Limits: plain ZeroMQ has no
/// confirms. "Sent" means that ZeroMQ took the message. Messages that are still in this process or in the
/// kernel when the broker or this process dies are lost. Client::stats shows how many the broker has
/// received.
///
/// When the broker restarts, its endpoints keep their ports and libzmq reconnects by itself. Unsent messages
/// wait in this process. If connected() stays false although the broker replies to requests, the endpoint no
/// longer exists: call rejoin().
///
/// The broker refuses a connection if the ticket of the last join has expired or if the broker has another
/// key. The next call then joins again, which may take as long as a request, and continues. libzmq drops the
/// messages that it had for a refused connection. The producer passes those to libzmq again, in order and
/// before any other. If the new connection is refused too, the call returns unauthorized_access.
class PlainProducer {
 public:
  PlainProducer(PlainProducer&&) noexcept = default;
  /// Closes the producer that is assigned to, as the destructor does.
  PlainProducer& operator=(PlainProducer&&) noexcept = default;
  /// Does not wait. libzmq sends unsent messages in the background, for up to the options' linger. The last
  /// object that uses the client's ZeroMQ context destroys the context, and then waits for these messages, up
  /// to the same linger.
  ~PlainProducer() = default;

  /// Checks that the options are in their ranges. Error: invalid_argument.
  static Result<void> check(const PlainProducerOptions& options) {
    if (is_high_water_mark(options.high_water_messages) && options.high_water_bytes > 0) return {};
    return Error{ErrorCode::invalid_argument,
                 "high_water_messages must be 1 to 1,000,000 and high_water_bytes at least 1, not " +
                     std::to_string(options.high_water_messages) + " and " +
                     std::to_string(options.high_water_bytes)};
  }

  /// Connects to the endpoint at `address` of `membership`'s topic. Used by Client::plain_producer. Errors:
  /// invalid_argument (options out of their range), limit_reached, io_error.
  static Result<PlainProducer> open(std::shared_ptr<zmq::context_t> context,
                                    std::unique_ptr<Membership> membership, const EndpointAddress& address,
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

  /// Copies and sends one message. Waits up to the options' send_timeout while the broker reads nothing.
  /// Errors: timeout (the message was not sent), closed, io_error. If the producer has to join again: the
  /// broker's errors, and unauthorized_access.
  Result<void> send(ByteView payload) { return send(payload, options_.send_timeout); }
  Result<void> send(std::string_view payload) { return send(as_byte_view(payload), options_.send_timeout); }
  /// Sends one message, and waits up to `timeout` in place of the options' send_timeout; 0 does not wait.
  /// Errors: those of send without a timeout.
  Result<void> send(std::string_view payload, Timeout timeout) {
    return send(as_byte_view(payload), timeout);
  }
  Result<void> send(ByteView payload, Timeout timeout) {
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

  /// Offers one message without waiting, and copies it if it is sent. Returns `would_block` while the
  /// options' high_water_messages or high_water_bytes wait in this process. If the producer has to join
  /// again, waits for the broker's reply.
  [[nodiscard]] SendOutcome try_send(ByteView payload) {
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
  [[nodiscard]] SendOutcome try_send(std::string_view payload) { return try_send(as_byte_view(payload)); }

  /// Closes the producer. Waits up to `linger` until libzmq has passed all messages to the operating system.
  /// That is no confirm: the broker may not have received them. Errors: timeout (some messages did not leave,
  /// and are dropped). If the broker has refused the connection: the errors of joining again. A second call
  /// does nothing.
  Result<void> close(Timeout linger) {
    if (!socket_.is_open()) return {};
    const auto deadline = deadline_after(linger);
    look();
    bool left = false;
    while (settle() && !(left = has_left(deadline)) && time_left(deadline).count() > 0) look();
    left = socket_.close(time_left(deadline)) && left;
    if (left || linger.count() == 0) return {};
    if (refusal_) return *refusal_;
    return Error{ErrorCode::timeout, "topic '" + topic() + "': not everything sent could leave within " +
                                         std::to_string(linger.count()) + " ms; the rest is dropped"};
  }
  Result<void> close() { return close(options_.linger); }

  /// Joins the topic again and connects to the endpoint that the broker names now. Does nothing more if that
  /// endpoint is already in use. Unsent messages go to the new endpoint. But if the former connection is
  /// still up, messages that wait for it are dropped. Errors: the broker's, timeout, closed.
  Result<void> rejoin() {
    if (!socket_.is_open()) return closed_error();
    Result<EndpointAddress> address = membership_->join();
    if (!address) return address.error();
    look();
    if (address->uri == socket_.uri() && !socket_.was_refused()) return {};
    if (Result<void> connected = connect_again(*address); !connected) return connected;
    hand_over_again();
    return {};
  }

  /// Returns true if the connection to the endpoint is up now, as far as libzmq has noticed.
  [[nodiscard]] bool connected() {
    look();
    return socket_.was_connected();
  }
  /// Waits until connected() is true. Returns false after `timeout`, or if the broker refuses the connection.
  [[nodiscard]] bool wait_connected(Timeout timeout) {
    const bool connected = socket_.wait_connected(timeout);
    look();
    return connected;
  }
  /// Returns true if the broker has refused the connection, as far as was noticed. The next send joins again.
  [[nodiscard]] bool refused() const { return socket_.was_refused(); }

  /// Returns the bytes of messages of 1 KiB and more that wait in this process: at most high_water_bytes and
  /// one message.
  [[nodiscard]] std::size_t unsent_bytes() const { return unsent_.bytes(); }
  /// Returns the number of messages that ZeroMQ took from this producer.
  [[nodiscard]] std::uint64_t sent() const { return sent_; }
  /// Returns the topic; empty if this object was moved from.
  [[nodiscard]] const std::string& topic() const {
    static const std::string none;
    return membership_ == nullptr ? none : membership_->topic();
  }
  /// Returns the URI of the endpoint in use.
  [[nodiscard]] const std::string& bind_uri() const { return socket_.uri(); }

 private:
  /// The longest single wait. A refused connection never becomes writable, so a longer wait for that would
  /// not notice the refusal.
  static constexpr auto patience = std::chrono::milliseconds(100);
  /// Number of messages between two calls of forget_passed, which costs more than sending a message.
  static constexpr std::uint64_t forget_interval = 64;

  PlainProducer(std::unique_ptr<Membership> membership, DataSocket socket,
                const PlainProducerOptions& options)
      : membership_(std::move(membership)), socket_(std::move(socket)), options_(options) {}

  /// Returns true at most every 5 ms. look() costs more than a message; reading the coarse clock costs next
  /// to nothing.
  bool look_is_due() {
    constexpr std::int64_t interval_ns = 5'000'000;
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    const std::int64_t now_ns = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
    if (now_ns - looked_ns_ < interval_ns) return false;
    looked_ns_ = now_ns;
    return true;
  }

  /// Updates the state of the connection and of the unsent messages.
  ///
  /// Forgets messages that libzmq has freed, but only those that it has sent. libzmq also frees the messages
  /// that it drops, after a refusal. It drops them only when this thread calls the socket after the refusal.
  /// A refusal comes a tenth of a second after a connection was cut, because libzmq waits so long before it
  /// reconnects. So all messages that are free when this function first sees the cut were sent. Later ones
  /// are not forgotten until the next connection.
  void look() {
    socket_.look();
    if (was_connected_ || connections_ != socket_.connections()) unsent_.forget_passed();
    was_connected_ = socket_.was_connected();
    connections_ = socket_.connections();
  }

  /// Joins again if the connection was refused, and passes unsent messages to libzmq again, as far as it
  /// takes them. Returns false if the broker does not admit this producer; send_error() has the reason.
  bool settle() {
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
  void hand_over_again() {
    while (!again_.empty() && hand_over(again_.front())) again_.pop_front();
  }

  Result<void> join_again() {
    Result<EndpointAddress> address = renewal_.join(*membership_, socket_.connections());
    if (!address) return address.error();
    return connect_again(*address);
  }

  Result<void> connect_again(const EndpointAddress& address) {
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

  /// Passes a message to libzmq. If the message is large, checks that libzmq can take it before copying it.
  bool hand_over(ByteView payload) {
    if (payload.size() >= limits::counted_message_bytes_min && !has_room()) return false;
    if (unsent_.send(socket_.socket(), payload)) return true;
    send_errno_ = zmq_errno();
    return false;
  }
  bool has_room() {
    int events = 0;
    std::size_t size = sizeof events;
    const bool known = zmq_getsockopt(socket_.socket().handle(), ZMQ_EVENTS, &events, &size) == 0;
    send_errno_ = known ? EAGAIN : zmq_errno();
    return known && (events & ZMQ_POLLOUT) != 0;
  }
  [[nodiscard]] bool is_full() const { return send_errno_ == EAGAIN || send_errno_ == EINTR; }

  /// Waits a moment, at most until the deadline. Returns true if no message waits in this process any more.
  bool has_left(std::chrono::steady_clock::time_point deadline) {
    const auto until = std::min(deadline, std::chrono::steady_clock::now() + patience);
    if (again_.empty()) return unsent_.wait_gone(until);
    socket_.wait_or_look(ZMQ_POLLOUT, until);
    return false;
  }

  /// Waits until another message may fit. Returns false at the deadline.
  bool wait_for_room(std::chrono::steady_clock::time_point deadline) {
    while (true) {
      const auto until = std::min(deadline, std::chrono::steady_clock::now() + patience);
      const bool below = unsent_.wait_below(options_.high_water_bytes, until);
      look();
      if (socket_.was_refused()) return true;
      if (below && socket_.wait_or_look(ZMQ_POLLOUT, until)) return true;
      if (until == deadline) return false;
    }
  }

  [[nodiscard]] Error closed_error() const {
    return {ErrorCode::closed, "topic '" + topic() + "': the producer is closed"};
  }
  [[nodiscard]] Error send_error() const {
    if (!socket_.is_open()) return closed_error();
    if (refusal_) return *refusal_;
    return zmq_error("topic '" + topic() + "': cannot send", send_errno_);
  }
  [[nodiscard]] Error send_timeout(Timeout timeout) {
    const char* why = connected() ? " takes nothing: the log may be full" : " is not connected";
    return {ErrorCode::timeout, "topic '" + topic() + "': not sent within " +
                                    std::to_string(timeout.count()) + " ms; endpoint " + bind_uri() + why};
  }

  std::unique_ptr<Membership> membership_;
  DataSocket socket_;
  PlainProducerOptions options_;
  UnsentMessages unsent_;                     // of the present connection
  std::deque<std::vector<std::byte>> again_;  // messages that had not left when an earlier connection ended
  bool was_connected_ = false;                // at the last look
  std::uint64_t connections_ = 0;             // number of connections at the last look
  TicketRenewal renewal_;
  std::optional<Error> refusal_;  // why the broker does not admit this producer
  std::int64_t looked_ns_ = 0;
  std::uint64_t sent_ = 0;
  int send_errno_ = 0;
};

}  // namespace lightq::inline v1
