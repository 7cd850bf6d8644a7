/// Counts the requests that wait for their replies, by source and by user. Layer: control.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "admission/limit_counts.hpp"
#include "control/control_limits.hpp"

namespace lightq::broker {

/// One source may have a quarter of all requests under way. One user may have as many, from all its sources
/// together. The last eighth of a source's limit is reserved: a user with at least half of its own limit may
/// not use it. The user of a request is known once its credentials were verified. One thread.
class RequestsUnderWay {
 public:
  explicit RequestsUnderWay(const ControlLimits& limits)
      : most_(limits.requests_waiting_max), share_(limits.requests_waiting_per_source_max()) {}

  /// A request as it is counted.
  struct Request {
    std::string source;
    std::uint64_t user = 0;  ///< 0: not known yet, or the administrator
    bool counted = false;
  };

  /// Returns the limit that one more request of the source would exceed; nothing if it is permitted.
  [[nodiscard]] std::optional<Limit> objection_to(const std::string& source) const {
    if (of(source) >= share_) return Limit::requests_waiting_per_source_max;
    if (total_ >= most_) return Limit::requests_waiting_max;
    return std::nullopt;
  }
  /// Counts the request. Does nothing if it is counted already.
  void enter(Request& request) {
    if (std::exchange(request.counted, true)) return;
    ++total_;
    ++sources_[request.source];
    if (request.user != 0) ++users_[request.user];
  }
  /// Stops counting the request. Does nothing if it is not counted.
  void leave(Request& request) {
    if (!std::exchange(request.counted, false)) return;
    --total_;
    one_less(sources_, request.source);
    if (request.user != 0) one_less(users_, request.user);
  }
  /// Assigns the request to the user. Returns false if the user has too many requests, in total or from this
  /// source.
  [[nodiscard]] bool belongs_to(Request& request, std::uint64_t user) {
    if (user == request.user) return true;
    if (user != 0 && (of_user(user) >= share_ || is_for_others(request, user))) return false;
    const bool counted = request.counted;
    leave(request);
    request.user = user;
    if (counted) enter(request);
    return true;
  }
  [[nodiscard]] std::size_t of(const std::string& source) const { return count_in(sources_, source); }
  [[nodiscard]] std::size_t of_user(std::uint64_t user) const { return count_in(users_, user); }
  [[nodiscard]] std::size_t total() const { return total_; }

 private:
  /// Returns true if the source's remaining places are reserved for other users. Two differences to
  /// FairShare: at least one place is reserved, and the source may already exceed its limit, because a
  /// request that stood aside is counted again later.
  [[nodiscard]] bool is_for_others(const Request& request, std::uint64_t user) const {
    const std::size_t left = std::max<std::size_t>(1, share_ / 8);
    const std::size_t taken = of(request.source) - (request.counted ? 1 : 0);
    return share_ > 1 && taken + left >= share_ && of_user(user) >= share_ / 2;
  }
  template <typename Counts>
  static std::size_t count_in(const Counts& counts, const typename Counts::key_type& key) {
    const auto found = counts.find(key);
    return found == counts.end() ? 0 : found->second;
  }
  template <typename Counts>
  static void one_less(Counts& counts, const typename Counts::key_type& key) {
    if (const auto found = counts.find(key); --found->second == 0) counts.erase(found);
  }

  const std::size_t most_;
  const std::size_t share_;
  std::size_t total_ = 0;
  std::unordered_map<std::string, std::size_t> sources_;  // sources with requests
  std::unordered_map<std::uint64_t, std::size_t> users_;  // users with requests
};

}  // namespace lightq::broker
