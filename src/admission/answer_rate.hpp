/// Limits the amount of reply data per second and owner. Layer: admission.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include <lightq/base/limits.hpp>

#include "admission/recent_map.hpp"
#include "admission/request_rate.hpp"

namespace lightq::broker {

/// A token bucket per owner. Each KiB of a reply, rounded up, costs one token, because a KiB of reply takes
/// about as much work as one request. The rate in tokens equals the permitted requests per second. The length
/// of a reply is unknown until it exists, so `take` charges the owner's largest cost so far, but at most 1/8
/// of a second's tokens. `settle` then charges the difference, which may put the owner into debt. One thread;
/// the caller passes the time.
class AnswerRate {
 public:
  using Time = Allowance::Time;

  explicit AnswerRate(std::size_t per_second) : per_second_(per_second) {}

  /// Charges an estimate for one reply, and returns it for `settle`. Returns nothing if the owner has used up
  /// its rate.
  std::optional<double> take(const std::string& owner, Time now) {
    Owner& of = owners_[owner];
    const double most = std::max(1.0, static_cast<double>(per_second_) / 8);
    const double expected = std::clamp(of.largest, 1.0, most);
    if (!of.allowance.take(per_second_, now, expected)) return std::nullopt;
    return expected;
  }
  void settle(const std::string& owner, double taken, std::uint64_t answer_bytes) {
    Owner& of = owners_[owner];
    const auto cost = static_cast<double>((answer_bytes + limits::KiB - 1) / limits::KiB);
    of.largest = std::max(of.largest, cost);
    of.allowance.charge(cost - taken);
  }

 private:
  struct Owner {
    Allowance allowance;
    double largest = 0;
  };
  const std::size_t per_second_;
  RecentMap<std::string, Owner> owners_{limits::login_sources_max};
};

}  // namespace lightq::broker
