/// Time as groups see it: points that come from above, on a clock that never goes back. Layer: delivery.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace lightq::broker {

using SteadyTime = std::chrono::steady_clock::time_point;

/// When nothing is waited for.
inline constexpr SteadyTime never = SteadyTime::max();

/// `ms` from now, or a little later: a thousandth of the time, at least 10 ms. So messages that were handed
/// out soon after each other share a deadline, and a group's deadlines are few.
inline SteadyTime deadline_after(SteadyTime now, std::uint32_t ms) {
  using std::chrono::milliseconds;
  constexpr std::int64_t step_ms_min = 10;
  constexpr std::int64_t steps = 1024;
  const auto step = milliseconds(std::max<std::int64_t>(step_ms_min, std::int64_t{ms} / steps));
  const auto rough = (now + milliseconds(ms)).time_since_epoch();
  return SteadyTime((rough + step - SteadyTime::duration(1)) / step * step);
}

/// When so many ranges may be walked over again in search of what is due: at most 32 a millisecond are. So
/// what is in 65,536 pieces with as many deadlines is up to 2 s late, but does not keep the thread busy.
inline SteadyTime walk_again_after(SteadyTime now, std::size_t ranges) {
  constexpr std::size_t ranges_per_ms = 32;
  return now + std::chrono::milliseconds(ranges / ranges_per_ms);
}

/// When a log that could not be read is read again: opening a file each time that a message comes in would be
/// in vain mostly.
inline SteadyTime read_again_after(SteadyTime now) {
  return now + std::chrono::milliseconds(500);
}

}  // namespace lightq::broker
