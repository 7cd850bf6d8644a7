/// How fast a thread takes new connections. Layer: endpoint.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "broker/endpoint/limit_counts.hpp"

namespace lightq::broker {

/// A token bucket, shared by all listeners of a thread: so many connections at once, and then so many a
/// second, whoever comes. The others wait in the operating system, where they cost this process nothing, so
/// that a flood of strangers takes a bounded share of the thread from those who are in. One thread.
class AcceptBudget {
 public:
  using Clock = std::chrono::steady_clock;

  /// `per_second`: 1 to 1,000,000. `counts`: of what take() refuses; null: not counted. Outlives it.
  AcceptBudget(std::uint64_t per_second, std::uint64_t at_once, LimitCounts* counts = nullptr)
      : cost_(std::chrono::nanoseconds(std::chrono::seconds(1)) / per_second),
        saved_max_(cost_ * at_once),
        saved_(saved_max_),
        counts_(counts) {}
  void count_in(LimitCounts& counts) { counts_ = &counts; }

  /// Whether one more may be taken now; then it has been.
  bool take(Clock::time_point now) {
    if (now > seen_) saved_ = std::min<Clock::duration>(saved_max_, saved_ + (now - seen_));
    seen_ = now;
    if (saved_ < cost_) {
      count(counts_, Limit::accepts_per_second);
      return false;
    }
    saved_ -= cost_;
    return true;
  }
  /// Less than half of what may come at once is left: each listener should leave some to the others.
  [[nodiscard]] bool scarce() const { return saved_ < saved_max_ / 2; }
  /// There was none to take, after all.
  void give_back() { saved_ = std::min(saved_max_, saved_ + cost_); }

  /// One of those that were taken has ended without having said who it is.
  void stranger_gone(Clock::time_point now) {
    turn(now);
    ++gone_;
  }
  /// Some hundreds a second do: who is taken in groups costs less, and many of a group have gone by then.
  [[nodiscard]] bool crowded(Clock::time_point now) {
    turn(now);
    return gone_ + gone_before_ >= crowd_from;
  }

 private:
  const Clock::duration cost_;
  const Clock::duration saved_max_;
  Clock::duration saved_;
  Clock::time_point seen_{};
  LimitCounts* counts_;

  static constexpr std::uint64_t crowd_from = 32;
  static constexpr Clock::duration crowd_time = std::chrono::milliseconds(100);
  void turn(Clock::time_point now) {
    if (now - turned_ < crowd_time) return;
    gone_before_ = now - turned_ < 2 * crowd_time ? gone_ : 0;
    gone_ = 0;
    turned_ = now;
  }
  Clock::time_point turned_{};
  std::uint64_t gone_ = 0;         // since then
  std::uint64_t gone_before_ = 0;  // in the time before
};

}  // namespace lightq::broker
