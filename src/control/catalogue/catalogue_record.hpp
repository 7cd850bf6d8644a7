/// The changes of the catalogue, and their JSON form in its log. Layer: control.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include <lightq/base/result.hpp>

#include "access/authenticator.hpp"
#include "access/client_keys.hpp"
#include "access/user_record.hpp"
#include "delivery/topic_definition.hpp"
#include "topic/endpoint_record.hpp"

namespace lightq::broker {

/// A topic, and the credential that may join it.
struct TopicEntry {
  TopicDefinition definition;
  /// 0: only the administrator may join, or any client if the topic is open.
  std::uint64_t credential_id = 0;
};

/// The administrator's password as the most recent start saw it.
struct AdministratorRecord {
  /// The generation of the administrator's tickets and registrations; 0: not known.
  std::uint32_t generation = 0;
  std::string argon2;
  friend bool operator==(const AdministratorRecord&, const AdministratorRecord&) = default;
};

struct TopicAdded {
  TopicEntry entry;
};
/// Removes the topic and all its endpoints.
struct TopicRemoved {
  TopicId topic;
  std::int64_t at_ms = 0;  ///< milliseconds since 1970 at which its ports were released
};
/// Pauses a topic, or resumes it. A paused topic delivers no messages.
struct TopicPaused {
  TopicId topic;
  bool paused = false;
};
/// Sets the time to live of a topic's messages.
struct TopicTtl {
  TopicId topic;
  std::uint64_t message_ttl_ms = 0;  ///< 0: none
};
/// Changes the settings of a topic that are given.
struct TopicChanged {
  TopicId topic;
  protocol::TopicChange change;
};
/// Gives a group settings, or replaces them. The group need not exist.
struct GroupPut {
  TopicId topic;
  std::string group;
  GroupSetup setup;
};
/// The group has the default settings.
struct GroupRemoved {
  TopicId topic;
  std::string group;
};
/// The topic has this recurring schedule. The record replaces the one of its name.
struct SchedulePut {
  TopicId topic;
  std::string name;
  RecurringSchedule schedule;
};
struct ScheduleRemoved {
  TopicId topic;
  std::string name;
};
/// The log id found in the files of a topic of an earlier version.
struct TopicLog {
  TopicId topic;
  std::uint32_t log_id = 0;
};
struct CredentialAdded {
  CredentialRecord credential;
};
/// The topic's own user has a new password, in a new credential that an earlier record adds.
struct TopicCredential {
  TopicId topic;
  std::uint64_t credential_id = 0;
};
/// Adds a user or replaces its record.
struct UserPut {
  UserRecord user;
};
struct UserRemoved {
  std::uint64_t id = 0;
};
/// Adds an endpoint or replaces its record.
struct EndpointPut {
  EndpointRecord endpoint;
};
struct EndpointRemoved {
  std::uint64_t id = 0;
  std::int64_t at_ms = 0;
};
/// A port that was released at `at_ms` and must not be bound again for a while.
struct PortReleased {
  std::uint16_t port = 0;
  std::int64_t at_ms = 0;
};
/// Registers or renews a client's key.
struct ClientKeyPut {
  ClientKeyRecord record;
};
struct ClientKeyRemoved {
  CurvePublicKey key{};
  Grant grant;
};
/// The id of the ticket key. Keys that clients registered under another ticket key end.
struct TicketKeyNamed {
  std::string key_id;
};
/// The administrator's new password as a hash. Keys that the administrator's joins registered end.
struct AdministratorPut {
  AdministratorRecord administrator;
};
/// The smallest ids that were never used. They ensure that the ids of deleted objects are not used again.
struct NextIds {
  std::uint64_t topic = 1;
  std::uint64_t credential = 1;  ///< users draw from it, too
  std::uint64_t endpoint = 1;
};

/// A change that this version does not know and that is marked as optional. It is kept as it is and has no
/// effect.
struct UnknownChange {
  std::string text;
};

/// Applying a change twice has the effect of applying it once: a snapshot may repeat a change that a log
/// contains.
using CatalogueChange =
    std::variant<TopicAdded, TopicRemoved, TopicPaused, TopicLog, TopicCredential, CredentialAdded, UserPut,
                 UserRemoved, EndpointPut, EndpointRemoved, PortReleased, NextIds, ClientKeyPut,
                 ClientKeyRemoved, TicketKeyNamed, AdministratorPut, GroupPut, GroupRemoved, SchedulePut,
                 ScheduleRemoved, TopicTtl, TopicChanged, UnknownChange>;

/// Returns the change as one line of JSON; docs/log_format.md, "Catalogue", lists the fields.
std::string encode(const CatalogueChange& change);
/// Parses a change. Errors: corrupt, with the fault in the message; foreign_format: valid, but of a newer
/// version.
Result<CatalogueChange> decode_change(std::string_view text);

}  // namespace lightq::broker
