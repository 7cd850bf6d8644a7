/// How many data connections each user has. Layer: endpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "broker/endpoint/limit_counts.hpp"

namespace lightq::broker {

/// Of all reactors together: who fills the broker with connections keeps only himself out. Any thread.
class ConnectionQuota {
 public:
  /// `per_user_max`: of one user, at once.
  /// `refusals`: outlives it; null: they are not counted.
  explicit ConnectionQuota(std::size_t per_user_max, LimitCounts* refusals = nullptr)
      : per_user_max_(per_user_max), refusals_(refusals) {}

  /// Whether the user may have one more; then it has. User 0, which is nobody in particular (the
  /// administrator, open topics), has no bound.
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
