/// Requests that wait for their answers, and whose they are. Layer: control.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "broker/control/control_limits.hpp"
#include "broker/endpoint/limit_counts.hpp"

namespace lightq::broker {

/// Of what there may be at once one source has a quarter, and so has one user, whatever sources he asks from;
/// but who has half as many leaves the last eighth of a source's to others who ask from there. Whose a
/// request is shows when its credentials were right. One thread.
class RequestsUnderWay {
 public:
  explicit RequestsUnderWay(const ControlLimits& limits)
      : most_(limits.requests_waiting_max), share_(limits.requests_waiting_per_source_max()) {}

  /// One of them, as it counts.
  struct Request {
    std::string source;
    std::uint64_t user = 0;  ///< 0: nobody's yet, or the administrator's
    bool counted = false;
  };

  /// What one more of the source would go beyond.
  [[nodiscard]] std::optional<Limit> objection_to(const std::string& source) const {
    if (of(source) >= share_) return Limit::requests_waiting_per_source_max;
    if (total_ >= most_) return Limit::requests_waiting_max;
    return std::nullopt;
  }
  /// It counts from now on; nothing happens the second time.
  void enter(Request& request) {
    if (std::exchange(request.counted, true)) return;
    ++total_;
    ++sources_[request.source];
    if (request.user != 0) ++users_[request.user];
  }
  /// It does not; likewise.
  void leave(Request& request) {
    if (!std::exchange(request.counted, false)) return;
    --total_;
    one_less(sources_, request.source);
    if (request.user != 0) one_less(users_, request.user);
  }
  /// It is the user's. False: he has as many as he may have, or as he may have from there.
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
  /// What FairShare says, but of few one is left, too; and also of a source that has more than its part, for
  /// what stood aside comes back.
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
  std::unordered_map<std::string, std::size_t> sources_;  // those that have any
  std::unordered_map<std::uint64_t, std::size_t> users_;  // likewise
};

}  // namespace lightq::broker
