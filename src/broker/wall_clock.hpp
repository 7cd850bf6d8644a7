/// The time of day, as stored times want it. Layer: broker.
#pragma once

#include <chrono>

#include <lightq/base/types.hpp>

namespace lightq::broker {

/// Now, in microseconds since 1970 (UTC); may jump when the machine's clock is set. Any thread.
inline Timestamp wall_clock_now() {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::microseconds>(since_epoch).count()};
}

}  // namespace lightq::broker
