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
  /// What "confirmed" is to mean: in the log, or on disk. The topic's own default is `flushed` on durable
  /// topics and `received` on others.
  ConfirmLevel level = ConfirmLevel::topics_default;
  /// A batch is closed when the next message would make it larger, header and length fields included: 4 KiB
  /// to 256 MiB. A larger message has a batch of its own. What the broker takes is an upper bound.
  std::size_t batch_bytes = limits::batch_bytes_target;
  /// How batches are compressed, but for those that become no shorter and those of more than 4 MiB. They are
  /// stored so, and delivered so to who can read it and has credit for all of one. Costs this side's time,
  /// saves the way's and the disk's: for long batches of text.
  Codec compression = Codec::none;
  /// A batch that is not full leaves at once while fewer than so many are unconfirmed, else when a confirm
  /// has brought that about: so the batches are small while there is little to do and large under load. 0:
  /// only full ones leave by themselves, others by `linger` and flush.
  std::size_t eager_batches = 2;
  /// The longest that a message waits for its batch to be closed by other messages or by confirms; kept in
  /// send and poll. 0: as long as that takes.
  Timeout linger{0};
  /// Of batches on their way and not confirmed; one batch of any size may be. 0: 256 KiB where a confirm
  /// means `received`, which stays in the processors' caches and in time, and 512 KiB over ZeroMQ, whose own
  /// threads lie on the way; 4 MiB where it means `flushed`, since the disk is slower to answer. Over a
  /// network: what it carries in the time of a way there and back.
  std::size_t window_bytes = 0;
  /// Memory for closed batches, sent or not; at least batch_bytes. A larger message can never be sent: the
  /// default has room for the longest that a broker takes by default.
  std::size_t memory_bytes_max = limits::message_bytes_max_default + 64 * limits::KiB;
  /// How long send waits while that memory is used up or, over an open connection, while the window is full
  /// and a closed batch waits for room in it. 0: it fails at once, with `limit_reached`, and only for want of
  /// memory; a year and more: for ever.
  Timeout send_timeout{30'000};
  /// A refused batch (topic full, no space on the broker's disk, broker stopping) is sent again, ever more
  /// rarely. false: its messages are given up, as Fate::refused, and later ones go on.
  bool retry_refused = true;
  /// When the broker does not know this producer any more (it forgot, or is another one), what was sent and
  /// not confirmed is sent again all the same, though some may be stored already. false: see
  /// Producer::resolve.
  bool resend_in_doubt = false;
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
  /// Who this producer was before, with an epoch one higher than then; id 0: the broker gives one.
  ProducerIdentity identity = {};
  /// On an open topic where the client logs in as nobody: the secret that came with the identity, as
  /// `Producer::opened` said it. Users need none: an identity is good for the user it was given to.
  std::optional<session::ProducerSecret> identity_secret = {};
  /// For the broker's logs; at most 128 bytes.
  std::string name = {};
  /// For tests: where times come from; empty: the steady clock.
  SessionClock::Source clock = {};

  [[nodiscard]] std::size_t window_bytes_for(ConfirmLevel confirmed) const {
    if (window_bytes > 0) return window_bytes;
    if (confirmed == ConfirmLevel::flushed) return 4 * limits::MiB;
    return (connection == ConnectionType::zmq ? 512 : 256) * limits::KiB;
  }

  /// Whether everything is in its range. Error: invalid_argument.
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
