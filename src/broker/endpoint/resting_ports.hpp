/// Ports whose endpoints have closed, until everybody may have them again, and which of them may be had
/// before. Layer: endpoint. docs/protocol.md, "An endpoint's life".
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

#include "broker/endpoint/endpoint_record.hpp"

namespace lightq::broker {

/// What a port is listened on for. Topic 0: no topic in particular.
struct PortUse {
  TopicId topic = {};
  EndpointRole role = EndpointRole::produce;
  protocol::ConnectionType connection_type = protocol::ConnectionType::zmq;
  /// Who comes there has to show a ticket for it, so that clients of another endpoint do no harm.
  bool guarded = false;
};

/// One thread at a time.
class RestingPorts {
 public:
  using Clock = std::chrono::steady_clock;

  /// `had`: what for. `unused`: nobody was ever connected there. A port that rests already rests anew.
  void put(std::uint16_t port, const PortUse& had, bool unused, Clock::time_point until);
  void remove(std::uint16_t port);
  /// Those that have rested long enough rest no more.
  void forget_rested(Clock::time_point now);
  [[nodiscard]] bool contains(std::uint16_t port) const { return by_port_.contains(port); }
  [[nodiscard]] std::size_t size() const { return by_port_.size(); }

  /// The longest rested of those that the same topic had for the same.
  [[nodiscard]] std::optional<std::uint16_t> own(const PortUse& wanted) const;
  /// Which to take where one has to be taken: of the same topic and for the same; of the same topic and for
  /// another role (ZeroMQ's sockets of another kind are refused); and for who is guarded one that nobody was
  /// connected to, before all, and if need be anybody's. Of each the longest rested.
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
  std::map<Kind, ByTime> by_kind_;  // those that have any; of a topic the kinds lie together
};

}  // namespace lightq::broker
