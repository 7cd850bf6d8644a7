/// Checks the tickets and keys of ZeroMQ peers. Layer: access.
#include "access/connection_authorizer.hpp"

namespace lightq::broker {

std::string_view ConnectionAuthorizer::objection(std::string_view id, std::string_view secret,
                                                 TicketHolder& holder) const {
  if (tickets_ == nullptr) return {};
  TicketHolder shown;
  const std::string_view fault = fault_of_ticket(id, secret, shown);
  if (fault.empty()) return admit(shown, holder);
  return is_open() ? objection_to_anonymous(holder) : fault;
}

std::string_view ConnectionAuthorizer::fault_of_ticket(std::string_view id, std::string_view secret,
                                                       TicketHolder& shown) const {
  const auto verdict = tickets_->check(id, secret, (*now_)());
  if (!verdict.grant) return verdict.fault;
  if (verdict.grant->topic != grant_.topic) return "a ticket of another topic";
  if (verdict.grant->role != grant_.role) return "a ticket of another role or mode";
  if (!knows(verdict.holder)) return "a ticket of a user without the right (any more)";
  shown = verdict.holder;
  return {};
}

std::string_view ConnectionAuthorizer::objection_to_anonymous(TicketHolder& holder) const {
  return tickets_ == nullptr ? std::string_view() : admit({}, holder);
}

/// Admits a peer after all other checks, and counts it as a connection of its user.
std::string_view ConnectionAuthorizer::admit(const TicketHolder& shown, TicketHolder& holder) const {
  const TicketHolder counted = is_open() ? TicketHolder{shown.sharer(), shown.generation} : shown;
  if (quota_ != nullptr && !quota_->take(counted.user))
    return "more connections than a user may have (connections_per_user)";
  holder = counted;
  return {};
}

bool ConnectionAuthorizer::permits(const TicketHolder& holder) const {
  return is_open() || knows(holder);
}

bool ConnectionAuthorizer::knows(const TicketHolder& holder) const {
  if (access_ == nullptr) return holder == TicketHolder{};
  return access_->permits(holder, grant_, *topic_, GroupScope::of_plain(grant_.role));
}

std::string_view ConnectionAuthorizer::key_objection(const CurvePublicKey& key, TicketHolder& holder) const {
  if (allowed_ != nullptr && !allowed_->contains(key)) return "a key that allowed_client_keys does not list";
  if (tickets_ == nullptr) return {};
  TicketHolder shown;
  const std::string_view fault = fault_of_key(key, shown);
  if (fault.empty()) return admit(shown, holder);
  return is_open() ? objection_to_anonymous(holder) : fault;
}

std::string_view ConnectionAuthorizer::fault_of_key(const CurvePublicKey& key, TicketHolder& shown) const {
  if (keys_ == nullptr) return "a key that is not registered";
  const auto verdict = keys_->check(key, grant_, (*now_)());
  if (!verdict.fault.empty()) return verdict.fault;
  if (!knows(verdict.record.holder)) return "a key of a user without the right (any more)";
  shown = verdict.record.holder;
  return {};
}

}  // namespace lightq::broker
