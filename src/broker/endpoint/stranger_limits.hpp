/// What those who have not said who they are may have of a thread. Layer: endpoint.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include <lightq/base/limits.hpp>

namespace lightq::broker {

/// Of a thread, at all its addresses together.
struct StrangerLimits {
  std::size_t handshakes_max = limits::handshakes_max_default;             ///< at once: HandshakeQueue
  std::uint64_t accepts_per_second = limits::accepts_per_second_default;   ///< new ones: AcceptBudget
  std::chrono::milliseconds handshake_time{limits::handshake_ms_default};  ///< of each: Connection

  /// New ones that may come at once, before `accepts_per_second` holds.
  [[nodiscard]] std::size_t accepts_at_once() const {
    return std::min(handshakes_max, limits::accepts_at_once);
  }
};

}  // namespace lightq::broker
