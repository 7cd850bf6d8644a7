/// The source of time in sessions, and waiting with deadlines. Layer: client.
#pragma once

#include <time.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include <lightq/base/separate.hpp>
#include <lightq/options.hpp>

namespace lightq::inline v1 {

using SessionTime = std::chrono::steady_clock::time_point;

/// A time that never comes.
inline constexpr SessionTime session_never = SessionTime::max();

/// Returns `now` plus `timeout`. Negative timeouts count as 0; a year or more means never.
inline SessionTime session_deadline(SessionTime now, Timeout timeout) {
  constexpr Timeout longest = std::chrono::hours(24 * 365);
  if (timeout >= longest) return session_never;
  return now + std::max(timeout, Timeout(0));
}

/// The source of a session's times: the machine's steady clock, unless a test provides another one. Thread:
/// any, if the source allows it.
class SessionClock {
 public:
  using Source = std::function<SessionTime()>;
  explicit SessionClock(Source source = {}) : source_(std::move(source)) {}
  [[nodiscard]] SessionTime now() const { return source_ ? source_() : std::chrono::steady_clock::now(); }

  /// Returns a time that may be some milliseconds old, at a fraction of the cost of `now`.
  [[nodiscard]] SessionTime coarse_now() const {
    if (source_) return source_();
    timespec time{};
    (void)::clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    return SessionTime(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
  }

  /// Waits until `fd` has one of `events` (of poll(2)) or `until` has passed, at most a minute. May return
  /// earlier. With `fd` -1 it only waits.
  void wait(int fd, short events, SessionTime until) const;

 private:
  Source source_;
};

}  // namespace lightq::inline v1

#if defined(LIGHTQ_WITH_DEFINITIONS)
#include <lightq/impl/session_clock.hpp>  // IWYU pragma: export
#endif
