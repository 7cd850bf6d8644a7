/// Options of a producer on a session. Layer: client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <lightq/base/codec.hpp>
#include <lightq/base/limits.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/separate.hpp>
#include <lightq/detail/session_clock.hpp>
#include <lightq/options.hpp>
#include <lightq/protocol/session_producing.hpp>

namespace lightq::inline v1 {

using session::ConfirmLevel;
using session::ProducerIdentity;

/// Options of a session's producer: plain values, to be set by name. Sizes are in bytes.
struct ProducerOptions {
  /// The confirm level: a confirm says that a message is in the log (`received`) or on disk (`flushed`). The
  /// topic's default is `flushed` on durable topics and `received` on others.
  ConfirmLevel level = ConfirmLevel::topics_default;
  /// The size at which a batch is closed, header and length fields included: 4 KiB to 256 MiB. A message that
  /// would make the batch larger starts a new one; a larger message gets its own batch. The broker's limit is
  /// an upper bound.
  std::size_t batch_bytes = limits::batch_bytes_target;
  /// true: the messages go to the topic's schedule, where each waits until it is due (Attributes::delay,
  /// Attributes::deliver_at; a message with neither is due at once). The producer then has an identity and
  /// sequence numbers of its own there. false: they go to the topic's log, and a message with a delay is
  /// refused with invalid_argument. Topics of type `direct` and older brokers refuse a producer of delayed
  /// messages with not_supported.
  bool delayed = false;
  /// The codec that compresses batches. A batch that becomes no shorter, or has more than 4 MiB, is sent
  /// uncompressed. The broker stores the compressed batch. It delivers the batch compressed to consumers that
  /// know the codec and have credit for the whole batch. Compression saves network and disk and costs CPU
  /// time in this process; it is useful for long batches of text.
  Codec compression = Codec::none;
  /// A batch that is not full is sent as soon as fewer than this number of batches are unconfirmed. Batches
  /// are therefore small under light load and large under heavy load. With 0, only full batches are sent
  /// without `linger` or a flush.
  std::size_t eager_batches = 2;
  /// The longest time that a message waits for more messages or confirms to close its batch. Send and poll
  /// check it. 0: no limit.
  Timeout linger{0};
  /// The window: the most bytes of unconfirmed batches. One batch of any size is always allowed. 0 means 4
  /// MiB at level `flushed`, because the disk is slower. At level `received` it means 256 KiB, which fits
  /// into the processor's caches, or 512 KiB over ZeroMQ, which adds threads. Over a network, use at least
  /// bandwidth times round-trip time.
  std::size_t window_bytes = 0;
  /// Memory for closed batches, sent or not; at least batch_bytes. A message larger than this can never be
  /// sent. The default has space for the longest message that a broker accepts by default.
  std::size_t memory_bytes_max = limits::message_bytes_max_default + 64 * limits::KiB;
  /// How long send waits while that memory is full. Send also waits while the connection is open, the window
  /// is full and a closed batch waits for the window. 0: send never waits, and fails with `limit_reached` if
  /// there is no memory. A year or more: no limit.
  Timeout send_timeout{30'000};
  /// true: a batch that the broker refuses (topic full, no space on the broker's disk, broker stopping) is
  /// sent again, with growing pauses. false: the producer gives its messages up as Fate::refused and
  /// continues with later ones.
  bool retry_refused = true;
  /// true: unconfirmed messages are sent again if the broker does not know this producer any more (it has
  /// forgotten the producer, or is another broker). Some of them may then be stored twice. false: see
  /// Producer::resolve.
  bool resend_in_doubt = false;
  /// The carrier of the session. `zmq` sends ZeroMQ messages, for networks that let only these through. With
  /// an encrypting broker they go through a socket of the client's ZeroMQ context. Without encryption libzmq
  /// is not used; on the broker's machine the session then uses the broker's Unix socket, unless
  /// Transport::tcp is requested.
  ConnectionType connection = ConnectionType::socket;
  /// Over a Unix socket: exchange frames through memory that the broker shares, if it has some left. This is
  /// faster than the socket. The memory counts for both processes.
  bool share_memory = true;
  /// The interval of the broker's heartbeats, 100 ms to an hour. The producer closes the connection after a
  /// silence of twice that. 0: no heartbeats.
  Timeout heartbeat{5000};
  /// The time limit for connecting and opening. After it, the producer joins again and makes a new attempt.
  Timeout attempt_timeout{5000};
  /// The first and the longest pause between attempts. The pause doubles each time, less a random part of up
  /// to a half.
  Timeout backoff{50};
  Timeout backoff_max{2000};
  /// The identity of an earlier producer that this one continues, with an epoch one higher. With id 0 the
  /// broker assigns a new identity.
  ProducerIdentity identity = {};
  /// The secret that the broker sent with `identity` on an open topic to a client without a user; see
  /// Producer::opened. An identity assigned to a user needs no secret, because it is bound to that user.
  std::optional<session::ProducerSecret> identity_secret = {};
  /// A name for the broker's logs; at most 128 bytes.
  std::string name = {};
  /// For tests: the source of times. Empty: the steady clock.
  SessionClock::Source clock = {};

  [[nodiscard]] std::size_t window_bytes_for(ConfirmLevel confirmed) const {
    if (window_bytes > 0) return window_bytes;
    if (confirmed == ConfirmLevel::flushed) return 4 * limits::MiB;
    return (connection == ConnectionType::zmq ? 512 : 256) * limits::KiB;
  }

  /// Checks that every value is in its range. Errors: invalid_argument.
  [[nodiscard]] Result<void> check() const;
};

}  // namespace lightq::inline v1

#if defined(LIGHTQ_WITH_DEFINITIONS)
#include <lightq/impl/producer_options.hpp>  // IWYU pragma: export
#endif
