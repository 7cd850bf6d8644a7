/// Sends messages to a topic over a plain ZeroMQ PUSH socket. Layer: client.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lightq/base/reset_by_move.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/separate.hpp>
#include <lightq/base/types.hpp>
#include <lightq/detail/data_socket.hpp>
#include <lightq/detail/membership.hpp>
#include <lightq/detail/ticket_renewal.hpp>
#include <lightq/detail/unsent_messages.hpp>
#include <lightq/options.hpp>

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
  /// After a move, the producer that was moved from is closed: its calls return `closed`. It may be assigned
  /// to and destroyed.
  PlainProducer(PlainProducer&&) noexcept = default;
  /// Closes the producer that is assigned to, as the destructor does.
  PlainProducer& operator=(PlainProducer&&) noexcept = default;
  /// Does not wait. libzmq sends unsent messages in the background, for up to the options' linger. The last
  /// object that uses the client's ZeroMQ context destroys the context, and then waits for these messages, up
  /// to the same linger.
  ~PlainProducer() = default;

  /// Checks that the options are in their ranges. Error: invalid_argument.
  static Result<void> check(const PlainProducerOptions& options);

  /// Connects to the endpoint at `address` of `membership`'s topic. Used by Client::plain_producer. Errors:
  /// invalid_argument (options out of their range), limit_reached, io_error.
  static Result<PlainProducer> open(std::shared_ptr<zmq::context_t> context,
                                    std::unique_ptr<Membership> membership, const EndpointAddress& address,
                                    const PlainProducerOptions& options);

  /// Copies and sends one message. Waits up to the options' send_timeout while the broker reads nothing.
  /// Errors: timeout (the message was not sent), closed, io_error. If the producer has to join again: the
  /// broker's errors, and unauthorized_access.
  Result<void> send(ByteView payload) { return send(payload, options_.send_timeout); }
  Result<void> send(std::string_view payload) { return send(as_byte_view(payload), options_.send_timeout); }
  /// Sends one message, and waits up to `timeout` in place of the options' send_timeout; 0 does not wait.
  /// Errors: those of send without a timeout.
  Result<void> send(std::string_view payload, Timeout timeout);
  Result<void> send(ByteView payload, Timeout timeout);

  /// Offers one message without waiting, and copies it if it is sent. Returns `would_block` while the
  /// options' high_water_messages or high_water_bytes wait in this process. If the producer has to join
  /// again, waits for the broker's reply.
  [[nodiscard]] SendOutcome try_send(ByteView payload);
  [[nodiscard]] SendOutcome try_send(std::string_view payload) { return try_send(as_byte_view(payload)); }

  /// Closes the producer. Waits up to `linger` until libzmq has passed all messages to the operating system.
  /// That is no confirm: the broker may not have received them. Errors: timeout (some messages did not leave,
  /// and are dropped). If the broker has refused the connection: the errors of joining again. A second call
  /// does nothing.
  Result<void> close(Timeout linger);
  Result<void> close() { return close(options_.linger); }

  /// Joins the topic again and connects to the endpoint that the broker names now. Does nothing more if that
  /// endpoint is already in use. Unsent messages go to the new endpoint. But if the former connection is
  /// still up, messages that wait for it are dropped. Errors: the broker's, timeout, closed.
  Result<void> rejoin();

  /// Returns true if the connection to the endpoint is up now, as far as libzmq has noticed.
  [[nodiscard]] bool connected();
  /// Waits until connected() is true. Returns false after `timeout`, or if the broker refuses the connection.
  [[nodiscard]] bool wait_connected(Timeout timeout);
  /// Returns true if the broker has refused the connection, as far as was noticed. The next send joins again.
  [[nodiscard]] bool refused() const { return socket_.was_refused(); }

  /// Returns the bytes of messages of 1 KiB and more that wait in this process: at most high_water_bytes and
  /// one message.
  [[nodiscard]] std::size_t unsent_bytes() const { return unsent_.bytes(); }
  /// Returns the number of messages that ZeroMQ took from this producer.
  [[nodiscard]] std::uint64_t sent() const { return sent_; }
  /// Returns the topic; empty if this object was moved from.
  [[nodiscard]] const std::string& topic() const;
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
  bool look_is_due();

  /// Updates the state of the connection and of the unsent messages.
  ///
  /// Forgets messages that libzmq has freed, but only those that it has sent. libzmq also frees the messages
  /// that it drops, after a refusal. It drops them only when this thread calls the socket after the refusal.
  /// A refusal comes a tenth of a second after a connection was cut, because libzmq waits so long before it
  /// reconnects. So all messages that are free when this function first sees the cut were sent. Later ones
  /// are not forgotten until the next connection.
  void look();

  /// Joins again if the connection was refused, and passes unsent messages to libzmq again, as far as it
  /// takes them. Returns false if the broker does not admit this producer; send_error() has the reason.
  bool settle();
  void hand_over_again();

  Result<void> join_again();

  Result<void> connect_again(const EndpointAddress& address);

  /// Passes a message to libzmq. If the message is large, checks that libzmq can take it before copying it.
  bool hand_over(ByteView payload);
  bool has_room();
  [[nodiscard]] bool is_full() const { return send_errno_ == EAGAIN || send_errno_ == EINTR; }

  /// Waits a moment, at most until the deadline. Returns true if no message waits in this process any more.
  bool has_left(std::chrono::steady_clock::time_point deadline);

  /// Waits until another message may fit. Returns false at the deadline.
  bool wait_for_room(std::chrono::steady_clock::time_point deadline);

  [[nodiscard]] Error closed_error() const;
  [[nodiscard]] Error send_error() const;
  [[nodiscard]] Error send_timeout(Timeout timeout);

  std::unique_ptr<Membership> membership_;
  DataSocket socket_;
  PlainProducerOptions options_;
  UnsentMessages unsent_;                     // of the present connection
  std::deque<std::vector<std::byte>> again_;  // messages that had not left when an earlier connection ended
  ResetByMove<bool> was_connected_;           // at the last look
  std::uint64_t connections_ = 0;             // number of connections at the last look
  TicketRenewal renewal_;
  std::optional<Error> refusal_;  // why the broker does not admit this producer
  std::int64_t looked_ns_ = 0;
  std::uint64_t sent_ = 0;
  int send_errno_ = 0;
};

}  // namespace lightq::inline v1

#if defined(LIGHTQ_WITH_DEFINITIONS)
#include <lightq/impl/plain_producer.hpp>  // IWYU pragma: export
#endif
