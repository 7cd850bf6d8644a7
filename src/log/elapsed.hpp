/// Spans of the wall clock, which an administrator may set back. Layer: log.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include <lightq/base/types.hpp>

namespace lightq::log {

/// Converts milliseconds to microseconds. The result is limited to 2^63 - 1 (292,000 years, practically for
/// ever).
constexpr std::int64_t in_us(std::int64_t ms) {
  constexpr std::int64_t us_per_ms = 1000;
  constexpr std::int64_t most_ms = std::numeric_limits<std::int64_t>::max() / us_per_ms;
  return ms > most_ms ? std::numeric_limits<std::int64_t>::max() : std::max(ms, -most_ms) * us_per_ms;
}

/// Returns the milliseconds since 1970, rounded down; 0 for times before.
constexpr std::int64_t ms_since_1970(Timestamp time) {
  constexpr std::int64_t us_per_ms = 1000;
  return std::max<std::int64_t>(time.us, 0) / us_per_ms;
}

/// Returns true if `us` microseconds have passed since `since`. Also returns true if `since` lies in the
/// future: then the clock was set back, the span is unknown, and waiting could last indefinitely.
inline bool has_passed(Timestamp since, std::int64_t us, Timestamp now) {
  // Unsigned, because `since` may be the earliest possible time.
  const std::uint64_t passed = static_cast<std::uint64_t>(now.us) - static_cast<std::uint64_t>(since.us);
  return now < since || passed >= static_cast<std::uint64_t>(std::max<std::int64_t>(us, 0));
}

/// Returns true if `written` is more than `ms` milliseconds before `now`. Requires: `now` is not before 1970.
inline bool is_older(Timestamp written, std::int64_t ms, Timestamp now) {
  return written.us < now.us - in_us(ms);
}

}  // namespace lightq::log
