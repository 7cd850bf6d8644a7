/// Receives a topic's messages over a session, with consumer groups, acknowledgements and redelivery.
/// docs/session.md, "Consuming". Layer: client.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/base/separate.hpp>
#include <lightq/base/types.hpp>
#include <lightq/consumer_options.hpp>
#include <lightq/consumer_stats.hpp>
#include <lightq/delivered.hpp>
#include <lightq/detail/calls/consumer_connection.hpp>
#include <lightq/detail/calls/consumer_driver.hpp>
#include <lightq/detail/session_address.hpp>
#include <lightq/detail/session_clock.hpp>
#include <lightq/detail/session_state.hpp>
#include <lightq/message_range.hpp>
#include <lightq/protocol/session_consuming.hpp>

namespace lightq::inline v1 {

/// A consumer of one topic on a session. Move-only; one thread at a time; it has no thread of its own.
///
///     auto consumer = client.consumer("orders", {.group = "billing"}).value_or_throw();
///     for (const Delivered& order : consumer.messages(10s)) {    // until 10 s pass without a message
///       handle(order.text());
///       consumer.acknowledge(order);
///     }
///     consumer.close(5s).value_or_throw();                       // the broker has every ack
///
/// Delivery is at least once: the broker delivers a message until a member of the group has acknowledged it.
/// With Acknowledgement::automatic it is at most once. The broker redelivers a message when it is rejected,
/// when its processing takes too long, or when its consumer loses the connection. The redelivery may go to
/// another member and may follow later messages.
///
/// The consumer reconnects by itself when a connection breaks or the broker restarts. A group then continues
/// at its own position. A consumer of mode `own` without a name continues after the last batch that it
/// received. Acknowledgements for messages of a lost connection are ignored: the broker redelivers these
/// messages.
///
/// The consumer reads and sends inside calls only. It gathers acknowledgements. It sends them when receive
/// has waited a millisecond, when there are many, or in any call once they have waited 100 ms. poll, flush
/// and a receive that does not wait send them immediately.
///
/// The program has `ack_timeout`, by default 30 minutes, for each message that receive returned, and more
/// time with extend. It may work without calling the consumer meanwhile. Messages that wait in the consumer
/// have no timeout. But if the program makes no call for twice the broker's heartbeat, the broker gives them
/// to another member that can take them. Delivered::revoked and stop_token tell which messages the broker has
/// taken back. With a broker that gives no leases, the time is 30 s and also runs for waiting messages while
/// the program makes no call.
///
/// In an event loop, call poll, and then receive(0) until it returns nothing: when fd() is readable, when it
/// is writable and wants_write() is true, and at next_timer(). Read all three again before each wait,
/// next_timer() last.
///
/// The consumer requests messages ahead of the program: as many as the program processes in `prefetch_time`,
/// measured, or a fixed number (`prefetch_messages`). At most that number, or 10,000, are unacknowledged at a
/// time. Acknowledging lets the broker send more.
///
/// ConsumerConnection has the calls that tell about the connection: topic, state, connected, last_error, fd,
/// wants_write, next_timer.
class Consumer : public ConsumerConnection {
 public:
  using Messages = MessageRange<Consumer, Delivered>;

  /// Makes a consumer, which connects in its first calls (see wait_open). Any of its calls may call `join` to
  /// get an address. Error: invalid_argument.
  static Result<Consumer> open(std::string topic, SessionJoin join, ConsumerOptions options = {});
  /// After a move, the consumer that was moved from is closed: its calls return `closed`, calls without a
  /// Result do nothing, and its numbers are 0. It may be assigned to and destroyed.
  Consumer(Consumer&&) noexcept = default;
  Consumer& operator=(Consumer&&) noexcept = default;
  /// Does not wait. The last acknowledgements may not reach the broker, which then redelivers those messages.
  /// Call close() first.
  ~Consumer() = default;

  // --- Receiving. Each of these calls invalidates the messages that earlier calls returned.

  /// Returns the next message, or nothing if none arrived within `timeout` (0 does not wait). Errors: closed,
  /// and the error that ended the consumer.
  Result<std::optional<Delivered>> receive(Timeout timeout) {
    return driver_.receive_by<Delivered>(timeout, false, [this] { return driver_.batch().take(); });
  }
  /// Returns all messages of the next batch, or those of the present batch that receive has not returned yet:
  /// at least one. Messages that were delivered before come one by one, unless the broker gives no leases.
  /// Returns nothing if none arrived within `timeout`. Errors: those of receive.
  Result<std::optional<DeliveredBatch>> receive_batch(Timeout timeout) {
    return driver_.receive_by<DeliveredBatch>(timeout, true, [this] { return driver_.batch().take_all(); });
  }
  /// Returns a range for loops; see the class's example. The range ends after `idle_timeout` without a
  /// message, when `stop` is requested (noticed within 100 ms), or at an error. Its result() then returns
  /// that error.
  [[nodiscard]] Messages messages(Timeout idle_timeout, std::stop_token stop = {}) {
    return {*this, idle_timeout, std::move(stop)};
  }
  /// Calls `handle(const Delivered&)` for each message and then acknowledges the message, until the range of
  /// messages() ends. Returns the number of messages handled. Errors: closed, and the error that ended the
  /// consumer.
  template <typename Handle>
  Result<std::uint64_t> for_each(Handle&& handle, Timeout idle_timeout, std::stop_token stop = {}) {
    std::uint64_t handled = 0;
    Messages range = messages(idle_timeout, std::move(stop));
    for (const Delivered& message : range) {
      handle(message);
      acknowledge(message);
      ++handled;
    }
    if (!range.result()) return range.result().error();
    return handled;
  }

  // --- Acknowledging. Each call may be repeated: it skips messages that are no longer in flight to this
  // consumer. Those were acknowledged or rejected before, are too late, or were delivered over a lost
  // connection.

  /// Acknowledges messages. Returns how many of them were in flight to this consumer, as far as it knows. The
  /// others were acknowledged before or will be redelivered. An acknowledgement is too late if the broker had
  /// already taken the message back (without leases: and redelivered it); the broker reports this later, see
  /// take_late.
  std::uint64_t acknowledge(OffsetRange range) { return driver_.acknowledge(range); }
  std::uint64_t acknowledge(Offset offset) { return acknowledge(OffsetRange{offset, offset + 1}); }
  /// Acknowledges this delivery of the message. If the broker has taken the message back and delivered it
  /// again, an earlier delivery of it is late and finishes nothing. Without leases, the delivery is not
  /// compared.
  std::uint64_t acknowledge(const Delivered& message) {
    return driver_.acknowledge(message.offset, message.hand_out);
  }
  /// Acknowledges the messages by their offsets: does not compare the delivery.
  std::uint64_t acknowledge(const DeliveredBatch& batch) { return acknowledge(batch.range()); }
  /// Acknowledges every message before `offset` that this consumer has returned to the program. Skips the
  /// messages of the present batch that receive has not returned yet: they may be redeliveries of offsets
  /// before `offset`.
  std::uint64_t acknowledge_before(Offset offset) {
    const OffsetRange not_given = is_ready() ? driver_.batch().left() : OffsetRange{offset, offset};
    const std::uint64_t done = acknowledge(OffsetRange{{0}, std::min(offset, not_given.begin)});
    return done + acknowledge(OffsetRange{not_given.end, offset});
  }
  /// Returns the messages that this consumer acknowledged, rejected or extended too late, since the last
  /// call: the broker had already taken them back. After close() the list is complete, except that at most
  /// 4,096 ranges are kept.
  std::vector<OffsetRange> take_late();

  /// Rejects messages: the broker redelivers them to any member of the group, after `delay` (at most 49
  /// days). Without a delay they wait for the group's back-off, if it has one. The delivery counts as an
  /// attempt: after the group's `max_attempts` a message is dead. Rejections that
  /// follow each other within a millisecond are gathered. The next receive sends them, or an earlier call.
  /// Before a wait of its own, an event loop learns from next_timer that they are due.
  void reject(OffsetRange range, Timeout delay = Timeout(0));
  void reject(Offset offset, Timeout delay = Timeout(0)) { reject(OffsetRange{offset, offset + 1}, delay); }
  /// Rejects messages that no consumer can process. The broker does not deliver them again: the group moves
  /// them to its dead-letter topic, or keeps them apart (docs/protocol.md, "Group settings"). `reason` is
  /// shown with them; its first 256 bytes are kept. A broker that does not know dead messages delivers them
  /// again at once: then opened()->dead_letters is false. Sent like a rejection.
  void dead_letter(OffsetRange range, std::string_view reason = {});
  void dead_letter(Offset offset, std::string_view reason = {}) {
    dead_letter(OffsetRange{offset, offset + 1}, reason);
  }
  /// Gives back messages that the program has not begun to process. The broker redelivers them immediately to
  /// any member of the group. This delivery does not count, unless the broker gives no leases.
  void release(OffsetRange range);
  void release(Offset offset) { release(OffsetRange{offset, offset + 1}); }
  /// Gives this consumer more time: the broker does not redeliver these messages before `time` has passed
  /// from now, if the connection lasts. Sends the request immediately.
  void extend(OffsetRange range, Timeout time);
  void extend(Offset offset, Timeout time) { extend(OffsetRange{offset, offset + 1}, time); }

  /// Returns a token that is stopped when the broker has taken the message back, or when the connection over
  /// which it came has ended. Any thread may look at the token. It is stopped only within this consumer's
  /// calls: each poll looks for revocations, other calls do so at most every 100 ms. It is also stopped, at
  /// some time, after the message was settled. Returns a stopped token if the message is not in flight.
  [[nodiscard]] std::stop_token stop_token(const Delivered& message);

  // --- Position.

  /// Moves the position of the group, or of this consumer in mode `own`, to `to` (see From). Returns the new
  /// offset. The broker forgets all messages in flight to the group's members; they can no longer be
  /// acknowledged. Errors: timeout, the broker's errors, closed (the connection ended before the reply: the
  /// broker may or may not have moved the position), the error that ended the consumer.
  Result<Offset> seek(const session::Place& to, Timeout timeout);
  /// Asks the broker for no more messages until `resume`. Messages that the broker has already sent still
  /// arrive.
  void pause();
  void resume();
  /// Returns the offset before which everything was acknowledged when this consumer last opened the topic, or
  /// nothing if it has not opened the topic yet. The topic's statistics show the present position of a group.
  [[nodiscard]] std::optional<Offset> committed() const;

  // --- Input and output.

  /// Connects, reads and sends as far as possible without waiting. Errors: closed, and the error that ended
  /// the consumer.
  Result<void> poll();
  /// Returns true if the next receive returns a message without waiting.
  [[nodiscard]] bool is_ready() const { return driver_.batch().is_ready(); }
  /// Waits until the topic is open. Errors: timeout (last_error tells the reason), the error that ended the
  /// consumer.
  Result<void> wait_open(Timeout timeout);
  /// Sends all acknowledgements so far, and waits until the operating system has taken them. Only close()
  /// ensures that the broker has received them. Errors: timeout, closed (there is no connection), the error
  /// that ended the consumer.
  Result<void> flush(Timeout timeout);
  /// Sends all acknowledgements, waits for the broker's reply, and ends the session. The broker redelivers
  /// unacknowledged messages to other members of the group. Before that, the consumer releases those that the
  /// program has not begun. Errors: timeout (also if messages were acknowledged, rejected or extended too
  /// late since the consumer was made, see take_late), closed (the connection was lost before the reply). The
  /// consumer is closed even after an error. A second call does nothing.
  Result<void> close(Timeout timeout);
  /// Returns true after close().
  [[nodiscard]] bool finished() const;

  /// Returns the number of messages that this consumer received over the present connection and has neither
  /// acknowledged nor rejected.
  [[nodiscard]] std::uint64_t unacknowledged() const;
  [[nodiscard]] ConsumerStats stats() const;
  /// Returns the broker's reply when this consumer last opened the topic: offsets, and the incarnation of the
  /// log to which they belong. Returns nothing if the consumer has not opened the topic yet.
  [[nodiscard]] const std::optional<session::ConsumeOpened>& opened() const;

 private:
  Consumer(std::string topic, SessionJoin join, const ConsumerOptions& options);
};

}  // namespace lightq::inline v1

#if defined(LIGHTQ_WITH_DEFINITIONS)
#include <lightq/impl/consumer.hpp>  // IWYU pragma: export
#endif
