/// Options of a consumer on a session. Layer: client.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include <lightq/base/limits.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/separate.hpp>
#include <lightq/base/types.hpp>
#include <lightq/detail/session_clock.hpp>
#include <lightq/options.hpp>
#include <lightq/protocol/session_consuming.hpp>

namespace lightq::inline v1 {

using session::Acknowledgement;
/// `group`: the members of a consumer group share the topic's messages. `own`: this consumer receives every
/// message.
using ConsumeMode = session::Mode;

/// Positions in a topic.
struct From {
  static constexpr session::Place first() { return {session::From::first, 0}; }  ///< the oldest message kept
  static constexpr session::Place next() { return {session::From::next, 0}; }  ///< only messages from now on
  static constexpr session::Place last() { return {session::From::last, 0}; }  ///< the newest message
  static constexpr session::Place offset(Offset offset) { return {session::From::offset, offset.value}; }
  /// The first message that was appended to the log at `time` or later.
  static constexpr session::Place time(Timestamp time) {
    return {session::From::time, static_cast<std::uint64_t>(std::max<std::int64_t>(time.us, 0))};
  }
};

/// Options of a consumer, as plain values. Set the needed members by name.
struct ConsumerOptions {
  ConsumeMode mode = ConsumeMode::group;
  /// The name of the group, or of this consumer in mode `own`, by the rule of topic names. Empty in mode
  /// `group`: the topic's default group, to which plain pull consumers belong. Empty in mode `own`: the
  /// consumer keeps its position itself. That position survives restarts of the broker, but not the end of
  /// this consumer. With a name in mode `own` the broker keeps the position, and a second consumer that opens
  /// the same name replaces the first one.
  std::string group = {};
  /// The position at which a new group begins, or a consumer in mode `own` that has no position yet.
  session::Place from = From::first();
  /// The incarnation of the log to which the offset in `from` belongs, see Consumer::opened. 0: any.
  std::uint64_t incarnation = 0;
  /// Mode `own`: the log keeps messages until this consumer has acknowledged them. Groups always have this
  /// effect.
  bool holds = false;
  /// `automatic`: the broker counts a message as acknowledged when it sends it. The group then loses the
  /// messages that are on their way when a connection breaks. `by_consumer`: see Consumer::acknowledge.
  Acknowledgement acknowledgement = Acknowledgement::by_consumer;
  /// The maximum of messages, and of payload bytes, in flight: on their way to this consumer, waiting in it,
  /// or returned to the program and not acknowledged. With `automatic`: on their way or waiting in the
  /// consumer. One message larger than `prefetch_bytes` is delivered all the same.
  ///
  /// A value for `prefetch_messages` is fixed, 1 to 1,000,000,000. Without a value the maximum is 10,000; a
  /// member of a group with acknowledgement `by_consumer` then adapts to its work, see `prefetch_time`.
  std::optional<std::uint32_t> prefetch_messages = std::nullopt;
  std::uint64_t prefetch_bytes = 1 * limits::MiB;
  /// Without `prefetch_messages`: how much work the consumer requests ahead of its program, 1 ms to an hour.
  /// The consumer measures the time that the program takes for each message. It requests as many messages as
  /// the program then finishes in `prefetch_time`: 16 at first, 1 to 10,000 later. Until the program has
  /// worked for 8 times that time, it requests an eighth of the work so far, or 2 ms if that is more. So a
  /// slow member of a group takes no messages from quicker ones.
  Timeout prefetch_time{100};
  /// The broker redelivers a message that is not acknowledged within this time. 0: the broker's setting
  /// processing_timeout_ms, 30 minutes. The time begins when receive or receive_batch returns the message, or
  /// a few milliseconds earlier. With a broker that gives no leases, 0 means 30 s, and the time may begin
  /// earlier by up to 1/16 of it. Messages that wait in the consumer are then extended only while the program
  /// calls it. If the program makes no call for longer than this time, that broker redelivers the waiting
  /// messages too.
  Timeout ack_timeout{0};
  /// True: the program may process messages without calling the consumer. The broker does not end the session
  /// because of silence while it has unacknowledged messages. (Without leases: until `ack_timeout` has passed
  /// for all of them.) It still notices a lost connection. false: after a silence of twice its own heartbeat
  /// the broker ends the session and redelivers the messages. Choose false for a program that calls often and
  /// may hang.
  bool may_be_busy = true;
  /// The longest frame that the consumer accepts, 64 KiB to 2 GiB. A frame contains a message and a few
  /// bytes.
  std::uint32_t frame_bytes_max = session::frame_bytes_greatest;
  /// The carrier of the session. `zmq`: ZeroMQ messages, for networks that admit nothing else. If the broker
  /// encrypts, the messages pass through a socket of the client's ZeroMQ context. If the broker does not
  /// encrypt, libzmq is not used; on the broker's machine the messages then pass through its Unix socket,
  /// unless Transport::tcp is requested.
  ConnectionType connection = ConnectionType::socket;
  /// Over a Unix socket: use memory that the broker shares, if the broker has some left. This is faster than
  /// the socket. The memory counts for both processes.
  bool share_memory = true;
  /// The interval at which the broker sends a heartbeat, 100 ms to an hour. The consumer closes the
  /// connection after a silence of twice that interval. 0: no heartbeats.
  Timeout heartbeat{5000};
  /// How long one attempt to connect and open may take. After that the consumer joins and tries again.
  Timeout attempt_timeout{5000};
  /// The first and the longest pause between attempts. The pause doubles each time; up to half of it is
  /// subtracted at random.
  Timeout backoff{50};
  Timeout backoff_max{2000};
  /// A name that the broker's logs show; at most 128 bytes.
  std::string name = {};
  /// For tests: the source of time. Empty: the steady clock.
  SessionClock::Source clock = {};

  /// Returns an error if a value is out of its range. Error: invalid_argument.
  [[nodiscard]] Result<void> check() const;
};

}  // namespace lightq::inline v1

#if defined(LIGHTQ_WITH_DEFINITIONS)
#include <lightq/impl/consumer_options.hpp>  // IWYU pragma: export
#endif
