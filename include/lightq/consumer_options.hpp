/// How a consumer on a session receives. Layer: client.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include <lightq/base/limits.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>
#include <lightq/options.hpp>
#include <lightq/protocol/session_consuming.hpp>
#include <lightq/session_clock.hpp>
#include <lightq/session_patience.hpp>

namespace lightq::inline v1 {

using session::Acknowledgement;
/// `group`: the group's members share its messages. `own`: every message comes to this consumer.
using ConsumeMode = session::Mode;

/// Places in a topic.
struct From {
  static constexpr session::Place first() { return {session::From::first, 0}; }  ///< the oldest that is kept
  static constexpr session::Place next() { return {session::From::next, 0}; }    ///< what comes from now on
  static constexpr session::Place last() { return {session::From::last, 0}; }    ///< the newest message
  static constexpr session::Place offset(Offset offset) { return {session::From::offset, offset.value}; }
  /// The first message that the log took then or later.
  static constexpr session::Place time(Timestamp time) {
    return {session::From::time, static_cast<std::uint64_t>(std::max<std::int64_t>(time.us, 0))};
  }
};

/// Plain values; fill in what you need by name.
struct ConsumerOptions {
  ConsumeMode mode = ConsumeMode::group;
  /// The group, by the rule of topic names. Empty: in mode `group` the topic's default one, which plain pull
  /// consumers belong to; in mode `own` a place that only this consumer knows, and that no restart of the
  /// broker loses while this consumer lives. With a name, another consumer of that name takes the place over.
  std::string group = {};
  /// Where a group begins that does not exist yet.
  session::Place from = From::first();
  /// The log that the offset in `from` speaks of, as Consumer::opened says; 0: any.
  std::uint64_t incarnation = 0;
  /// Mode `own`: messages that it has not acknowledged are not dropped from the log. Groups always hold.
  bool holds = false;
  /// `automatic`: a message is done with as it leaves the broker, and what is on its way when a connection
  /// breaks is lost to the group. `by_consumer`: see Consumer::acknowledge.
  Acknowledgement acknowledgement = Acknowledgement::by_consumer;
  /// The most messages, and bytes of them, that are on their way here, wait here, or were handed out and are
  /// not acknowledged (with `automatic`: not taken). One message may be larger.
  std::uint32_t prefetch_messages = 10'000;
  std::uint64_t prefetch_bytes = 1 * limits::MiB;
  /// After which an unacknowledged message goes to another member of the group, or comes again; 0: the
  /// broker's 30 s. Counts from when receive or receive_batch gives the message to the program, or up to a
  /// sixteenth of the time earlier; what a program that calls nothing for longer has not begun goes to others
  /// too.
  Timeout ack_timeout{0};
  /// While messages wait to be acknowledged, and `ack_timeout` is not over for all of them, the session does
  /// not end because the program works on them and calls nothing; only a lost connection ends it. false: the
  /// broker takes a consumer that says nothing for twice its own heartbeat for gone, and gives its messages
  /// to others. For a program that calls often, and may hang.
  bool may_be_busy = true;
  /// The longest frame taken from the broker, which is a message and a few bytes: 64 KiB to 2 GiB.
  std::uint32_t frame_bytes_max = session::frame_bytes_greatest;
  /// What the session travels over. `zmq`: ZeroMQ messages, for where the way to the broker knows nothing
  /// else; encrypted, if the broker does that, by a socket of the client's context, otherwise without libzmq,
  /// and by the broker's Unix socket where it is on this machine, unless Transport::tcp is asked for.
  ConnectionType connection = ConnectionType::socket;
  /// By a Unix socket: whether the bytes go through memory that the broker shares, where it has some to
  /// share, which is quicker than the socket. It counts as memory of both sides.
  bool share_memory = true;
  /// How often to hear from the broker, 100 ms to an hour; after twice that without a word the connection
  /// is given up. 0: never.
  Timeout heartbeat{5000};
  /// How long connecting and opening may take, before it is tried again with another join.
  Timeout attempt_timeout{5000};
  /// Between attempts: at first, and at most; doubling, shortened by up to a half at random.
  Timeout backoff{50};
  Timeout backoff_max{2000};
  /// For the broker's logs; at most 128 bytes.
  std::string name = {};
  /// For tests: where times come from; empty: the steady clock.
  SessionClock::Source clock = {};

  /// Whether everything is in its range. Error: invalid_argument.
  [[nodiscard]] Result<void> check() const {
    const auto bad = [](const char* sentence) { return Error{ErrorCode::invalid_argument, sentence}; };
    if (mode != ConsumeMode::group && mode != ConsumeMode::own) return bad("mode must be group or own");
    if (!group.empty() && !TopicName::parse(group))
      return Error{ErrorCode::invalid_argument, "'" + group + "' is no group name"};
    if (from.value != 0 && from.from != session::From::offset && from.from != session::From::time)
      return bad("from: only an offset or a time has a value");
    if (prefetch_messages < 1 || prefetch_messages > 1'000'000'000)
      return bad("prefetch_messages must be 1 to 1,000,000,000");
    if (prefetch_bytes < 1 || prefetch_bytes > 1024 * limits::GiB)
      return bad("prefetch_bytes must be 1 to 1 TiB");
    if (ack_timeout.count() < 0 || ack_timeout.count() > UINT32_MAX)
      return bad("ack_timeout must be 0 to 49 days");
    if (frame_bytes_max < session::frame_bytes_least || frame_bytes_max > session::frame_bytes_greatest)
      return bad("frame_bytes_max must be 64 KiB to 2 GiB");
    return check_session_patience(*this);
  }
};

}  // namespace lightq::inline v1
