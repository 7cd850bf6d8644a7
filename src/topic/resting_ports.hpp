/// The quarantined ports: ports of closed endpoints that only certain new endpoints may use. Layer: topic.
/// docs/protocol.md, "An endpoint's life".
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <lightq/base/types.hpp>

#include "topic/endpoint_record.hpp"

namespace lightq::broker {

/// The use of a port by an endpoint. Topic 0: no topic in particular.
struct PortUse {
  TopicId topic = {};
  EndpointRole role = EndpointRole::produce;
  protocol::ConnectionType connection_type = protocol::ConnectionType::zmq;
  /// A client has to present a ticket for the endpoint. So clients of an earlier endpoint at the port do no
  /// harm.
  bool guarded = false;
};

/// Records which ports are quarantined, until when, and their former use. Thread: one at a time.
class RestingPorts {
 public:
  using Clock = std::chrono::steady_clock;

  /// Quarantines the port until `until`, also if it is quarantined already. `had`: its former use. `unused`:
  /// no client was ever connected to it.
  void put(std::uint16_t port, const PortUse& had, bool unused, Clock::time_point until);
  /// Ends the port's quarantine. Does nothing if there is none.
  void remove(std::uint16_t port);
  /// Ends the quarantines that last until `now` or an earlier time.
  void forget_rested(Clock::time_point now);
  [[nodiscard]] bool contains(std::uint16_t port) const { return by_port_.contains(port); }
  [[nodiscard]] std::size_t size() const { return by_port_.size(); }

  /// Returns a port that the same topic had, with the same role and connection type. If there are several,
  /// returns the one that has been quarantined longest.
  [[nodiscard]] std::optional<std::uint16_t> own(const PortUse& wanted) const;
  /// Returns the quarantined port that suits an endpoint with the use `wanted` best, or nothing if none does.
  /// The order is:
  /// 1. for a guarded endpoint, a port that no client was ever connected to;
  /// 2. a port that the same topic had, with the same role and connection type;
  /// 3. a port that the same topic had, with the same connection type and another role;
  /// 4. for a guarded endpoint, any port.
  ///
  /// Within each step, returns the port that has been quarantined longest. Step 3 does no harm: ZeroMQ
  /// clients of another role are refused, because their socket types do not fit.
  [[nodiscard]] std::optional<std::uint16_t> best(const PortUse& wanted) const;

 private:
  using ByTime = std::set<std::pair<Clock::time_point, std::uint16_t>>;
  using Kind = std::tuple<std::uint64_t, protocol::ConnectionType, EndpointRole>;
  struct Rest {
    Kind kind;
    bool unused = false;
    Clock::time_point until;
  };

  [[nodiscard]] std::optional<std::uint16_t> of_another_role(const PortUse& wanted) const;
  static Kind kind_of(const PortUse& use) { return {use.topic.value, use.connection_type, use.role}; }

  std::map<std::uint16_t, Rest> by_port_;
  ByTime all_;
  ByTime unused_;
  std::map<Kind, ByTime> by_kind_;  // no empty sets; the kinds of a topic are adjacent
};

}  // namespace lightq::broker
