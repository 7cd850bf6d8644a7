/// How many plain endpoints there are and whose they are, and which make room for others. Layer: endpoint.
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

#include "broker/delivery/fair_share.hpp"
#include "broker/endpoint/limit_counts.hpp"

namespace lightq::broker {

struct ReactorContext;

/// Of all reactors together, in all and of those over TCP, which have a port each: a user who has half leaves
/// the last eighth to others (FairShare). Before somebody is refused, an endpoint that nobody was ever
/// connected to makes room: the oldest of the user who has most. Any thread.
class EndpointShares {
 public:
  using Clock = std::chrono::steady_clock;

  struct Bounds {
    std::size_t endpoints = std::numeric_limits<std::size_t>::max();
    std::size_t ports = std::numeric_limits<std::size_t>::max();
    std::chrono::milliseconds unused_time_min{2'000};  ///< so old is one that makes room, at least
  };

  /// An endpoint.
  struct Place {
    std::uint64_t id = 0;  ///< of the endpoint
    TopicId topic = {};
    bool is_tcp = true;
    std::uint64_t user = 0;  ///< who made it; 0: the administrator, or nobody knows, held to the whole alone
    ReactorContext* at = nullptr;  ///< whose thread closes it
  };

  /// `refusals`: outlives it; null: they are not counted.
  explicit EndpointShares(const Bounds& bounds, LimitCounts* refusals = nullptr)
      : bounds_(bounds), refusals_(refusals) {}

  /// A place for one more endpoint, or why there is none: limit_reached. Answers those that have to be closed
  /// now, because they have lost theirs to it.
  Result<std::vector<Place>> take(const Place& wanted, Clock::time_point now);
  /// It is there, whether there is room or not, and does not make room for others.
  void add(const Place& place);
  /// Somebody is connected: it does not make room for others any more.
  void used(std::uint64_t id);
  /// It is closed. Nothing happens for one that has lost its place.
  void give_back(std::uint64_t id);

  [[nodiscard]] std::size_t taken() const;
  /// Whether a refusal of this kind is to be logged, or was a short while ago.
  bool is_to_be_said(Limit limit, Clock::time_point now);

 private:
  enum class Pot { endpoints, ports };
  struct Held {
    Place place;
    Clock::time_point since;
  };
  struct Share {
    std::size_t endpoints = 0;
    std::size_t ports = 0;               // of the endpoints
    std::set<std::uint64_t> unused_tcp;  // by id: the oldest first
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
  std::unordered_map<std::uint64_t, Held> held_;     // by id; guarded by mutex_, as all below
  std::unordered_map<std::uint64_t, Share> shares_;  // by user; those that have any
  std::size_t ports_ = 0;
  std::unordered_map<Limit, Clock::time_point> said_;
};

}  // namespace lightq::broker
