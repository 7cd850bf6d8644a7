/// How much of answers somebody may have a second. Layer: control.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include <lightq/base/limits.hpp>

#include "broker/control/recent_map.hpp"
#include "broker/control/request_rate.hpp"

namespace lightq::broker {

/// An answer costs about as much by the KiB as a request does by itself, so each begun KiB counts as one, of
/// as many a second as there may be requests. What an answer will cost shows when it is there: so much is
/// taken for it before as the largest so far, but never more than an eighth of a second's, and what is owed
/// then has to be made up for. One thread; no clock of its own.
class AnswerRate {
 public:
  using Time = Allowance::Time;

  explicit AnswerRate(std::size_t per_second) : per_second_(per_second) {}

  /// What was taken for an answer, to be settled when it is there. Nothing: the owner has had too much.
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
