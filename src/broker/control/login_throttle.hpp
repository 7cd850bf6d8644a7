/// Slows down who tries passwords, and nobody else. Layer: control.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <string>

#include <lightq/base/limits.hpp>

#include "broker/control/recent_map.hpp"

namespace lightq::broker {

/// Answers to wrong passwords are held back, longer with each that a source has given, and with each that was
/// given for the user from anywhere; the latter not for sources that were right for the user before. Right
/// ones are never held back, so nobody can lock anybody out; and passwords of a slowed source are computed at
/// a bounded rate, so that asking many at once does not help (docs/design.md, "Security"). What is remembered
/// is bounded, and passes. One thread; it has no clock of its own.
class LoginThrottle {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr unsigned failures_free = 5;
  static constexpr std::chrono::milliseconds delay_first{16};
  static constexpr std::chrono::milliseconds delay_max{1000};
  static constexpr std::chrono::minutes forgotten_after{5};  ///< without another failure
  static constexpr int computations_per_delay = 32;          ///< of a slowed source

  /// Whether wrong ones of the source are held back.
  [[nodiscard]] bool is_slowed(const std::string& source, Time now) const;
  /// When the source's next password may be computed; it may have passed.
  [[nodiscard]] Time next_computation(const std::string& source, Time now) const;
  /// One of the source's passwords is computed now.
  void computing(const std::string& source, Time now);
  /// Whether the source has given a wrong one for the user.
  [[nodiscard]] bool has_failed(const std::string& source, const std::string& user, Time now) const;
  /// It was right, whether or not it had to be computed.
  void right(const std::string& source, const std::string& user);
  /// It was wrong: how long the answer is to be held back.
  std::chrono::milliseconds wrong(const std::string& source, const std::string& user, Time now);

 private:
  struct Failures {
    unsigned count = 0;
    Time last;
    Time computing;  ///< when the last computation began
    void add(Time now);
    [[nodiscard]] std::chrono::milliseconds delay() const;
    [[nodiscard]] bool passed(Time now) const { return now - last >= forgotten_after; }
  };
  struct User {
    Failures failures;
    std::deque<std::string> sources;  // that were right, newest first
  };

  RecentMap<std::string, Failures> sources_{limits::login_sources_max};
  RecentMap<std::string, User> users_{limits::login_users_max};
  RecentMap<std::string, Time> names_{limits::login_names_max};  // by source and user: the last failure
};

}  // namespace lightq::broker
