/// The wall clock, in the form of stored timestamps. Layer: broker.
#pragma once

#include <chrono>

#include <lightq/base/types.hpp>

namespace lightq::broker {

/// Returns microseconds since 1970 (UTC). May jump when the machine's clock is set. Thread: any.
inline Timestamp wall_clock_now() {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::microseconds>(since_epoch).count()};
}

}  // namespace lightq::broker
