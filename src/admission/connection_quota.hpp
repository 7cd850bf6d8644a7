/// Counts the data connections of each user. Layer: admission.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include <lightq/base/result.hpp>

#include "admission/limit_counts.hpp"
#include "admission/quota.hpp"

namespace lightq::broker {

/// A limit on the data connections of each user, on all reactors together. A user who opens too many
/// connections is the only one whose connections are refused. Thread: any.
class ConnectionQuota {
 public:
  /// `per_user_max`: connections of one user at a time. `refusals`: counts refusals; null: they are not
  /// counted. Lifetime: it outlives the quota.
  explicit ConnectionQuota(std::size_t per_user_max, LimitCounts* refusals = nullptr)
      : connections_({.per_key = per_user_max}), refusals_(refusals) {}

  /// Counts one more connection of the user, or of the unauthenticated clients of open topics. These have one
  /// quota together. Returns false, and counts a refusal, if the limit is reached. User 0, the administrator,
  /// has no limit.
  bool take(std::uint64_t user) {
    if (user == 0 || connections_.take(user) == FairShare::Verdict::room) return true;
    count(refusals_, Limit::connections_per_user);
    return false;
  }
  /// Returns the error limit_reached, and counts a refusal, if the user could not open one more connection
  /// now. Returns nothing if it could.
  std::optional<Error> objection(std::uint64_t user) {
    const std::size_t own = connections_.of(user);
    if (own < per_user_max()) return std::nullopt;
    count(refusals_, Limit::connections_per_user);
    return Error{ErrorCode::limit_reached, name_of_sharer(user) + " " + std::to_string(own) +
                                               " data connections, the maximum (connections_per_user)"};
  }
  /// Records that a connection ended for which take() returned true.
  void give_back(std::uint64_t user) {
    if (user != 0) connections_.give_back(user);
  }
  [[nodiscard]] std::size_t per_user_max() const { return connections_.bounds().per_key; }
  /// Sets another limit. Connections beyond it stay.
  void set_per_user_max(std::size_t connections) { connections_.set_bounds({.per_key = connections}); }

 private:
  Quota<std::uint64_t, std::mutex> connections_;  // one for the process: every reactor's, and each listener's
  LimitCounts* const refusals_;
};

}  // namespace lightq::broker
