/// The wait before a failed attempt is repeated. Layer: client.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>

#include <lightq/options.hpp>

namespace lightq::inline v1 {

/// Waits that double from `shortest` to `longest`. Each is shortened by a random part of up to a half. So the
/// clients of a restarted broker do not all connect at the same moment. For one thread.
class SessionBackoff {
 public:
  /// Limits waits to a year: a longer one would not fit into the number of microseconds.
  SessionBackoff(Timeout shortest, Timeout longest, std::uint64_t seed)
      : shortest_(bounded(shortest)),
        longest_(std::max(shortest_, bounded(longest))),
        next_(shortest_),
        random_(static_cast<std::minstd_rand::result_type>(seed ^ (seed >> 32U))) {}

  /// Returns the next wait: between half of the current length and all of it.
  std::chrono::microseconds next() {
    const std::chrono::microseconds whole = next_;
    next_ = std::min(next_ * 2, longest_);
    const auto half = whole.count() / 2;
    if (half == 0) return whole;
    return std::chrono::microseconds(
        whole.count() - std::uniform_int_distribution<std::chrono::microseconds::rep>(0, half)(random_));
  }
  [[nodiscard]] Timeout longest() const { return longest_; }
  /// Records a success: the next wait is the shortest one.
  void reset() { next_ = shortest_; }

 private:
  static Timeout bounded(Timeout wait) { return std::min(wait, Timeout(std::chrono::hours(24 * 365))); }

  Timeout shortest_;
  Timeout longest_;
  Timeout next_;
  std::minstd_rand random_;
};

}  // namespace lightq::inline v1
