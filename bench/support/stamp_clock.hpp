/// A clock fast enough to stamp millions of messages per second. Layer: bench support.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "support/posix.hpp"

namespace lightq::bench {

#if defined(__x86_64__)
namespace stamp_clock_detail {

inline double as_double(std::uint64_t number) {
  return static_cast<double>(static_cast<std::int64_t>(number));  // faster than from an unsigned number
}

/// Nanoseconds per tick of the processor's counter (TSC). 0 if the system does not take its time from the
/// TSC, which may then differ between processors. Measured when the program starts, before it forks any
/// process.
inline const double ns_per_tick = [] {
  std::ifstream source("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string name;
  if (!(source >> name) || name != "tsc") return 0.0;
  constexpr std::uint64_t measured_ns = 20'000'000;  // both clocks are read within about 50 ns
  const std::uint64_t begin_ns = now_ns();
  const std::uint64_t begin = __rdtsc();
  std::uint64_t end_ns = begin_ns;
  while (end_ns < begin_ns + measured_ns) end_ns = now_ns();
  const std::uint64_t end = __rdtsc();
  return as_double(end_ns - begin_ns) / as_double(end - begin);
}();

}  // namespace stamp_clock_detail

/// Returns nanoseconds since a moment that is the same for all processes of the program. Takes 10 ns per call
/// on the machine of docs/benchmarks.md; CLOCK_MONOTONIC takes 26 ns.
inline std::uint64_t stamp_ns() {
  const double scale = stamp_clock_detail::ns_per_tick;
  if (scale == 0) return now_ns();
  return static_cast<std::uint64_t>(stamp_clock_detail::as_double(__rdtsc()) * scale);
}
#else
inline std::uint64_t stamp_ns() {
  return now_ns();
}
#endif

}  // namespace lightq::bench
