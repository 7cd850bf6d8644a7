/// Builds the authorizer of a topic's endpoints from the topic's definition and the broker's settings. Layer:
/// topic.
#include "topic/reactor/topic_authorizer.hpp"

namespace lightq::broker {

ConnectionAuthorizer authorizer_of(const TicketKey& tickets, const WallClock& now,
                                   const EndpointSettings& settings, const AccessTable& access,
                                   const TopicDefinition& topic, EndpointRole role) {
  ConnectionAuthorizer authorizer(tickets, now, {topic.id, role}, access, topic.name);
  if (topic.settings.open || settings.open_topics) authorizer.open();
  if (settings.curve_key != nullptr) authorizer.encrypt(*settings.curve_key, settings.client_keys);
  if (settings.user_connections != nullptr) authorizer.count(*settings.user_connections);
  return authorizer;
}

}  // namespace lightq::broker
