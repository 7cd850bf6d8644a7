/// An endpoint as the catalogue records it, so that it keeps its address after a restart. Layer: topic.
#pragma once

#include <cstdint>

#include <lightq/base/types.hpp>
#include <lightq/protocol/control.hpp>

#include "access/endpoint_role.hpp"

namespace lightq::broker {

struct EndpointRecord {
  std::uint64_t id = 0;  ///< unique in the broker, never used again
  TopicId topic;
  EndpointRole role = EndpointRole::produce;
  protocol::Transport transport = protocol::Transport::tcp;
  std::uint16_t port = 0;  ///< tcp only; an ipc endpoint's path is derived from its id
  /// The protocol of its peers. `socket` (raw consumers) only with the role `pull`.
  protocol::ConnectionType connection_type = protocol::ConnectionType::zmq;
  /// The user who joined it, as TicketHolder::user. 0: the administrator, an unauthenticated client of an
  /// open topic, or all producers.
  std::uint64_t user = 0;
};

}  // namespace lightq::broker
