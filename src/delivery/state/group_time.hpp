/// Time in delivery: the caller passes time points of a clock that never goes back. Layer: delivery.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include <lightq/base/types.hpp>

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

/// Returns the deadline of a limited time; `ms` 0: no limit, so `never`.
inline SteadyTime deadline_of(SteadyTime now, std::uint32_t ms) {
  return ms == 0 ? never : deadline_after(now, ms);
}

/// The same moment on two clocks. Due times are kept by the steady clock, and stored by the wall clock.
///
/// The clocks are read one after the other, and no message may be due too early. To store times, read the
/// steady clock first; to restore them, read the wall clock first. Then the time between the two readings
/// makes messages due later. A step of the wall clock while the broker is down moves due times by that step.
struct ClockReading {
  SteadyTime steady{};
  Timestamp wall{};

  /// Returns `due` by the wall clock, rounded up to a microsecond.
  [[nodiscard]] Timestamp wall_time_of(SteadyTime due) const {
    return {wall.us + std::chrono::ceil<std::chrono::microseconds>(due - steady).count()};
  }
  /// Returns a stored time by the steady clock. A time more than 2^32 ms ahead is no delay that a client can
  /// ask for; it becomes 2^32 ms.
  [[nodiscard]] SteadyTime steady_time_of(Timestamp due) const {
    constexpr std::chrono::microseconds most = std::chrono::milliseconds(std::int64_t{1} << 32);
    if (due <= wall) return steady;
    const auto ahead_us = static_cast<std::uint64_t>(due.us) - static_cast<std::uint64_t>(wall.us);
    if (ahead_us >= static_cast<std::uint64_t>(most.count())) return steady + most;
    return steady + std::chrono::microseconds(ahead_us);
  }
};

/// Returns when `ranges` ranges may next be walked in search of due messages. The limit is 32 ranges a
/// millisecond. So messages in 16,384 ranges with as many deadlines are up to 0.5 s late, but do not keep the
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
