/// Limits the number of plain endpoints for each user, and evicts unused ones. Layer: admission.
/// docs/protocol.md, "Shares".
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "admission/fair_share.hpp"
#include "admission/limit_counts.hpp"

namespace lightq::broker {

struct ReactorContext;

/// Counts the endpoints of all reactors together, and separately those over TCP, each of which needs a port.
/// A user who has half of the limit leaves the last eighth to others (FairShare). Before a join is refused,
/// an endpoint to which no peer has ever connected is evicted: the oldest of the user with most endpoints.
/// Thread: any.
class EndpointShares {
 public:
  using Clock = std::chrono::steady_clock;

  struct Bounds {
    std::size_t endpoints = std::numeric_limits<std::size_t>::max();
    std::size_t ports = std::numeric_limits<std::size_t>::max();
    std::chrono::milliseconds unused_time_min{2'000};  ///< the least age of an evicted endpoint
  };

  /// One endpoint.
  struct Place {
    std::uint64_t id = 0;  ///< the endpoint's id
    TopicId topic = {};
    bool is_tcp = true;
    std::uint64_t user =
        0;  ///< the user who made it; 0: the administrator or unknown, bound only by the whole limit
    ReactorContext* at = nullptr;  ///< the reactor that closes it
  };

  /// `refusals`: counts refusals; null: they are not counted. Lifetime: it outlives the shares.
  explicit EndpointShares(const Bounds& bounds, LimitCounts* refusals = nullptr)
      : bounds_(bounds), refusals_(refusals) {}

  /// Takes a place for one more endpoint. Returns the endpoints that were evicted for it, which the caller
  /// must close now. Errors: limit_reached.
  Result<std::vector<Place>> take(const Place& wanted, Clock::time_point now);
  /// Adds an existing endpoint, even beyond the limit. It is never evicted.
  void add(const Place& place);
  /// Called when a peer has connected: the endpoint is not evicted any more.
  void used(std::uint64_t id);
  /// Removes a closed endpoint. Does nothing if it was evicted before.
  void give_back(std::uint64_t id);

  [[nodiscard]] std::size_t taken() const;
  /// Returns true if a refusal by `limit` should be logged now: at most one in said_again_after.
  bool is_to_be_said(Limit limit, Clock::time_point now);

 private:
  enum class Pot { endpoints, ports };
  struct Held {
    Place place;
    Clock::time_point since;
  };
  struct Share {
    std::size_t endpoints = 0;
    std::size_t ports = 0;               // of these, over TCP
    std::set<std::uint64_t> unused_tcp;  // by id, the oldest first
    std::set<std::uint64_t> unused_ipc;
  };

  [[nodiscard]] std::size_t most(Pot pot) const {
    return pot == Pot::ports ? bounds_.ports : bounds_.endpoints;
  }
  [[nodiscard]] std::size_t taken(Pot pot) const { return pot == Pot::ports ? ports_ : held_.size(); }
  [[nodiscard]] std::size_t own(Pot pot, std::uint64_t user) const;
  [[nodiscard]] const Held* oldest_unused(Pot pot, const Share& share) const;
  [[nodiscard]] const Held* to_make_room(Pot pot, std::uint64_t user, bool only_own,
                                         Clock::time_point now) const;
  [[nodiscard]] Error refusal(Pot pot, FairShare::Verdict verdict, std::uint64_t user) const;
  void put(const Place& place, Clock::time_point since, bool unused);
  void remove(std::uint64_t id);

  const Bounds bounds_;
  LimitCounts* const refusals_;
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, Held> held_;     // by endpoint id; guarded by mutex_, as all below
  std::unordered_map<std::uint64_t, Share> shares_;  // by user; only users with endpoints
  std::size_t ports_ = 0;
  std::unordered_map<Limit, Clock::time_point> said_;
};

}  // namespace lightq::broker
