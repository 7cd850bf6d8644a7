/// Spans of the wall clock, which may be set back. Layer: log.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include <lightq/base/types.hpp>

namespace lightq::log {

/// `ms` milliseconds in microseconds: at most 2^63 - 1 of them, which is 292,000 years, as good as for ever.
constexpr std::int64_t in_us(std::int64_t ms) {
  constexpr std::int64_t us_per_ms = 1000;
  constexpr std::int64_t most_ms = std::numeric_limits<std::int64_t>::max() / us_per_ms;
  return ms > most_ms ? std::numeric_limits<std::int64_t>::max() : std::max(ms, -most_ms) * us_per_ms;
}

/// True if `us` microseconds have passed since `since`. A time that is still to come shows that the clock was
/// set back: nobody knows how long ago that was, and nothing is to stand still for it, so that is true, too.
inline bool has_passed(Timestamp since, std::int64_t us, Timestamp now) {
  // Without a sign: `since` may be the earliest time that there is.
  const std::uint64_t passed = static_cast<std::uint64_t>(now.us) - static_cast<std::uint64_t>(since.us);
  return now < since || passed >= static_cast<std::uint64_t>(std::max<std::int64_t>(us, 0));
}

/// True if `written` is more than `ms` milliseconds before `now`, which is not before 1970.
inline bool is_older(Timestamp written, std::int64_t ms, Timestamp now) {
  return written.us < now.us - in_us(ms);
}

}  // namespace lightq::log
