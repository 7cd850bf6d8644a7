/// The queue's clocks. Layer: queue.
#pragma once

#include <ctime>

#include <lightq/base/types.hpp>

namespace lightq::queue {

#ifdef LIGHTQ_SEEDED_BUGS
inline Timestamp test_now;  // tests that must repeat set it; 0: the real time
#endif

/// The time of day to about 4 ms, for a fraction of what the exact one costs.
inline Timestamp coarse_now() {
#ifdef LIGHTQ_SEEDED_BUGS
  if (test_now.us != 0) return test_now;
#endif
#ifdef CLOCK_REALTIME_COARSE
  constexpr clockid_t clock = CLOCK_REALTIME_COARSE;
#else
  constexpr clockid_t clock = CLOCK_REALTIME;
#endif
  timespec now{};
  clock_gettime(clock, &now);
  return {std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000};
}

}  // namespace lightq::queue
