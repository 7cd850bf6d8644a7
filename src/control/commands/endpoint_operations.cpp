/// The operations that open and close endpoints. Layer: control.
#include "control/commands/endpoint_operations.hpp"

#include <utility>

namespace lightq::broker {

namespace {

/// Returns the reason why a topic cannot be joined this way; nothing if it can. `open`: plain clients of the
/// topic need no ticket.
std::optional<Error> objection_to_wish(const JoinWish& wish, bool open) {
  if (wish.delivery == protocol::Delivery::session) return std::nullopt;
  if (wish.connection_type == protocol::ConnectionType::zmq) return std::nullopt;
  if (wish.type != protocol::JoinType::pull) {
    return Error{ErrorCode::invalid_request, "type: must be pull if connection_type is socket"};
  }
  // A raw consumer cannot show a ticket, so its topic must be one that requires none.
  if (!open) {
    return Error{ErrorCode::not_supported,
                 "connection_type: socket needs a topic that was created with open, and this one was not"};
  }
  return std::nullopt;
}

ClientKeyRecord record_of(const CurvePublicKey& key, const JoinedEndpoint& joined,
                          const TicketHolder& holder) {
  ClientKeyRecord record;
  record.key = key;
  record.grant = {joined.record.topic, joined.record.role};
  record.expires_ms = joined.ticket ? joined.ticket->expires_ms : 0;
  record.holder = holder;
  return record;
}

}  // namespace

void EndpointOperations::join(const Asker& asker, const TopicName& topic, JoinWish wish,
                              const std::optional<CurvePublicKey>& client_key, const Done<Joined>& done) {
  const auto found = parts_.ready.find(topic);
  if (!found) return done(found.error());
  const TopicId id = found.value();
  wish.holder = asker.holder;
  const TopicEntry* const entry = parts_.catalogue.state().find(id);
  const bool open = entry->definition.settings.open || parts_.settings.open_topics;
  if (const auto refused = objection_to_wish(wish, open)) return done(*refused);
  const bool by_key = wants_client_key(wish, open);
  if (by_key) {
    const auto bad_key = objection_to(client_key, {id, role_of(wish.type)}, wish.holder);
    if (bad_key) return done(*bad_key);
  }
  parts_.data_plane.join(id, wish, [=, this](const Result<JoinedEndpoint>& joined) {
    if (!joined) return done(joined.error());
    if (wish.delivery == protocol::Delivery::session)  // its endpoint is shared and not recorded
      return done(as_joined(*joined));
    const auto key = by_key ? std::optional(record_of(*client_key, *joined, wish.holder)) : std::nullopt;
    keep_joined(*joined, key, done);
  });
}

/// Returns true if the client of this join identifies itself by its public key instead of a ticket.
bool EndpointOperations::wants_client_key(const JoinWish& wish, bool open) const {
  return !parts_.settings.server_key.empty() && !open && wish.delivery == protocol::Delivery::plain &&
         wish.connection_type == protocol::ConnectionType::zmq;
}

/// Returns the reason why the key cannot be registered. Public keys are not secret, so a user must not take
/// over a key that another user has registered.
std::optional<Error> EndpointOperations::objection_to(const std::optional<CurvePublicKey>& key,
                                                      const Grant& grant, const TicketHolder& holder) const {
  if (!key) {
    return Error{ErrorCode::invalid_request,
                 "client_key: missing; this broker encrypts, so a plain socket must register its public key"};
  }
  const auto known = parts_.settings.client_keys->check(*key, grant, parts_.settings.now());
  if (!known.fault.empty() || known.record.holder.user == holder.user) return std::nullopt;
  if (!parts_.catalogue.state().is_current(known.record.holder, grant.topic)) return std::nullopt;
  return Error{ErrorCode::invalid_request, "client_key: another user has registered it for this topic"};
}

/// Records a client's key. Returns the keys that were removed for it.
Result<std::vector<ClientKeyRecord>> EndpointOperations::put_client_key(const ClientKeyRecord& key) {
  auto put = parts_.catalogue.put_client_key(key);
  if (!put && put.error().code == ErrorCode::limit_reached)
    count(parts_.settings.limits_reached, Limit::client_keys_per_topic_max);
  return put;
}

/// Makes the record of a new endpoint durable before the client receives its address.
void EndpointOperations::keep_joined(const JoinedEndpoint& joined, const std::optional<ClientKeyRecord>& key,
                                     const Done<Joined>& done) {
  const auto give_up = [=, this](const Error& error) {
    if (!joined.is_new) return done(error);
    parts_.data_plane.leave(joined.record.topic, joined.bind_uri, {.manages = true, .produces = true},
                            [done, error](const Result<std::uint64_t>&) { done(error); });
  };
  std::vector<ClientKeyRecord> gone;
  if (key) {
    auto put = put_client_key(*key);
    if (!put) return give_up(put.error());
    gone = std::move(put).value();
  }
  if (joined.is_new) {
    if (const auto kept = parts_.catalogue.put_endpoint(joined.record); !kept) return give_up(kept.error());
  }
  parts_.commits.commit([=, this](const Result<void>& committed) {
    if (!committed) return give_up(committed.error());
    for (const ClientKeyRecord& each : gone) parts_.settings.client_keys->remove(each.key, each.grant);
    // The topic may have been deleted meanwhile.
    if (key && parts_.catalogue.state().find(joined.record.topic) != nullptr)
      parts_.settings.client_keys->put(*key);
    done(as_joined(joined));
  });
}

Joined EndpointOperations::as_joined(const JoinedEndpoint& joined) const {
  const bool over_zmq = joined.record.connection_type == protocol::ConnectionType::zmq;
  return {joined.bind_uri, joined.ticket, over_zmq ? parts_.settings.server_key : std::string(), joined.tls};
}

Leaver EndpointOperations::leaver_of(const Asker& asker, const TopicName& topic) const {
  // The administrator, a client of an open topic, or the topic's own user.
  if (asker.kind != Asker::Kind::user) return {.user = asker.holder.user, .manages = true, .produces = true};
  const UserRecord* const user = parts_.rights.user_of(asker);
  const auto may = [&](protocol::Right right) { return user != nullptr && user->may(right, topic.text()); };
  return {.user = asker.holder.user,
          .manages = may(protocol::Right::manage),
          .produces = may(protocol::Right::produce)};
}

void EndpointOperations::leave(const Asker& asker, const TopicName& topic, const std::string& bind_uri,
                               const Done<std::uint64_t>& done) {
  const auto id = parts_.ready.find(topic);
  if (!id) return done(id.error());
  parts_.data_plane.leave(id.value(), bind_uri, leaver_of(asker, topic),
                          [this, done](const Result<std::uint64_t>& handed) {
                            if (!handed) return done(handed.error());
                            // The data plane has reported the closed endpoint, so the catalogue has its
                            // removal. The client may keep its socket until it has received all messages that
                            // were sent to it. If a restart reopened the endpoint, they would never arrive.
                            parts_.commits.commit([done, sent = *handed](const Result<void>& committed) {
                              if (!committed) return done(committed.error());
                              done(sent);
                            });
                          });
}

}  // namespace lightq::broker
