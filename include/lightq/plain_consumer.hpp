/// Receives a topic's messages over a plain ZeroMQ PULL or SUB socket. Layer: client.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include <lightq/base/result.hpp>
#include <lightq/base/separate.hpp>
#include <lightq/detail/data_socket.hpp>
#include <lightq/detail/membership.hpp>
#include <lightq/detail/ticket_renewal.hpp>
#include <lightq/message.hpp>
#include <lightq/message_range.hpp>
#include <lightq/options.hpp>

namespace lightq::inline v1 {

/// A consumer of one topic over plain ZeroMQ, made by Client::plain_consumer. Move-only; one thread at a
/// time.
///
/// Guarantees: messages arrive in the topic's order, at most once each. `pull` consumers of a topic share its
/// messages. A `sub` consumer receives every message from its join on. If it falls so far behind that the log
/// drops messages before they are sent to it, the topic's statistics count the lost messages. Limits: there
/// is no acknowledgement. Messages that were sent to a pull consumer are lost if it dies, or if it closes
/// without leave().
///
/// When the broker restarts, its endpoints keep their ports and libzmq reconnects by itself. If connected()
/// stays false although the broker replies to requests, the endpoint no longer exists: call rejoin().
///
/// The broker refuses a connection if the ticket of the last join has expired or if the broker has another
/// key. The next receive() then joins again by itself and continues at the same endpoint and position. If the
/// new connection is refused too, the call returns unauthorized_access.
class PlainConsumer {
 public:
  using Messages = MessageRange<PlainConsumer, Message>;

  /// After a move, the consumer that was moved from is closed: its calls return `closed`. It may be assigned
  /// to and destroyed.
  PlainConsumer(PlainConsumer&&) noexcept = default;
  PlainConsumer& operator=(PlainConsumer&&) noexcept = default;
  /// Disconnects immediately, without telling the broker. Messages that were sent to this consumer and not
  /// received are lost. To lose none, call leave() first.
  ~PlainConsumer() = default;

  /// Checks that the options are in their ranges. Error: invalid_argument.
  static Result<void> check(const PlainConsumerOptions& options);

  /// Connects to the endpoint at `address` of `membership`'s topic. Used by Client::plain_consumer. Errors:
  /// invalid_argument (options out of their range), limit_reached, io_error.
  static Result<PlainConsumer> open(std::shared_ptr<zmq::context_t> context,
                                    std::unique_ptr<Membership> membership, const EndpointAddress& address,
                                    const PlainConsumerOptions& options);

  /// Returns the next message. Returns nothing if none arrived within `timeout` (0 does not wait), or if
  /// finished(). Errors: closed, io_error; corrupt (the frames do not follow this protocol; they are
  /// dropped). If the consumer has to join again: the broker's errors, and unauthorized_access.
  Result<std::optional<Message>> receive(Timeout timeout);

  /// Returns a range for loops: `for (const Message& m : consumer.messages(10s))`. The range ends after
  /// `idle_timeout` without a message, when `stop` is requested (noticed within 100 ms), when finished(), or
  /// at an error. Its result() then returns that error.
  [[nodiscard]] Messages messages(Timeout idle_timeout, std::stop_token stop = {});

  /// Ends reception without losing messages: tells the broker to send this consumer no more. A pull consumer
  /// still receives the messages that the broker has already sent to it, until finished(). A sub consumer is
  /// finished immediately. A second call does nothing. Errors: the broker's, timeout; the consumer is then
  /// unchanged.
  Result<void> leave();
  /// Returns true if this consumer has left and has received every message that the broker sent to it.
  [[nodiscard]] bool finished() const { return left_ && received_here_ >= handed_; }
  /// After leave(): returns the number of messages that the broker sent to this consumer and that receive()
  /// has not returned yet. Before: 0.
  [[nodiscard]] std::uint64_t outstanding() const;

  /// Closes immediately, as the destructor does.
  void close() { (void)socket_.close(Timeout(0)); }

  /// Joins the topic again and continues at a new endpoint. For a consumer whose endpoint no longer exists.
  /// Drops messages of the former endpoint that were not received. Errors: the broker's, timeout, closed.
  Result<void> rejoin();

  /// Returns true if the connection to the endpoint is up now, as far as libzmq has noticed.
  [[nodiscard]] bool connected() { return socket_.connected(); }
  /// Waits until connected() is true. Returns false after `timeout`, or if the broker refuses the connection.
  [[nodiscard]] bool wait_connected(Timeout timeout) { return socket_.wait_connected(timeout); }
  /// Returns true if the broker has refused the connection, as far as was noticed. The next receive() joins
  /// again.
  [[nodiscard]] bool refused() const { return socket_.was_refused(); }

  /// Returns a descriptor for an event loop (ZMQ_FD), or -1 if the consumer is closed. Do not read from it.
  /// It becomes readable once, when the socket's state changes: call receive(0) until it returns nothing
  /// after every turn of the loop, and once before the first wait. It does not report that the broker has
  /// refused the connection: also call receive(0) now and then.
  [[nodiscard]] int descriptor();

  /// Returns the number of messages received over this consumer's whole life.
  [[nodiscard]] std::uint64_t received() const { return received_; }
  [[nodiscard]] Mode mode() const { return options_.mode; }
  /// Returns the topic; empty if this object was moved from.
  [[nodiscard]] const std::string& topic() const;
  /// Returns the URI of the endpoint in use.
  [[nodiscard]] const std::string& bind_uri() const { return socket_.uri(); }

 private:
  PlainConsumer(std::unique_ptr<Membership> membership, DataSocket socket,
                const PlainConsumerOptions& options)
      : membership_(std::move(membership)), socket_(std::move(socket)), options_(options) {}

  [[nodiscard]] Error closed_error() const;

  /// Joins again if the connection was refused. The new ticket is valid at the old endpoint too, where this
  /// consumer has its position. So the consumer leaves the endpoint that came with the ticket.
  Result<void> stay();

  /// Turns the frames that begin with `frame` into a message: (payload) for pull, (topic, payload) for sub.
  Result<std::optional<Message>> take(zmq::message_t frame);

  std::unique_ptr<Membership> membership_;
  DataSocket socket_;
  PlainConsumerOptions options_;
  std::uint64_t received_ = 0;
  std::uint64_t received_here_ = 0;  // at the present endpoint, malformed messages included
  std::uint64_t handed_ = 0;
  bool left_ = false;
  TicketRenewal renewal_;
};

}  // namespace lightq::inline v1

#if defined(LIGHTQ_WITH_DEFINITIONS)
#include <lightq/impl/plain_consumer.hpp>  // IWYU pragma: export
#endif
