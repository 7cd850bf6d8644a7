/// Requests about messages in flight, and their results. Layer: requests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <lightq/base/types.hpp>

namespace lightq::broker {

/// A request about messages of a lease.
struct Settling {
  enum class What : std::uint8_t { acknowledge, retry, release, dead, extend };
  What what = What::acknowledge;
  std::vector<OffsetRange> ranges;  ///< ascending, and not adjacent; empty: all that are in flight
  std::uint32_t ms = 0;             ///< the delay of a retry or release; the time from now to extend to
  std::string reason;               ///< of `dead`
};

struct Settled {
  std::uint64_t messages = 0;     ///< settled, or extended
  std::uint64_t in_flight = 0;    ///< that the lease still has
  std::vector<OffsetRange> late;  ///< that were taken back before
};

}  // namespace lightq::broker
