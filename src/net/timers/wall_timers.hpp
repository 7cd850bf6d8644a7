/// Timers by the wall clock: they fire when the clock shows a time, also after the clock was set. Layer: net.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>

#include <lightq/base/types.hpp>

#include "net/call_clock.hpp"
#include "net/event_loop.hpp"
#include "net/socket.hpp"

namespace lightq::broker {

/// Calls tasks when the wall clock shows their time or a later one, never earlier. The system wakes the loop
/// by the clock itself (timerfd), so a clock that is set takes effect at once: after a step forward the tasks
/// that are due run; after a step back the others wait for the clock. A task runs once. Where the system's
/// clock cannot wake the loop (no descriptor is left, or a test has its own clock), the object asks the clock
/// at least once a second.
/// Lifetime: destroyed while no task runs; tasks that still wait are dropped. Thread: the loop's.
class WallTimers final : private EventLoop::Source {
 public:
  using Task = EventLoop::Task;
  using TimerId = std::uint64_t;

  /// Takes no descriptor before the first timer. Lifetime: both outlive this object.
  WallTimers(EventLoop& loop, const WallClock& clock) : loop_(loop), clock_(clock) {}
  ~WallTimers() override;

  /// Calls `task` once, in a later call of the loop, when the clock shows `when` or later. Tasks run in the
  /// order of their times; those of one time in the order of these calls. Returns an id that is never 0.
  TimerId at(Timestamp when, Task task);
  /// Drops the timer's task, unless it has run.
  void cancel(TimerId timer);
  /// Called when the clock that was handed in may have been set. The system tells of its own clock; a test
  /// that sets its clock calls this. The tasks that are due run in the next turn of the loop.
  void clock_was_set() { loop_.call_soon(*this); }

  /// Calls `task` whenever the clock shows an earlier time than before: at once, or within a second if the
  /// system does not tell. It does so only while a timer waits. `owner` identifies the task; it replaces an
  /// earlier one.
  void when_set_back(const void* owner, Task task) { set_back_.insert_or_assign(owner, std::move(task)); }
  /// Drops the owner's task. Requires: not called by a task of `when_set_back`.
  void forget(const void* owner) { set_back_.erase(owner); }

  [[nodiscard]] std::size_t waiting() const { return timers_.size(); }

 private:
  // The tasks of one call of the loop. The others follow in the next one.
  static constexpr std::size_t tasks_of_call_max = 64;

  void on_ready() override;
  void arm();
  void arm_system(Timestamp when);
  void arm_fallback(Timestamp when);

  EventLoop& loop_;
  const WallClock& clock_;
  UniqueFd descriptor_;     // a timerfd of CLOCK_REALTIME
  bool has_tried_ = false;  // to make descriptor_
  // The system's timer has fired before clock_ showed its time. Its next attempt is when fallback_ is due.
  bool clocks_differ_ = false;
  Timestamp armed_for_;                                      // of descriptor_; 0: not armed
  EventLoop::TimerId fallback_ = 0;                          // asks the clock again; 0: not set
  std::map<std::pair<std::int64_t, TimerId>, Task> timers_;  // by time in µs
  std::unordered_map<TimerId, std::int64_t> times_;          // the times of timers_
  std::map<const void*, Task> set_back_;
  Timestamp seen_;  // the clock's time at the last look
  TimerId next_ = 1;
};

}  // namespace lightq::broker
