/// Counters of a producer on a session. Layer: client.
#pragma once

#include <cstdint>

namespace lightq::inline v1 {

/// Counters of a session's producer since its construction. They count messages unless the field says
/// otherwise.
struct ProducerStats {
  std::uint64_t sent = 0;  ///< accepted by send
  std::uint64_t confirmed = 0;
  std::uint64_t refused = 0;  ///< certainly not stored
  std::uint64_t unknown = 0;  ///< given up, although they may have been stored
  std::uint64_t lost =
      0;  ///< confirmed and later lost by the broker: by a power cut at level `received`, or a restore
  std::uint64_t opens = 0;       ///< how often the channel was opened; one more than the number of reconnects
  std::uint64_t violations = 0;  ///< how often a connection was closed because the broker violated the
                                 ///< protocol
};

}  // namespace lightq::inline v1
