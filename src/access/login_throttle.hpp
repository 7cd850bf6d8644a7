/// Slows down clients that guess passwords, and no others. Layer: access.
#pragma once

#include <chrono>
#include <deque>
#include <string>

#include <lightq/base/limits.hpp>

#include "admission/recent_map.hpp"

namespace lightq::broker {

/// Computes the delay of replies to wrong passwords. It grows with each wrong password from a source, and
/// with each wrong password for a user from any source. The latter does not apply to sources that gave a
/// correct password for the user before. Replies to correct passwords are never delayed, so no client can
/// lock another out. Passwords of a slowed source are computed at a bounded rate, so asking in parallel does
/// not help (docs/design.md, "Security"). The memory is bounded, and entries expire. One thread; the caller
/// passes the time.
class LoginThrottle {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr unsigned failures_free = 5;
  static constexpr std::chrono::milliseconds delay_first{16};
  static constexpr std::chrono::milliseconds delay_max{1000};
  static constexpr std::chrono::minutes forgotten_after{5};  ///< counted from the last failure
  static constexpr int computations_per_delay = 32;          ///< for a slowed source

  /// Returns true if replies to wrong passwords from the source are delayed.
  [[nodiscard]] bool is_slowed(const std::string& source, Time now) const;
  /// Returns the time from which the source's next password may be computed. It may be in the past.
  [[nodiscard]] Time next_computation(const std::string& source, Time now) const;
  /// Records that a password of the source is being computed.
  void computing(const std::string& source, Time now);
  /// Returns true if the source has given a wrong password for the user within `forgotten_after`.
  [[nodiscard]] bool has_failed(const std::string& source, const std::string& user, Time now) const;
  /// Records a correct password, whether or not it was computed.
  void right(const std::string& source, const std::string& user);
  /// Records a wrong password, and returns how long to delay the reply.
  std::chrono::milliseconds wrong(const std::string& source, const std::string& user, Time now);

 private:
  struct Failures {
    unsigned count = 0;
    Time last;
    Time computing;  ///< start of the most recent computation
    void add(Time now);
    [[nodiscard]] std::chrono::milliseconds delay() const;
    [[nodiscard]] bool passed(Time now) const { return now - last >= forgotten_after; }
  };
  struct User {
    Failures failures;
    std::deque<std::string> sources;  // sources that gave a correct password, newest first
  };

  RecentMap<std::string, Failures> sources_{limits::login_sources_max};
  RecentMap<std::string, User> users_{limits::login_users_max};
  RecentMap<std::string, Time> names_{limits::login_names_max};  // source and user → last failure
};

}  // namespace lightq::broker
