/// Defines the C library's clock_gettime in this program. So the code under test reads the test's time
/// through std::chrono, with no change of its own.
#include "model/steady_clock.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>

namespace {

constexpr std::int64_t ns_per_second = 1'000'000'000;
std::atomic<std::int64_t> stopped_at_ns = 0;  // 0: the clock is the system's

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const std::int64_t ns = stopped_at_ns.load(std::memory_order_relaxed);
  if (ns == 0 || clock != CLOCK_MONOTONIC) return static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  time->tv_sec = ns / ns_per_second;
  time->tv_nsec = ns % ns_per_second;
  return 0;
}

namespace lightq::model {

void SteadyClock::stop_at(Time time) {
  stopped_at_ns = std::chrono::nanoseconds(time.time_since_epoch()).count();
}

void SteadyClock::advance(std::chrono::milliseconds time) {
  stopped_at_ns += std::chrono::nanoseconds(time).count();
}

void SteadyClock::release() {
  stopped_at_ns = 0;
}

}  // namespace lightq::model
