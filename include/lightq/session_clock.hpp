/// The time that sessions go by, and how long a wait may be. Layer: client.
#pragma once

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include <lightq/options.hpp>

namespace lightq::inline v1 {

using SessionTime = std::chrono::steady_clock::time_point;

/// A time that does not come.
inline constexpr SessionTime session_never = SessionTime::max();

/// `now` and so much more, for timeouts however long (negative ones count as 0).
inline SessionTime session_deadline(SessionTime now, Timeout timeout) {
  constexpr Timeout longest = std::chrono::hours(24 * 365);
  if (timeout >= longest) return session_never;
  return now + std::max(timeout, Timeout(0));
}

/// Where a session's times come from: the machine's steady clock, unless a test gives another one. Any thread
/// that the source bears.
class SessionClock {
 public:
  using Source = std::function<SessionTime()>;
  explicit SessionClock(Source source = {}) : source_(std::move(source)) {}
  [[nodiscard]] SessionTime now() const { return source_ ? source_() : std::chrono::steady_clock::now(); }

  /// The same, some milliseconds earlier, for a fraction of its cost.
  [[nodiscard]] SessionTime coarse_now() const {
    if (source_) return source_();
    timespec time{};
    (void)::clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    return SessionTime(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
  }

  /// Waits until `fd` has one of `events` (of poll(2)) or `until` has come, at most a minute; may end sooner.
  /// `fd` -1: only waits.
  void wait(int fd, short events, SessionTime until) const {
    constexpr Timeout longest = std::chrono::minutes(1);
    const SessionTime begin = now();
    Timeout left(0);
    if (until > begin) left = until - begin >= longest ? longest : std::chrono::ceil<Timeout>(until - begin);
    pollfd entry{fd, events, 0};
    (void)::poll(&entry, 1, static_cast<int>(left.count()));
  }

 private:
  Source source_;
};

}  // namespace lightq::inline v1
