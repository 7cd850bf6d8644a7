/// The embedded queue's clock. Layer: queue.
#pragma once

#include <ctime>

#include <lightq/base/types.hpp>

namespace lightq::queue {

#ifdef LIGHTQ_SEEDED_BUGS
inline Timestamp test_now;  // set by tests that have to be repeatable; 0: use the real time
#endif

/// Returns the time of day, exact to about 4 ms, for a fraction of the cost of the exact time.
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
