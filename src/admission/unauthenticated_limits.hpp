/// Limits on the unauthenticated peers of a thread. Layer: admission.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include <lightq/base/limits.hpp>

namespace lightq::broker {

/// Limits on unauthenticated peers, for all listeners of a thread together.
struct UnauthenticatedLimits {
  std::size_t handshakes_max = limits::handshakes_max_default;  ///< handshakes at a time: HandshakeQueue
  std::uint64_t accepts_per_second = limits::accepts_per_second_default;   ///< connections: AcceptBudget
  std::chrono::milliseconds handshake_time{limits::handshake_ms_default};  ///< for each one: Connection

  /// Returns the burst of connections that is accepted before `accepts_per_second` applies.
  [[nodiscard]] std::size_t accepts_at_once() const {
    return std::min(handshakes_max, limits::accepts_at_once);
  }
};

}  // namespace lightq::broker
