/// Points in time until which a call may wait. Layer: client.
#pragma once

#include <algorithm>
#include <chrono>

#include <lightq/options.hpp>

namespace lightq::inline v1 {

/// A point in time until which a call may wait, safe for timeouts however long.
inline std::chrono::steady_clock::time_point deadline_after(Timeout timeout) {
  return std::chrono::steady_clock::now() + std::min(timeout, Timeout(std::chrono::hours(24 * 365)));
}

/// Milliseconds until `deadline`, rounded up, at least 0: what a poll takes.
inline Timeout time_left(std::chrono::steady_clock::time_point deadline) {
  const auto left = std::chrono::ceil<Timeout>(deadline - std::chrono::steady_clock::now());
  return std::max(left, Timeout(0));
}

}  // namespace lightq::inline v1
