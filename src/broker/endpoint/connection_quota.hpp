/// How many data connections each user has. Layer: endpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include <lightq/base/result.hpp>

#include "broker/delivery/fair_share.hpp"
#include "broker/endpoint/limit_counts.hpp"

namespace lightq::broker {

/// Of all reactors together: who fills the broker with connections keeps only himself out. Any thread.
class ConnectionQuota {
 public:
  /// `per_user_max`: of one user, at once.
  /// `refusals`: outlives it; null: they are not counted.
  explicit ConnectionQuota(std::size_t per_user_max, LimitCounts* refusals = nullptr)
      : per_user_max_(per_user_max), refusals_(refusals) {}

  /// Whether the user, or strangers of open topics (FairShare::strangers), may have one more; then they
  /// have. User 0, the administrator, has no bound.
  bool take(std::uint64_t user) {
    if (user == 0) return true;
    const std::lock_guard lock(mutex_);
    auto& count = connections_[user];
    if (count >= per_user_max_) {
      broker::count(refusals_, Limit::connections_per_user);
      return false;
    }
    ++count;
    return true;
  }
  /// Why the user could not have one more now: limit_reached, and counted. Nothing: it could.
  std::optional<Error> objection(std::uint64_t user) {
    const std::lock_guard lock(mutex_);
    const auto found = connections_.find(user);
    const std::size_t own = found == connections_.end() ? 0 : found->second;
    if (own < per_user_max_) return std::nullopt;
    broker::count(refusals_, Limit::connections_per_user);
    return Error{ErrorCode::limit_reached,
                 name_of_sharer(user) + " " + std::to_string(own) +
                     " data connections, the most there may be (connections_per_user)"};
  }
  /// One that was taken has ended.
  void give_back(std::uint64_t user) {
    if (user == 0) return;
    const std::lock_guard lock(mutex_);
    const auto found = connections_.find(user);
    if (found != connections_.end() && --found->second == 0) connections_.erase(found);
  }
  [[nodiscard]] std::size_t per_user_max() const { return per_user_max_; }

 private:
  const std::size_t per_user_max_;
  LimitCounts* const refusals_;
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::size_t> connections_;  // guarded by mutex_; none are left out
};

}  // namespace lightq::broker
