/// What those who have not said who they are may have of a thread. Layer: endpoint.
#pragma once

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
};

}  // namespace lightq::broker
