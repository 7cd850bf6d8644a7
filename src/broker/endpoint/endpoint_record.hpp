/// An endpoint as the catalogue remembers it, so that it keeps its address over a restart. Layer:
/// endpoint.
#pragma once

#include <cstdint>
#include <string>

#include <lightq/base/types.hpp>
#include <lightq/protocol/control.hpp>

namespace lightq::broker {

/// What an endpoint is for. Wire words of `type`: pub and push open `produce`.
enum class EndpointRole { produce, pull, sub };

inline EndpointRole role_of(protocol::JoinType type) {
  if (type == protocol::JoinType::pull) return EndpointRole::pull;
  return type == protocol::JoinType::sub ? EndpointRole::sub : EndpointRole::produce;
}

struct EndpointRecord {
  std::uint64_t id = 0;  ///< unique in the broker, never used again
  TopicId topic;
  EndpointRole role = EndpointRole::produce;
  protocol::Transport transport = protocol::Transport::tcp;
  std::uint16_t port = 0;  ///< tcp; an ipc endpoint's path follows from its id
  /// What its peers speak; `socket` only of the role `pull`: raw consumers.
  protocol::ConnectionType connection_type = protocol::ConnectionType::zmq;
  /// Who joined it, as TicketHolder::user; 0: the administrator, somebody on an open topic, or all producers.
  std::uint64_t user = 0;
};

}  // namespace lightq::broker
