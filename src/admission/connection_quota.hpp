/// Counts the data connections of each user. Layer: admission.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include <lightq/base/result.hpp>

#include "admission/fair_share.hpp"
#include "admission/limit_counts.hpp"

namespace lightq::broker {

/// A limit on the data connections of each user, on all reactors together. A user who opens too many
/// connections is the only one whose connections are refused. Thread: any.
class ConnectionQuota {
 public:
  /// `per_user_max`: connections of one user at a time. `refusals`: counts refusals; null: they are not
  /// counted. Lifetime: it outlives the quota.
  explicit ConnectionQuota(std::size_t per_user_max, LimitCounts* refusals = nullptr)
      : per_user_max_(per_user_max), refusals_(refusals) {}

  /// Counts one more connection of the user, or of the unauthenticated clients of open topics. These have one
  /// quota together. Returns false, and counts a refusal, if the limit is reached. User 0, the administrator,
  /// has no limit.
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
  /// Returns the error limit_reached, and counts a refusal, if the user could not open one more connection
  /// now. Returns nothing if it could.
  std::optional<Error> objection(std::uint64_t user) {
    const std::lock_guard lock(mutex_);
    const auto found = connections_.find(user);
    const std::size_t own = found == connections_.end() ? 0 : found->second;
    if (own < per_user_max_) return std::nullopt;
    broker::count(refusals_, Limit::connections_per_user);
    return Error{ErrorCode::limit_reached, name_of_sharer(user) + " " + std::to_string(own) +
                                               " data connections, the maximum (connections_per_user)"};
  }
  /// Records that a connection ended for which take() returned true.
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
  std::unordered_map<std::uint64_t, std::size_t> connections_;  // guarded by mutex_; without entries of 0
};

}  // namespace lightq::broker
