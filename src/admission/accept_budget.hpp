/// Limits how fast a thread accepts new connections. Layer: admission.
#pragma once

#include <chrono>
#include <cstdint>

#include "admission/limit_counts.hpp"
#include "admission/token_bucket.hpp"

namespace lightq::broker {

/// One token bucket that all listeners of a thread share. It permits a burst of `at_once` connections and
/// then `per_second` new ones, from all peers together. Further connections wait in the operating system,
/// where they cost this process nothing. So a flood of unauthenticated peers takes a bounded share of the
/// thread from the established connections. Thread: one. Each thread has its own, because it bounds the work
/// of one thread.
class AcceptBudget {
 public:
  using Clock = std::chrono::steady_clock;

  /// `per_second`: 1 to 1,000,000. `counts`: counts the refusals of take(); null: they are not counted.
  /// Lifetime: `counts` outlives the budget.
  AcceptBudget(std::uint64_t per_second, std::uint64_t at_once, LimitCounts* counts = nullptr)
      : rate_(per_second, at_once), counts_(counts) {}
  void count_in(LimitCounts& counts) { counts_ = &counts; }

  /// Takes a token for one connection. Returns false, and counts a refusal, if there is none now.
  bool take(Clock::time_point now) {
    if (tokens_.take(rate_, now)) return true;
    count(counts_, Limit::accepts_per_second);
    return false;
  }
  /// Returns true if less than half of the burst is left. Each listener should then leave some tokens to the
  /// others.
  [[nodiscard]] bool scarce() const { return tokens_.left(rate_) < rate_.burst / 2; }
  /// Returns a token: there was no connection to accept.
  void give_back() { tokens_.charge(-1); }

  /// Records that an accepted connection ended before its peer authenticated.
  void unauthenticated_closed(Clock::time_point now) {
    turn(now);
    ++gone_;
  }
  /// Returns true if some hundreds of unauthenticated peers a second disconnect (at least 32 within the last
  /// 100 to 200 ms). Accepting them in groups then costs less, because many of a group have gone by the time
  /// they are accepted.
  [[nodiscard]] bool crowded(Clock::time_point now) {
    turn(now);
    return gone_ + gone_before_ >= crowd_from;
  }

 private:
  const Rate rate_;
  Tokens tokens_;
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
  std::uint64_t gone_ = 0;         // since turned_
  std::uint64_t gone_before_ = 0;  // in the `crowd_time` before turned_
};

}  // namespace lightq::broker
