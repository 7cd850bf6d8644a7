/// How many requests a second a source may make. Layer: control.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>

#include <lightq/base/limits.hpp>

#include "broker/control/recent_map.hpp"

namespace lightq::broker {

/// So many a second of one; after a pause a second's worth may come at once. One thread; no clock of its own.
class Allowance {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// False: it is used up.
  bool take(std::size_t per_second, Time now, double amount = 1) {
    const auto most = static_cast<double>(per_second);
    const std::chrono::duration<double> passed = now - seen_;
    left_ = seen_ == Time{} ? most : std::min(most, left_ + passed.count() * most);
    seen_ = now;
    if (left_ < amount) return false;
    left_ -= amount;
    return true;
  }
  /// What was taken has cost so much more; less where it is negative. It may be owed.
  void charge(double amount) { left_ -= amount; }

 private:
  Time seen_;
  double left_ = 0;
};

/// One thread; no clock of its own.
class RequestRate {
 public:
  using Time = Allowance::Time;

  explicit RequestRate(std::size_t per_second) : per_second_(per_second) {}

  /// False: the source has asked too much.
  bool take(const std::string& source, Time now) { return sources_[source].take(per_second_, now); }

 private:
  const std::size_t per_second_;
  RecentMap<std::string, Allowance> sources_{limits::login_sources_max};
};

}  // namespace lightq::broker
