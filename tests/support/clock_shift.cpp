/// A library for LD_PRELOAD that shifts a process's wall clock, so that a test can step it. CLOCK_SHIFT_FILE
/// names a file with the shift: microseconds as a signed 64-bit number in native byte order. A change of the
/// file takes effect at once, but on a timerfd only when it is set the next time. Other clocks than the wall
/// clock are not shifted.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

constexpr std::int64_t us_per_second = 1'000'000;
constexpr std::int64_t ns_per_us = 1'000;

/// Returns the mapped file, or null if the environment names none.
const volatile std::int64_t* shift_of_process() {
  const char* const path = std::getenv("CLOCK_SHIFT_FILE");
  if (path == nullptr) return nullptr;
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) std::abort();  // without the shift the test would pass wrongly
  void* const mapped = ::mmap(nullptr, sizeof(std::int64_t), PROT_READ, MAP_SHARED, file, 0);
  ::close(file);
  if (mapped == MAP_FAILED) std::abort();
  return static_cast<const volatile std::int64_t*>(mapped);
}

const volatile std::int64_t* const shift = shift_of_process();

/// The timers by the wall clock.
constexpr int descriptors_max = 4096;
bool is_by_wall_clock[descriptors_max];

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto result = static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  const bool is_wall_clock = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  if (result != 0 || !is_wall_clock || shift == nullptr) return result;
  const std::int64_t us = time->tv_sec * us_per_second + time->tv_nsec / ns_per_us + *shift;
  time->tv_sec = us / us_per_second;
  time->tv_nsec = us % us_per_second * ns_per_us + time->tv_nsec % ns_per_us;
  return 0;
}

int gettimeofday(timeval* time, void* /*zone*/) noexcept {
  timespec now{};
  const int result = clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / ns_per_us;
  return result;
}

time_t time(time_t* seconds) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (seconds != nullptr) *seconds = now.tv_sec;
  return now.tv_sec;
}

int timerfd_create(clockid_t clock, int flags) noexcept {
  const auto made = static_cast<int>(::syscall(SYS_timerfd_create, clock, flags));
  if (made >= 0 && made < descriptors_max) is_by_wall_clock[made] = clock == CLOCK_REALTIME;
  return made;
}

/// A time of the shifted clock becomes one of the system's.
int timerfd_settime(int timer, int flags, const itimerspec* wanted, itimerspec* former) noexcept {
  itimerspec unshifted = *wanted;
  const bool is_set = wanted->it_value.tv_sec != 0 || wanted->it_value.tv_nsec != 0;
  const bool is_time = (flags & TFD_TIMER_ABSTIME) != 0 && timer >= 0 && timer < descriptors_max;
  if (shift != nullptr && is_set && is_time && is_by_wall_clock[timer]) {
    std::int64_t us = wanted->it_value.tv_sec * us_per_second + wanted->it_value.tv_nsec / ns_per_us - *shift;
    if (us < 1) us = 1;
    unshifted.it_value.tv_sec = us / us_per_second;
    unshifted.it_value.tv_nsec = us % us_per_second * ns_per_us + wanted->it_value.tv_nsec % ns_per_us;
  }
  return static_cast<int>(::syscall(SYS_timerfd_settime, timer, flags, &unshifted, former));
}

}  // extern "C"
