/// What the catalogue knows, in memory: the sum of its changes. Layer: control.
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

#include "broker/control/catalogue_record.hpp"

namespace lightq::broker {

/// Plain data without I/O. One thread.
class CatalogueState {
 public:
  using Topics = std::map<std::string, TopicEntry, std::less<>>;

  /// Changes that contradict what is known (an endpoint of an unknown topic, say) are ignored.
  void apply(const CatalogueChange& change);

  [[nodiscard]] const TopicEntry* find(std::string_view name) const;
  [[nodiscard]] const TopicEntry* find(TopicId id) const;
  /// Null if none is known to have this log, or for 0. Looks at all topics.
  [[nodiscard]] const TopicEntry* topic_of_log(std::uint32_t log_id) const;
  /// The names of all topics whose log is known, by that.
  [[nodiscard]] std::map<std::uint32_t, std::string> log_names() const;
  /// By name.
  [[nodiscard]] const Topics& topics() const { return topics_; }
  /// Null if there is none.
  [[nodiscard]] const CredentialRecord* credential(std::uint64_t id) const;
  /// The newest credential of a user that some topic refers to; null if there is none.
  [[nodiscard]] const CredentialRecord* credential_of(const std::string& user_id) const;
  /// Whether what this holder was given for the topic may still be good: the user is there, with this
  /// password, or it is the topic's own; of nobody it is.
  [[nodiscard]] bool is_current(const TicketHolder& holder, TopicId topic) const;
  /// Whether some topic refers to the credential.
  [[nodiscard]] bool in_use(std::uint64_t credential_id) const { return uses_.contains(credential_id); }
  using Users = std::map<std::string, UserRecord, std::less<>>;
  /// Null if there is none.
  [[nodiscard]] const UserRecord* user(std::string_view name) const;
  [[nodiscard]] const UserRecord* user_of_uid(std::uint32_t uid) const;
  [[nodiscard]] const UserRecord* user_of_id(std::uint64_t id) const;
  /// By name.
  [[nodiscard]] const Users& users() const { return users_; }
  [[nodiscard]] std::vector<EndpointRecord> endpoints_of(TopicId topic) const;
  [[nodiscard]] const EndpointRecord* endpoint(std::uint64_t id) const;
  [[nodiscard]] const NextIds& next_ids() const { return next_ids_; }
  /// Port and when it was released, in milliseconds since 1970.
  [[nodiscard]] const std::map<std::uint16_t, std::int64_t>& released_ports() const { return released_; }
  void forget_ports_released_before(std::int64_t ms);
  /// Those that clients of a topic have registered (catalogue_client_keys.cpp).
  [[nodiscard]] std::vector<ClientKeyRecord> client_keys_of(TopicId topic) const;
  [[nodiscard]] std::size_t client_key_count(TopicId topic) const;
  [[nodiscard]] const ClientKeyRecord* client_key(const CurvePublicKey& key, const Grant& grant) const;
  void forget_client_keys_expired_before(std::int64_t ms);
  /// Of all topics.
  [[nodiscard]] std::size_t client_key_count() const;
  /// Of the ticket key that they hang on; empty: none is known.
  [[nodiscard]] const std::string& ticket_key_id() const { return ticket_key_id_; }
  [[nodiscard]] const AdministratorRecord& administrator() const { return administrator_; }

  /// Topics that were removed, and whose files may still be there; by id.
  [[nodiscard]] const std::set<std::uint64_t>& removed_topics() const { return removed_topics_; }
  void forget_removed_topic(TopicId topic) { removed_topics_.erase(topic.value); }
  /// Forgets removed topics that are not among these.
  void keep_removed_topics(const std::set<std::uint64_t>& with_files);

  /// Credentials that no topic refers to.
  void forget_unused_credentials();

  /// Changes that make an empty state equal to this one; credentials that no topic refers to are left out.
  [[nodiscard]] std::vector<CatalogueChange> snapshot() const;
  /// How many they are, or a few more.
  [[nodiscard]] std::uint64_t record_count() const;

 private:
  void apply(const TopicAdded& change);
  void apply(const TopicRemoved& change);
  void apply(const TopicPaused& change);
  void apply(const TopicLog& change);
  void apply(const TopicCredential& change);
  void apply(const CredentialAdded& change);
  void apply(const UserPut& change);
  void apply(const UserRemoved& change);
  void apply(const EndpointPut& change);
  void apply(const EndpointRemoved& change);
  void apply(const PortReleased& change);
  void apply(const NextIds& change);
  void apply(const ClientKeyPut& change);
  void apply(const ClientKeyRemoved& change);
  void apply(const TicketKeyNamed& change);
  void apply(const AdministratorPut& change);
  void apply(const UnknownChange& change);
  void release_port(const EndpointRecord& endpoint, std::int64_t at_ms);
  void add_use(std::uint64_t credential_id);
  void drop_use(std::uint64_t credential_id);

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
  std::vector<std::string> unknown_;  // changes, in their order
};

}  // namespace lightq::broker
