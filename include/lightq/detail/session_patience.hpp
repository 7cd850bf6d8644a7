/// Functions for the options that producers, consumers and readers on sessions share. Layer: client.
#pragma once

#include <cstdint>

#include <lightq/base/result.hpp>
#include <lightq/protocol/session_link.hpp>
#include <lightq/protocol/session_memory.hpp>

namespace lightq::inline v1 {

/// Checks that `heartbeat`, `attempt_timeout`, `backoff`, `backoff_max` and `name` of `options` are in their
/// ranges. Errors: invalid_argument.
template <typename Options>
Result<void> check_session_patience(const Options& options) {
  const auto bad = [](const char* sentence) { return Error{ErrorCode::invalid_argument, sentence}; };
  const auto heartbeat_ms = options.heartbeat.count();
  if (heartbeat_ms != 0 &&
      (heartbeat_ms < session::heartbeat_ms_least || heartbeat_ms > session::heartbeat_ms_greatest))
    return bad("heartbeat must be 0 or 100 ms to 1 hour");
  if (options.backoff.count() < 1 || options.backoff_max < options.backoff)
    return bad("backoff must be 1 ms to backoff_max");
  if (options.attempt_timeout.count() < 1) return bad("attempt_timeout must be at least 1 ms");
  if (options.name.size() > session::client_name_bytes_max) return bad("name must have at most 128 bytes");
  return {};
}

/// Returns the hello for these options.
template <typename Options>
session::Hello session_hello(const Options& options) {
  session::Hello hello;
  hello.heartbeat_ms = static_cast<std::uint32_t>(options.heartbeat.count());
  hello.name = options.name;
  return hello;
}

/// The shared memory to request for a client that mostly sends, and for one that mostly receives.
inline constexpr session::SharedSizes memory_to_send{512 * limits::KiB, 16 * limits::KiB};
inline constexpr session::SharedSizes memory_to_receive{32 * limits::KiB, 512 * limits::KiB};

/// Returns `wanted` if the options permit shared memory, otherwise no memory.
template <typename Options>
session::SharedSizes session_memory(const Options& options, const session::SharedSizes& wanted) {
  return options.share_memory ? wanted : session::SharedSizes{};
}

}  // namespace lightq::inline v1
