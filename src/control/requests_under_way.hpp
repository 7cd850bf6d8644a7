/// Counts the requests that wait for their replies, by source and by user. Layer: control.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "admission/limit_counts.hpp"
#include "admission/quota.hpp"
#include "control/control_limits.hpp"

namespace lightq::broker {

/// One source may have a quarter of all requests under way. One user may have as many, from all its sources
/// together. The last eighth of a source's limit is reserved: a user with at least half of its own limit may
/// not use it. The user of a request is known once its credentials were verified. Thread: any. Each call is
/// one atomic step, but a Request belongs to the thread that handles it.
class RequestsUnderWay {
 public:
  explicit RequestsUnderWay(const ControlLimits& limits)
      : share_(limits.requests_waiting_per_source_max()),
        sources_({.total = limits.requests_waiting_max, .per_key = share_}),
        users_({.per_key = share_}) {}

  /// A request as it is counted.
  struct Request {
    std::string source;
    std::uint64_t user = 0;  ///< 0: not known yet, or the administrator
    bool counted = false;
  };

  /// Returns the limit that one more request of the source would exceed; nothing if it is permitted.
  [[nodiscard]] std::optional<Limit> objection_to(const std::string& source) const {
    const std::lock_guard lock(mutex_);
    switch (sources_.ask(source)) {
      case FairShare::Verdict::room: return std::nullopt;
      case FairShare::Verdict::own: return Limit::requests_waiting_per_source_max;
      default: return Limit::requests_waiting_max;
    }
  }
  /// Counts the request. Does nothing if it is counted already.
  void enter(Request& request) {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(request.counted, true)) count(request);
  }
  /// Stops counting the request. Does nothing if it is not counted.
  void leave(Request& request) {
    const std::lock_guard lock(mutex_);
    if (std::exchange(request.counted, false)) uncount(request);
  }
  /// Assigns the request to the user. Returns false if the user has too many requests, in total or from this
  /// source.
  [[nodiscard]] bool belongs_to(Request& request, std::uint64_t user) {
    const std::lock_guard lock(mutex_);
    if (user == request.user) return true;
    if (users_.ask(user) != FairShare::Verdict::room || is_for_others(request, user)) return false;
    if (request.counted) uncount(request);
    request.user = user;
    if (request.counted) count(request);
    return true;
  }
  [[nodiscard]] std::size_t of(const std::string& source) const {
    const std::lock_guard lock(mutex_);
    return sources_.of(source);
  }
  [[nodiscard]] std::size_t of_user(std::uint64_t user) const {
    const std::lock_guard lock(mutex_);
    return users_.of(user);
  }
  [[nodiscard]] std::size_t total() const {
    const std::lock_guard lock(mutex_);
    return sources_.total();
  }

 private:
  /// Returns true if the source's remaining places are reserved for other users. Differences to FairShare: at
  /// least one place is reserved; the user's requests from other sources count, too; and the source may
  /// exceed its limit, because a request that stood aside is counted again later.
  [[nodiscard]] bool is_for_others(const Request& request, std::uint64_t user) const {
    const std::size_t left = std::max<std::size_t>(1, share_ / 8);
    const std::size_t taken = sources_.of(request.source) - (request.counted ? 1 : 0);
    return user != 0 && share_ > 1 && taken + left >= share_ && users_.of(user) >= share_ / 2;
  }
  void count(const Request& request) {
    sources_.add(request.source);
    if (request.user != 0) users_.add(request.user);
  }
  void uncount(const Request& request) {
    sources_.give_back(request.source);
    if (request.user != 0) users_.give_back(request.user);
  }

  const std::size_t share_;
  mutable std::mutex mutex_;  // guards both: a request enters both in one step
  Quota<std::string> sources_;
  Quota<std::uint64_t> users_;
};

}  // namespace lightq::broker
