/// How a producer on a session sends. Layer: client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <lightq/base/batch_layout.hpp>
#include <lightq/base/codec.hpp>
#include <lightq/base/limits.hpp>
#include <lightq/base/result.hpp>
#include <lightq/options.hpp>
#include <lightq/protocol/session_producing.hpp>
#include <lightq/session_clock.hpp>
#include <lightq/session_patience.hpp>

namespace lightq::inline v1 {

using session::ConfirmLevel;
using session::ProducerIdentity;

/// Plain values; fill in what you need by name. Sizes are in bytes.
struct ProducerOptions {
  /// What a confirm means: in the log (`received`), or on disk (`flushed`). The topic's default is `flushed`
  /// on durable topics and `received` on others.
  ConfirmLevel level = ConfirmLevel::topics_default;
  /// A batch is closed when the next message would make it larger than this, header and length fields
  /// included: 4 KiB to 256 MiB. A larger message gets its own batch. The broker's limit is an upper bound.
  std::size_t batch_bytes = limits::batch_bytes_target;
  /// How batches are compressed. Batches that become no shorter or have more than 4 MiB are not. The broker
  /// stores the compressed batch, and delivers it compressed to consumers that know the codec and have credit
  /// for the whole batch. Saves network and disk at the cost of this process's CPU time; useful for long
  /// batches of text.
  Codec compression = Codec::none;
  /// A batch that is not full leaves as soon as fewer than this number of batches are unconfirmed. So batches
  /// are small under light load and large under heavy load. 0: only full batches leave by themselves, others
  /// by `linger` and flush.
  std::size_t eager_batches = 2;
  /// The longest that a message waits until other messages or confirms close its batch. Checked in send and
  /// poll. 0: no limit.
  Timeout linger{0};
  /// The window: the most bytes of unconfirmed batches. One batch of any size is always allowed. 0: 256 KiB
  /// if a confirm means `received` (fits into the processor's caches), 512 KiB over ZeroMQ (which adds
  /// threads), and 4 MiB if it means `flushed` (the disk is slower). Over a network use at least bandwidth
  /// times round trip.
  std::size_t window_bytes = 0;
  /// Memory for closed batches, sent or not; at least batch_bytes. A larger message can never be sent. The
  /// default has room for the longest message that a broker takes by default.
  std::size_t memory_bytes_max = limits::message_bytes_max_default + 64 * limits::KiB;
  /// How long send waits while that memory is used up, or while the connection is open, the window is full
  /// and a closed batch waits for it. 0: send never waits, and fails with `limit_reached` if there is no
  /// memory. A year or more: no limit.
  Timeout send_timeout{30'000};
  /// true: a refused batch (topic full, no space on the broker's disk, broker stopping) is sent again, with
  /// growing pauses. false: its messages are given up as Fate::refused, and later ones go on.
  bool retry_refused = true;
  /// true: if the broker no longer knows this producer (it has forgotten it, or is another broker),
  /// unconfirmed messages are sent again, although some may be stored already. false: see Producer::resolve.
  bool resend_in_doubt = false;
  /// What carries the session. `zmq`: ZeroMQ messages, for networks that let only these through. If the
  /// broker encrypts, they go through a socket of the client's ZeroMQ context. If not, libzmq is not used,
  /// and on the broker's machine they go through its Unix socket, unless Transport::tcp is asked for.
  ConnectionType connection = ConnectionType::socket;
  /// Over a Unix socket: use memory that the broker shares, if it has some left, which is faster than the
  /// socket. It counts as memory of both processes.
  bool share_memory = true;
  /// How often the broker sends a sign of life, 100 ms to an hour. The producer gives the connection up after
  /// a silence of twice that. 0: never.
  Timeout heartbeat{5000};
  /// How long connecting and opening may take before the producer joins and tries again.
  Timeout attempt_timeout{5000};
  /// The first and the longest pause between attempts. It doubles each time, less up to a half at random.
  Timeout backoff{50};
  Timeout backoff_max{2000};
  /// The identity of an earlier producer that this one continues, with an epoch one higher; id 0: the broker
  /// assigns a new one.
  ProducerIdentity identity = {};
  /// The secret that the broker gave with `identity` on an open topic to a client without a user; see
  /// Producer::opened. An identity given to a user needs none: it is bound to that user.
  std::optional<session::ProducerSecret> identity_secret = {};
  /// A name for the broker's logs; at most 128 bytes.
  std::string name = {};
  /// For tests: the source of times; empty: the steady clock.
  SessionClock::Source clock = {};

  [[nodiscard]] std::size_t window_bytes_for(ConfirmLevel confirmed) const {
    if (window_bytes > 0) return window_bytes;
    if (confirmed == ConfirmLevel::flushed) return 4 * limits::MiB;
    return (connection == ConnectionType::zmq ? 512 : 256) * limits::KiB;
  }

  /// Returns an error if a value is out of its range. Error: invalid_argument.
  [[nodiscard]] Result<void> check() const {
    constexpr std::size_t batch_bytes_least = 4 * limits::KiB;
    constexpr std::size_t batch_bytes_greatest = 256 * limits::MiB;
    const auto bad = [](const char* sentence) { return Error{ErrorCode::invalid_argument, sentence}; };
    if (batch_bytes < batch_bytes_least || batch_bytes > batch_bytes_greatest)
      return bad("batch_bytes must be 4 KiB to 256 MiB");
    if (memory_bytes_max < batch_bytes) return bad("memory_bytes_max must be at least batch_bytes");
    if (linger.count() < 0 || send_timeout.count() < 0)
      return bad("linger and send_timeout must not be negative");
    return check_session_patience(*this);
  }
};

}  // namespace lightq::inline v1
