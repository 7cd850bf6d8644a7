/// Runs an event loop until a condition holds. Tests only.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <stop_token>

#include "net/event_loop.hpp"

namespace lightq::broker::test {

/// Runs `loop` on this thread until `done()` holds. Fails the test after 10 s.
inline void run_until(EventLoop& loop, const std::function<bool()>& done) {
  std::stop_source stop;
  const auto deadline = EventLoop::Clock::now() + std::chrono::seconds(10);
  EventLoop::TimerId timer = 0;
  std::function<void()> check = [&] {
    if (done() || EventLoop::Clock::now() >= deadline) {
      stop.request_stop();
    } else {
      timer = loop.at(EventLoop::Clock::now() + std::chrono::milliseconds(1), check);
    }
  };
  check();
  loop.run(stop.get_token());
  loop.cancel(timer);
  EXPECT_TRUE(done()) << "not within ten seconds";
}

}  // namespace lightq::broker::test
