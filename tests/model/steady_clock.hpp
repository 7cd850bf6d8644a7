/// A steady clock that stands still until a test moves it, in place of the process's.
#pragma once

#include <chrono>

namespace lightq::model {

/// Replaces the monotonic clock of this test program, which all threads read. Thread: any.
class SteadyClock {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Stops the clock at a time. Until then, and after `release`, it is the system's.
  static void stop_at(Time time);
  static void advance(std::chrono::milliseconds time);
  static void release();
};

}  // namespace lightq::model
