/// Timers by the wall clock, woken by a timerfd that the system cancels when the clock is set. Layer: net.
#include "net/timers/wall_timers.hpp"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <utility>

namespace lightq::broker {

namespace {
constexpr std::int64_t us_per_second = 1'000'000;
// The longest wait that is computed from a difference of two times of the wall clock.
constexpr std::int64_t fallback_us_max = us_per_second;
constexpr std::int64_t fallback_us_min = 1'000;
}  // namespace

WallTimers::~WallTimers() {
  loop_.cancel_soon(*this);
  loop_.cancel(fallback_);
  if (descriptor_.valid()) loop_.unwatch(descriptor_.get(), *this);
}

WallTimers::TimerId WallTimers::at(Timestamp when, Task task) {
  const TimerId id = next_++;
  timers_.emplace(std::pair(when.us, id), std::move(task));
  times_.emplace(id, when.us);
  seen_ = std::max(seen_, clock_());
  if (timers_.begin()->first.second == id) arm();
  return id;
}

void WallTimers::cancel(TimerId timer) {
  const auto found = times_.find(timer);
  if (found == times_.end()) return;
  timers_.erase({found->second, timer});
  times_.erase(found);
}

/// Runs the tasks that are due. The descriptor is read first: the system reports a clock that was set there.
void WallTimers::on_ready() {
  if (descriptor_.valid()) {
    std::uint64_t fired = 0;
    const auto got = read(descriptor_.get(), &fired, sizeof fired);
    const bool was_set = got < 0 && errno == ECANCELED;
    if (got > 0 && clock_() < armed_for_) clocks_differ_ = true;
    if (got > 0 || was_set) armed_for_ = {};
    if (was_set) clocks_differ_ = false;
  }
  const Timestamp now = clock_();
  if (now < std::exchange(seen_, now)) {
    for (const auto& [owner, task] : set_back_) task();
  }
  for (std::size_t run = 0; run < tasks_of_call_max && !timers_.empty(); ++run) {
    const auto first = timers_.begin();
    if (now.us < first->first.first) break;
    const Task task = std::move(first->second);
    times_.erase(first->first.second);
    timers_.erase(first);
    task();
  }
  arm();
}

/// Sees to it that on_ready is called at the time of the first timer.
void WallTimers::arm() {
  if (timers_.empty()) return;
  const Timestamp first{timers_.begin()->first.first};
  if (first <= clock_()) return loop_.call_soon(*this);
  if (!has_tried_) {
    has_tried_ = true;
    descriptor_ = UniqueFd(timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK));
    if (descriptor_.valid() && !loop_.watch(descriptor_.get(), *this)) descriptor_.reset();
  }
  if (descriptor_.valid() && !clocks_differ_) return arm_system(first);
  arm_fallback(first);
}

/// Asks the system for a call when its clock shows `when`, or when the clock is set.
void WallTimers::arm_system(Timestamp when) {
  if (armed_for_ == when) return;
  itimerspec wanted{};
  wanted.it_value.tv_sec = static_cast<time_t>(when.us / us_per_second);
  // One nanosecond at least, because zero would disarm the timer.
  wanted.it_value.tv_nsec = std::max<long>(static_cast<long>(when.us % us_per_second) * 1'000, 1);
  constexpr int flags = TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET;
  int made = timerfd_settime(descriptor_.get(), flags, &wanted, nullptr);
  // The system refuses once if the clock was set since the last call.
  if (made != 0 && errno == ECANCELED) made = timerfd_settime(descriptor_.get(), flags, &wanted, nullptr);
  if (made != 0) return arm_fallback(when);
  armed_for_ = when;
}

void WallTimers::arm_fallback(Timestamp when) {
  const std::int64_t wait = std::clamp(when.us - clock_().us, fallback_us_min, fallback_us_max);
  loop_.cancel(fallback_);
  fallback_ = loop_.at(EventLoop::Clock::now() + std::chrono::microseconds(wait), [this] {
    fallback_ = 0;
    // A clock that was set between the system's timer and the look at clock_ looks like another clock.
    clocks_differ_ = false;
    on_ready();
  });
}

}  // namespace lightq::broker
