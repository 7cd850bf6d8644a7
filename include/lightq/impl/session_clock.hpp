/// The definitions of <lightq/detail/session_clock.hpp>. Layer: client.
#pragma once

#include <lightq/detail/session_clock.hpp>

#include <poll.h>

#include <chrono>

namespace lightq::inline v1 {

LIGHTQ_INLINE void SessionClock::wait(int fd, short events, SessionTime until) const {
  constexpr Timeout longest = std::chrono::minutes(1);
  const SessionTime begin = now();
  Timeout left(0);
  if (until > begin) left = until - begin >= longest ? longest : std::chrono::ceil<Timeout>(until - begin);
  pollfd entry{fd, events, 0};
  (void)::poll(&entry, 1, static_cast<int>(left.count()));
}

}  // namespace lightq::inline v1
