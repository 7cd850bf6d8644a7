/// Wall-clock time. Layer: endpoint.
#pragma once

#include <functional>

#include <lightq/base/types.hpp>

#include "broker/endpoint/event_loop.hpp"

namespace lightq::broker {

/// Wall-clock time, read in one place so that tests can set it.
using WallClock = std::function<Timestamp()>;

/// The wall clock's time, asked for once within a call of the loop: near enough where EventLoop::call_time
/// is. Outside of EventLoop::run it stands still. The loop's thread.
class CallClock {
 public:
  /// Both outlive it.
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
  EventLoop::Clock::time_point call_;  // in which the clock was asked last
  Timestamp now_;
};

}  // namespace lightq::broker
