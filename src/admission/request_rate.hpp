/// Limits the requests per second of each source. Layer: admission.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>

#include <lightq/base/limits.hpp>

#include "admission/recent_map.hpp"

namespace lightq::broker {

/// A token bucket that holds at most one second's worth of tokens. One thread; the caller passes the time.
class Allowance {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Takes `amount` tokens. Returns false, and takes none, if there are too few.
  bool take(std::size_t per_second, Time now, double amount = 1) {
    const auto most = static_cast<double>(per_second);
    const std::chrono::duration<double> passed = now - seen_;
    left_ = seen_ == Time{} ? most : std::min(most, left_ + passed.count() * most);
    seen_ = now;
    if (left_ < amount) return false;
    left_ -= amount;
    return true;
  }
  /// Takes `amount` more tokens afterwards, or returns some if it is negative. The bucket may become
  /// negative.
  void charge(double amount) { left_ -= amount; }

 private:
  Time seen_;
  double left_ = 0;
};

/// A token bucket for each source. One thread; the caller passes the time.
class RequestRate {
 public:
  using Time = Allowance::Time;

  explicit RequestRate(std::size_t per_second) : per_second_(per_second) {}

  /// Returns false if the source has made too many requests.
  bool take(const std::string& source, Time now) { return sources_[source].take(per_second_, now); }

 private:
  const std::size_t per_second_;
  RecentMap<std::string, Allowance> sources_{limits::login_sources_max};
};

}  // namespace lightq::broker
