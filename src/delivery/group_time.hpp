/// Time in delivery: the caller passes time points of a clock that never goes back. Layer: delivery.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace lightq::broker {

using SteadyTime = std::chrono::steady_clock::time_point;

/// A deadline that never passes.
inline constexpr SteadyTime never = SteadyTime::max();

/// Returns a deadline `ms` from now, rounded up. The step is a thousandth of the time, at least 10 ms. So
/// messages that are delivered soon after each other share a deadline, and a group has few deadlines.
inline SteadyTime deadline_after(SteadyTime now, std::uint32_t ms) {
  using std::chrono::milliseconds;
  constexpr std::int64_t step_ms_min = 10;
  constexpr std::int64_t steps = 1024;
  const auto step = milliseconds(std::max<std::int64_t>(step_ms_min, std::int64_t{ms} / steps));
  const auto rough = (now + milliseconds(ms)).time_since_epoch();
  return SteadyTime((rough + step - SteadyTime::duration(1)) / step * step);
}

/// Returns when `ranges` ranges may next be walked in search of due messages. The limit is 32 ranges a
/// millisecond. So messages in 65,536 ranges with as many deadlines are up to 2 s late, but do not keep the
/// thread busy.
inline SteadyTime walk_again_after(SteadyTime now, std::size_t ranges) {
  constexpr std::size_t ranges_per_ms = 32;
  return now + std::chrono::milliseconds(ranges / ranges_per_ms);
}

/// Returns when to try a log again that could not be read. Trying at every new message would open files,
/// mostly in vain.
inline SteadyTime read_again_after(SteadyTime now) {
  return now + std::chrono::milliseconds(500);
}

}  // namespace lightq::broker
