/// Limits the number of plain endpoints for each user, and evicts unused ones. Layer: admission.
/// docs/protocol.md, "Shares".
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "admission/eviction_queue.hpp"
#include "admission/fair_share.hpp"
#include "admission/limit_counts.hpp"

namespace lightq::broker {

struct ReactorContext;

/// Counts the endpoints of all reactors together, and separately those over TCP, each of which needs a port.
/// A user who has half of the limit leaves the last eighth to others (FairShare). Before a join is refused,
/// an endpoint to which no peer has ever connected is evicted: the oldest of the user with most endpoints.
/// Thread: any. One object serves all reactors; an evicted endpoint is closed by its own reactor.
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
      : unused_time_min_(bounds.unused_time_min),
        refusals_(refusals),
        all_{bounds.endpoints, Limit::endpoints_max, "endpoints (endpoints_max)"},
        ports_{bounds.ports, Limit::ports, "TCP ports for endpoints"} {}

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
  struct Held {
    Place place;
    Clock::time_point since;
  };
  /// The endpoints that share one limit, by user. Those that were used are never evicted.
  struct Pot {
    std::size_t most;
    Limit limit;
    std::string_view name;
    EvictionQueue<std::uint64_t> endpoints = {};
  };

  [[nodiscard]] const Held* to_make_room(const Pot& pot, std::uint64_t user, bool only_own,
                                         Clock::time_point now) const;
  [[nodiscard]] static Error refusal(const Pot& pot, FairShare::Verdict verdict, std::uint64_t user);
  void put(const Place& place, Clock::time_point since, Eviction when);
  void remove(std::uint64_t id);

  const std::chrono::milliseconds unused_time_min_;
  LimitCounts* const refusals_;
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, Held> held_;  // by endpoint id; guarded by mutex_, as all below
  Pot all_;
  Pot ports_;  // of these, over TCP
  std::unordered_map<Limit, Clock::time_point> said_;
};

}  // namespace lightq::broker
