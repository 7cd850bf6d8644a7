/// How a reader on a session reads. Layer: client.
#pragma once

#include <cstdint>
#include <string>

#include <lightq/base/result.hpp>
#include <lightq/options.hpp>
#include <lightq/protocol/session_link.hpp>
#include <lightq/session_clock.hpp>
#include <lightq/session_patience.hpp>

namespace lightq::inline v1 {

/// Plain values; fill in what you need by name.
struct ReaderOptions {
  /// The longest frame taken from the broker, which is a message and a few bytes: 64 KiB to 2 GiB.
  std::uint32_t frame_bytes_max = session::frame_bytes_greatest;
  /// What the session travels over. `zmq`: ZeroMQ messages, as ProducerOptions::connection says.
  ConnectionType connection = ConnectionType::socket;
  /// As in ProducerOptions.
  bool share_memory = true;
  /// How often to hear from the broker while something is read, 100 ms to an hour; after twice that without a
  /// word the connection is given up, and another one made. 0: never.
  Timeout heartbeat{5000};
  /// How long connecting may take, before it is tried again with another join.
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
    if (frame_bytes_max < session::frame_bytes_least || frame_bytes_max > session::frame_bytes_greatest)
      return Error{ErrorCode::invalid_argument, "frame_bytes_max must be 64 KiB to 2 GiB"};
    return check_session_patience(*this);
  }
};

}  // namespace lightq::inline v1
