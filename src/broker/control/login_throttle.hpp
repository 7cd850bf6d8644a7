/// Slows down who tries passwords, and nobody else. Layer: control.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <string>
#include <unordered_map>

#include <lightq/base/limits.hpp>

#include "broker/control/recent_map.hpp"

namespace lightq::broker {

/// Answers to wrong passwords are held back, longer with each that a source has given, and with each that was
/// given for the user from anywhere; the latter not for sources that were right for the user before. Right
/// ones are never held back, so nobody can lock anybody out; and a source has only a few logins under way, so
/// that asking many at once does not help (docs/design.md, "Security"). What is remembered is bounded, and
/// passes. One thread; it has no clock of its own.
class LoginThrottle {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr unsigned failures_free = 5;
  static constexpr std::chrono::milliseconds delay_first{16};
  static constexpr std::chrono::milliseconds delay_max{1000};
  static constexpr std::chrono::minutes forgotten_after{5};  ///< without another failure

  /// A password is to be computed for the source. False: too many of its are under way.
  bool begin(const std::string& source);
  /// Whether wrong ones of the source are held back.
  [[nodiscard]] bool is_slowed(const std::string& source) const;
  /// It has been answered.
  void end(const std::string& source);
  /// It was right, whether or not it had to be computed.
  void right(const std::string& source, const std::string& user);
  /// It was wrong: how long the answer is to be held back.
  std::chrono::milliseconds wrong(const std::string& source, const std::string& user, Time now);

 private:
  struct Failures {
    unsigned count = 0;
    Time last;
    void add(Time now);
    [[nodiscard]] std::chrono::milliseconds delay() const;
  };
  struct User {
    Failures failures;
    std::deque<std::string> sources;  // that were right, newest first
  };

  std::unordered_map<std::string, std::size_t> under_way_;
  RecentMap<std::string, Failures> sources_{limits::login_sources_max};
  RecentMap<std::string, User> users_{limits::login_users_max};
};

}  // namespace lightq::broker
