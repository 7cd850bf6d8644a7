/// What a producer on a session has counted. Layer: client.
#pragma once

#include <cstdint>

namespace lightq::inline v1 {

/// Numbers of a producer on a session, since it was made. Messages, where nothing else is said.
struct ProducerStats {
  std::uint64_t sent = 0;  ///< taken by send
  std::uint64_t confirmed = 0;
  std::uint64_t refused = 0;     ///< surely not stored
  std::uint64_t unknown = 0;     ///< given up while they may have been stored
  std::uint64_t lost = 0;        ///< confirmed, and then lost by the broker (a power cut at level `received`)
  std::uint64_t opens = 0;       ///< how often the channel was opened: one more than it was lost
  std::uint64_t violations = 0;  ///< how often a connection was ended because the broker broke the protocol
};

}  // namespace lightq::inline v1
