/// A library for LD_PRELOAD that shifts a process's wall clock, so that a test can step it: by the
/// microseconds (a signed number of 64 bits, native byte order) in the file that CLOCK_SHIFT_FILE names,
/// whenever they change. Clocks that are not the wall clock go on as they are.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

constexpr std::int64_t us_per_second = 1'000'000;
constexpr std::int64_t ns_per_us = 1'000;

/// The file, mapped; null: there is none.
const volatile std::int64_t* shift_of_process() {
  const char* const path = std::getenv("CLOCK_SHIFT_FILE");
  if (path == nullptr) return nullptr;
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) std::abort();  // a clock that is not shifted would let the test pass
  void* const mapped = ::mmap(nullptr, sizeof(std::int64_t), PROT_READ, MAP_SHARED, file, 0);
  ::close(file);
  if (mapped == MAP_FAILED) std::abort();
  return static_cast<const volatile std::int64_t*>(mapped);
}

const volatile std::int64_t* const shift = shift_of_process();

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

}  // extern "C"
