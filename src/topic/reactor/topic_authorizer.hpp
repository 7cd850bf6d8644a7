/// The authorizer of a topic's endpoints. Layer: topic.
#pragma once

#include "access/connection_authorizer.hpp"
#include "delivery/topic_definition.hpp"
#include "topic/reactor_context.hpp"

namespace lightq::broker {

/// Returns the authorizer of a topic's endpoints for a role. It is open if the topic is open, or all topics
/// are. It encrypts if the broker encrypts.
ConnectionAuthorizer authorizer_of(const TicketKey& tickets, const WallClock& now,
                                   const EndpointSettings& settings, const AccessTable& access,
                                   const TopicDefinition& topic, EndpointRole role);

}  // namespace lightq::broker
