/// One change of the catalogue, and its JSON form in the catalogue's log. Layer: control.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include <lightq/base/result.hpp>

#include "broker/control/authenticator.hpp"
#include "broker/control/user_record.hpp"
#include "broker/delivery/topic_definition.hpp"
#include "broker/endpoint/client_keys.hpp"
#include "broker/endpoint/endpoint_record.hpp"

namespace lightq::broker {

/// A topic and who may join it.
struct TopicEntry {
  TopicDefinition definition;
  std::uint64_t credential_id = 0;  ///< 0: nobody but the admin, or anybody if the topic is open
};

/// The administrator's password, as the last start found it.
struct AdministratorRecord {
  std::uint32_t generation = 0;  ///< of his tickets and registrations; 0: nothing is known
  std::string argon2;
  friend bool operator==(const AdministratorRecord&, const AdministratorRecord&) = default;
};

struct TopicAdded {
  TopicEntry entry;
};
/// Takes the topic's endpoints with it.
struct TopicRemoved {
  TopicId topic;
  std::int64_t at_ms = 0;  ///< since 1970: when its ports were released
};
/// Nothing is handed out of it; or that is over.
struct TopicPaused {
  TopicId topic;
  bool paused = false;
};
/// Whose log the files of a topic of an earlier version were found to be.
struct TopicLog {
  TopicId topic;
  std::uint32_t log_id = 0;
};
struct CredentialAdded {
  CredentialRecord credential;
};
/// The topic's own user has another password: a credential of its own, which comes before.
struct TopicCredential {
  TopicId topic;
  std::uint64_t credential_id = 0;
};
/// A user is new, or has changed.
struct UserPut {
  UserRecord user;
};
struct UserRemoved {
  std::uint64_t id = 0;
};
/// An endpoint is new, or has another port.
struct EndpointPut {
  EndpointRecord endpoint;
};
struct EndpointRemoved {
  std::uint64_t id = 0;
  std::int64_t at_ms = 0;
};
/// A port that must rest for a while since `at_ms`.
struct PortReleased {
  std::uint16_t port = 0;
  std::int64_t at_ms = 0;
};
/// A client's key is registered, or renewed.
struct ClientKeyPut {
  ClientKeyRecord record;
};
struct ClientKeyRemoved {
  CurvePublicKey key{};
  Grant grant;
};
/// The key that tickets are made with has this id: what clients registered under another one has ended.
struct TicketKeyNamed {
  std::string key_id;
};
/// The administrator has another password, as its hash; what his joins registered has ended.
struct AdministratorPut {
  AdministratorRecord administrator;
};
/// The smallest ids never used yet; so that ids of what was deleted are not used again.
struct NextIds {
  std::uint64_t topic = 1;
  std::uint64_t credential = 1;  ///< of users, too
  std::uint64_t endpoint = 1;
};

/// A change that this version does not know, and that says it is optional: kept as it is, and of no effect.
struct UnknownChange {
  std::string text;
};

/// Applying one twice changes nothing more: a snapshot may repeat what a log already says.
using CatalogueChange =
    std::variant<TopicAdded, TopicRemoved, TopicPaused, TopicLog, TopicCredential, CredentialAdded, UserPut,
                 UserRemoved, EndpointPut, EndpointRemoved, PortReleased, NextIds, ClientKeyPut,
                 ClientKeyRemoved, TicketKeyNamed, AdministratorPut, UnknownChange>;

/// One line of JSON; docs/log_format.md, "Catalogue", lists the fields.
std::string encode(const CatalogueChange& change);
/// Errors: corrupt, naming what is wrong; foreign_format: sound, but of a newer version.
Result<CatalogueChange> decode_change(std::string_view text);

}  // namespace lightq::broker
