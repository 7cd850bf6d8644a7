/// The connection of a consumer, for its program. Layer: client.
#pragma once

#include <string>

#include <lightq/base/result.hpp>
#include <lightq/consumer_options.hpp>
#include <lightq/detail/calls/consumer_driver.hpp>
#include <lightq/detail/session_address.hpp>
#include <lightq/detail/session_clock.hpp>
#include <lightq/detail/session_state.hpp>

namespace lightq::inline v1 {

/// The part of a Consumer that tells about its connection. Owns the driver of its channel. Thread: the
/// consumer's.
class ConsumerConnection {
 public:
  [[nodiscard]] const std::string& topic() const;
  [[nodiscard]] SessionState state() const;
  [[nodiscard]] bool connected() const;
  /// Returns the reason why the last connection or attempt to connect ended.
  [[nodiscard]] const Error& last_error() const;

  /// Returns the connection's descriptor, or -1 if there is none now. Only wait for it; do not read or write.
  /// Every call of the consumer may change it.
  [[nodiscard]] int fd() const;
  /// Returns true if Consumer::poll has something to send when the descriptor becomes writable.
  [[nodiscard]] bool wants_write() const;
  /// Returns the time at which to call Consumer::poll even if the descriptor reports nothing, or
  /// session_never.
  [[nodiscard]] SessionTime next_timer() const;

 protected:
  ConsumerConnection(std::string topic, SessionJoin join, const ConsumerOptions& options);
  ConsumerConnection(ConsumerConnection&&) noexcept = default;
  ConsumerConnection& operator=(ConsumerConnection&&) noexcept = default;
  ~ConsumerConnection() = default;

  ConsumerDriver driver_;
};

}  // namespace lightq::inline v1
