/// The purpose of an endpoint, for which a ticket is issued. Layer: access.
#pragma once

#include <lightq/protocol/control.hpp>

namespace lightq::broker {

/// The purpose of an endpoint. The wire words `pub` and `push` of `type` stand for `produce`.
enum class EndpointRole { produce, pull, sub };

inline EndpointRole role_of(protocol::JoinType type) {
  if (type == protocol::JoinType::pull) return EndpointRole::pull;
  return type == protocol::JoinType::sub ? EndpointRole::sub : EndpointRole::produce;
}

}  // namespace lightq::broker
