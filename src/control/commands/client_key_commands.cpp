/// The part of a join that concerns encryption and client keys. Layer: control.
#include <utility>

#include "control/commands/command_handler.hpp"

namespace lightq::broker {

/// Returns true if the client of this join identifies itself by its public key instead of a ticket.
bool CommandHandler::wants_client_key(const JoinWish& wish, bool open) const {
  return !settings_.server_key.empty() && !open && wish.delivery == protocol::Delivery::plain &&
         wish.connection_type == protocol::ConnectionType::zmq;
}

/// Returns the reason why the key cannot be registered. Public keys are not secret, so a user must not take
/// over a key that another user has registered.
std::optional<Error> CommandHandler::objection_to(const std::optional<CurvePublicKey>& key,
                                                  const Grant& grant, const TicketHolder& holder) const {
  if (!key) {
    return Error{ErrorCode::invalid_request,
                 "client_key: missing; this broker encrypts, so a plain socket must register its public key"};
  }
  const auto known = settings_.client_keys->check(*key, grant, settings_.now());
  if (!known.fault.empty() || known.record.holder.user == holder.user) return std::nullopt;
  if (!catalogue_.state().is_current(known.record.holder, grant.topic)) return std::nullopt;
  return Error{ErrorCode::invalid_request, "client_key: another user has registered it for this topic"};
}

ClientKeyRecord CommandHandler::record_of(const CurvePublicKey& key, const JoinedEndpoint& joined,
                                          const TicketHolder& holder) {
  ClientKeyRecord record;
  record.key = key;
  record.grant = {joined.record.topic, joined.record.role};
  record.expires_ms = joined.ticket ? joined.ticket->expires_ms : 0;
  record.holder = holder;
  return record;
}

protocol::JoinReply CommandHandler::join_reply(const TopicName& topic, const JoinedEndpoint& joined) const {
  const bool over_zmq = joined.record.connection_type == protocol::ConnectionType::zmq;
  return {topic.text(), joined.bind_uri, joined.ticket, over_zmq ? settings_.server_key : std::string(),
          joined.tls};
}

}  // namespace lightq::broker
