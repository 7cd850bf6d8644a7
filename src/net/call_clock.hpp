/// Wall-clock time. Layer: net.
#pragma once

#include <functional>

#include <lightq/base/types.hpp>

#include "net/event_loop.hpp"

namespace lightq::broker {

/// Wall-clock time, read in one place so that tests can set it.
using WallClock = std::function<Timestamp()>;

/// The wall clock's time, read once in each call of the loop. It is precise enough wherever
/// EventLoop::call_time is. Outside EventLoop::run it does not advance. Thread: the loop's.
class CallClock {
 public:
  /// Lifetime: both outlive the clock.
  CallClock(EventLoop& loop, const WallClock& clock) : loop_(loop), clock_(clock) {}

  [[nodiscard]] Timestamp now() {
    const EventLoop::Clock::time_point call = loop_.call_time();
    if (call != call_) {
      call_ = call;
      now_ = clock_();
    }
    return now_;
  }

 private:
  EventLoop& loop_;
  const WallClock& clock_;
  EventLoop::Clock::time_point call_;  // the call in which the clock was read last
  Timestamp now_;
};

}  // namespace lightq::broker
