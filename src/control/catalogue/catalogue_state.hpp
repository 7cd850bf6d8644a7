/// The catalogue's contents in memory: the sum of its changes. Layer: control.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "control/catalogue/catalogue_record.hpp"

namespace lightq::broker {

/// Plain data without I/O. One thread.
class CatalogueState {
 public:
  using Topics = std::map<std::string, TopicEntry, std::less<>>;

  /// Applies a change. Ignores one that contradicts the state, for example an endpoint of an unknown topic.
  void apply(const CatalogueChange& change);

  [[nodiscard]] const TopicEntry* find(std::string_view name) const;
  [[nodiscard]] const TopicEntry* find(TopicId id) const;
  /// Returns the topic that has this log; null if there is none, or for 0. Scans all topics.
  [[nodiscard]] const TopicEntry* topic_of_log(std::uint32_t log_id) const;
  /// Returns the names of all topics with a known log id, by log id.
  [[nodiscard]] std::map<std::uint32_t, std::string> log_names() const;
  /// By name.
  [[nodiscard]] const Topics& topics() const { return topics_; }
  /// Returns null if there is none.
  [[nodiscard]] const CredentialRecord* credential(std::uint64_t id) const;
  /// Returns the newest credential of a user to which a topic refers; null if there is none.
  [[nodiscard]] const CredentialRecord* credential_of(const std::string& user_id) const;
  /// Returns true if tickets and keys that this holder received for the topic may still be valid. That is the
  /// case if the holder is a user with this password generation, the topic's own user, or no user (0).
  [[nodiscard]] bool is_current(const TicketHolder& holder, TopicId topic) const;
  /// Returns true if a topic refers to the credential.
  [[nodiscard]] bool in_use(std::uint64_t credential_id) const { return uses_.contains(credential_id); }
  using Users = std::map<std::string, UserRecord, std::less<>>;
  /// Returns null if there is none.
  [[nodiscard]] const UserRecord* user(std::string_view name) const;
  [[nodiscard]] const UserRecord* user_of_uid(std::uint32_t uid) const;
  [[nodiscard]] const UserRecord* user_of_id(std::uint64_t id) const;
  /// By name.
  [[nodiscard]] const Users& users() const { return users_; }
  [[nodiscard]] std::vector<EndpointRecord> endpoints_of(TopicId topic) const;
  [[nodiscard]] const EndpointRecord* endpoint(std::uint64_t id) const;
  [[nodiscard]] const NextIds& next_ids() const { return next_ids_; }
  /// Returns each released port with the time of its release, in milliseconds since 1970.
  [[nodiscard]] const std::map<std::uint16_t, std::int64_t>& released_ports() const { return released_; }
  void forget_ports_released_before(std::int64_t ms);
  /// Returns the keys that clients of the topic have registered (catalogue_client_keys.cpp).
  [[nodiscard]] std::vector<ClientKeyRecord> client_keys_of(TopicId topic) const;
  [[nodiscard]] std::size_t client_key_count(TopicId topic) const;
  [[nodiscard]] const ClientKeyRecord* client_key(const CurvePublicKey& key, const Grant& grant) const;
  void forget_client_keys_expired_before(std::int64_t ms);
  /// Returns the number of registered keys of all topics.
  [[nodiscard]] std::size_t client_key_count() const;
  /// Returns the id of the ticket key under which the client keys were registered; empty if not known.
  [[nodiscard]] const std::string& ticket_key_id() const { return ticket_key_id_; }
  [[nodiscard]] const AdministratorRecord& administrator() const { return administrator_; }

  /// Returns the ids of removed topics. Their files may still exist.
  [[nodiscard]] const std::set<std::uint64_t>& removed_topics() const { return removed_topics_; }
  void forget_removed_topic(TopicId topic) { removed_topics_.erase(topic.value); }
  /// Forgets the removed topics that are not in `with_files`.
  void keep_removed_topics(const std::set<std::uint64_t>& with_files);

  /// Forgets credentials to which no topic refers.
  void forget_unused_credentials();

  /// Returns changes that make an empty state equal to this one. Omits credentials to which no topic refers.
  [[nodiscard]] std::vector<CatalogueChange> snapshot() const;
  /// Returns the number of changes that `snapshot` would return, or slightly more.
  [[nodiscard]] std::uint64_t record_count() const;

 private:
  struct Applier;  // catalogue_state_changes.cpp

  Topics topics_;
  std::set<std::uint64_t> removed_topics_;
  std::unordered_map<std::uint64_t, std::string> topic_names_;        // by id
  std::map<std::uint64_t, CredentialRecord> credentials_;             // by id
  std::unordered_map<std::uint64_t, std::size_t> uses_;               // credential id → topics
  std::unordered_map<std::string, std::set<std::uint64_t>> by_user_;  // user → credentials in use
  Users users_;
  std::unordered_map<std::uint64_t, std::string> user_names_;  // by id
  std::unordered_map<std::uint32_t, std::string> users_by_uid_;
  std::map<std::uint64_t, std::map<std::uint64_t, EndpointRecord>> endpoints_;  // by topic, id
  std::unordered_map<std::uint64_t, std::uint64_t> endpoint_topics_;            // id → topic
  std::map<std::uint16_t, std::int64_t> released_;
  using ClientKeyId = std::pair<CurvePublicKey, EndpointRole>;
  std::map<std::uint64_t, std::map<ClientKeyId, ClientKeyRecord>> client_keys_;  // by topic
  std::string ticket_key_id_;
  AdministratorRecord administrator_;
  NextIds next_ids_;
  std::vector<std::string> unknown_;  // changes in the order in which each was made last
};

}  // namespace lightq::broker
