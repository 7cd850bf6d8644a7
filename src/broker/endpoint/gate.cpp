/// Layer: endpoint.
#include "broker/endpoint/gate.hpp"

namespace lightq::broker {

std::string_view Gate::objection(std::string_view id, std::string_view secret, TicketHolder& holder) const {
  if (is_open()) return {};
  const auto verdict = tickets_->check(id, secret, (*now_)());
  if (!verdict.grant) return verdict.fault;
  if (verdict.grant->topic != grant_.topic) return "a ticket of another topic";
  if (verdict.grant->role != grant_.role) return "a ticket of another role or mode";
  if (!permits(verdict.holder)) return "a ticket of somebody who may not (any more)";
  return admit(verdict.holder, holder);
}

/// The last question: who is let in counts.
std::string_view Gate::admit(const TicketHolder& shown, TicketHolder& holder) const {
  if (quota_ != nullptr && !quota_->take(shown.user)) return "more connections than its user may have";
  holder = shown;
  return {};
}

bool Gate::permits(const TicketHolder& holder) const {
  if (is_open()) return true;
  if (access_ == nullptr) return holder == TicketHolder{};
  return access_->permits(holder, grant_, *topic_);
}

std::string_view Gate::key_objection(const CurvePublicKey& key, TicketHolder& holder) const {
  if (allowed_ != nullptr && !allowed_->contains(key)) return "a key that is not among the allowed ones";
  if (is_open()) return {};
  if (keys_ == nullptr) return "a key that nobody has registered";
  const auto verdict = keys_->check(key, grant_, (*now_)());
  if (!verdict.fault.empty()) return verdict.fault;
  if (!permits(verdict.record.holder)) return "a key of a user who may not do that (any more)";
  return admit(verdict.record.holder, holder);
}

Gate gate_of(const TicketKey& tickets, const WallClock& now, const EndpointSettings& settings,
             const AccessTable& access, const TopicDefinition& topic, EndpointRole role) {
  const bool open = topic.settings.open || settings.open_topics;
  Gate gate = open ? Gate() : Gate(tickets, now, {topic.id, role}, access, topic.name);
  if (settings.curve_key != nullptr) gate.encrypt(*settings.curve_key, settings.client_keys);
  if (settings.user_connections != nullptr) gate.count(*settings.user_connections);
  return gate;
}

}  // namespace lightq::broker
