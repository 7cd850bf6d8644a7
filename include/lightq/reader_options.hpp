/// Options of a reader on a session. Layer: client.
#pragma once

#include <cstdint>
#include <string>

#include <lightq/base/result.hpp>
#include <lightq/base/separate.hpp>
#include <lightq/detail/session_clock.hpp>
#include <lightq/options.hpp>
#include <lightq/protocol/session_link.hpp>

namespace lightq::inline v1 {

/// Options of Client::reader: plain values, to be set by name.
struct ReaderOptions {
  /// The longest frame accepted from the broker, 64 KiB to 2 GiB. A frame is a message and a few bytes.
  std::uint32_t frame_bytes_max = session::frame_bytes_greatest;
  /// The carrier of the session. `zmq`: ZeroMQ messages, as ProducerOptions::connection describes.
  ConnectionType connection = ConnectionType::socket;
  /// As in ProducerOptions.
  bool share_memory = true;
  /// The interval of the broker's heartbeats while a read is running, 100 ms to an hour. After a silence of
  /// twice that the reader closes the connection and makes another one. 0: no heartbeats.
  Timeout heartbeat{5000};
  /// The time limit for connecting. After it, the reader joins again and makes a new attempt.
  Timeout attempt_timeout{5000};
  /// The first and the longest pause between attempts. The pause doubles each time, less a random part of up
  /// to a half.
  Timeout backoff{50};
  Timeout backoff_max{2000};
  /// A name for the broker's logs; at most 128 bytes.
  std::string name = {};
  /// For tests: the source of times. Empty: the steady clock.
  SessionClock::Source clock = {};

  /// Checks that every value is in its range. Errors: invalid_argument.
  [[nodiscard]] Result<void> check() const;
};

}  // namespace lightq::inline v1

#if defined(LIGHTQ_WITH_DEFINITIONS)
#include <lightq/impl/reader_options.hpp>  // IWYU pragma: export
#endif
