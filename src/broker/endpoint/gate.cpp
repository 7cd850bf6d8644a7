/// Layer: endpoint.
#include "broker/endpoint/gate.hpp"

namespace lightq::broker {

std::string_view Gate::objection(std::string_view id, std::string_view secret) const {
  if (is_open()) return {};
  const auto verdict = tickets_->check(id, secret, (*now_)());
  if (!verdict.grant) return verdict.fault;
  if (verdict.grant->topic != grant_.topic) return "a ticket of another topic";
  if (verdict.grant->role != grant_.role) return "a ticket of another role or mode";
  return {};
}

Gate gate_of(const TicketKey& tickets, const WallClock& now, const EndpointSettings& settings,
             const TopicDefinition& topic, EndpointRole role) {
  if (topic.settings.open || settings.open_topics) return {};
  return {tickets, now, {topic.id, role}};
}

}  // namespace lightq::broker
