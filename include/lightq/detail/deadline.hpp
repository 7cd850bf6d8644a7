/// Converts between timeouts and deadlines. Layer: client.
#pragma once

#include <algorithm>
#include <chrono>

#include <lightq/options.hpp>

namespace lightq::inline v1 {

/// Returns the time `timeout` from now. Timeouts longer than 365 days count as 365 days, so that nothing
/// overflows.
inline std::chrono::steady_clock::time_point deadline_after(Timeout timeout) {
  return std::chrono::steady_clock::now() + std::min(timeout, Timeout(std::chrono::hours(24 * 365)));
}

/// Returns the milliseconds until `deadline` as poll takes them: rounded up, at least 0.
inline Timeout time_left(std::chrono::steady_clock::time_point deadline) {
  const auto left = std::chrono::ceil<Timeout>(deadline - std::chrono::steady_clock::now());
  return std::max(left, Timeout(0));
}

}  // namespace lightq::inline v1
