/// Applies changes to the catalogue's contents in memory. Layer: control.
#include <algorithm>
#include <utility>
#include <variant>

#include "control/catalogue/catalogue_state.hpp"

namespace lightq::broker {

/// Applies one change of each kind. A change that contradicts the state has no effect.
struct CatalogueState::Applier {
  CatalogueState& state;

  void operator()(const TopicAdded& change) const;
  void operator()(const TopicRemoved& change) const;
  void operator()(const TopicPaused& change) const;
  void operator()(const TopicLog& change) const;
  void operator()(const TopicTtl& change) const;
  void operator()(const TopicChanged& change) const;
  void operator()(const TopicCredential& change) const;
  void operator()(const CredentialAdded& change) const;
  void operator()(const UserPut& change) const;
  void operator()(const UserRemoved& change) const;
  void operator()(const EndpointPut& change) const;
  void operator()(const EndpointRemoved& change) const;
  void operator()(const PortReleased& change) const;
  void operator()(const NextIds& change) const;
  void operator()(const ClientKeyPut& change) const;
  void operator()(const ClientKeyRemoved& change) const;
  void operator()(const TicketKeyNamed& change) const;
  void operator()(const AdministratorPut& change) const;
  void operator()(const GroupPut& change) const;
  void operator()(const GroupRemoved& change) const;
  void operator()(const SchedulePut& change) const;
  void operator()(const ScheduleRemoved& change) const;
  void operator()(const UnknownChange& change) const;

  void release_port(const EndpointRecord& endpoint, std::int64_t at_ms) const;
  void add_use(std::uint64_t credential_id) const;
  void drop_use(std::uint64_t credential_id) const;
};

void CatalogueState::apply(const CatalogueChange& change) {
  std::visit(Applier{*this}, change);
}

void CatalogueState::Applier::operator()(const TopicAdded& change) const {
  const auto& definition = change.entry.definition;
  if (state.topic_names_.contains(definition.id.value) || state.topics_.contains(definition.name.text()))
    return;
  state.topics_.emplace(definition.name.text(), change.entry);
  state.topic_names_.emplace(definition.id.value, definition.name.text());
  state.removed_topics_.erase(definition.id.value);
  state.next_ids_.topic = std::max(state.next_ids_.topic, definition.id.value + 1);
  add_use(change.entry.credential_id);
}

void CatalogueState::Applier::operator()(const TopicRemoved& change) const {
  state.removed_topics_.insert(change.topic.value);  // also for a topic without a record
  const auto name = state.topic_names_.find(change.topic.value);
  if (name == state.topic_names_.end()) return;
  for (const auto& endpoint : state.endpoints_of(change.topic))
    (*this)(EndpointRemoved{endpoint.id, change.at_ms});
  state.endpoints_.erase(change.topic.value);
  state.client_keys_.erase(change.topic.value);
  const auto topic = state.topics_.find(name->second);
  drop_use(topic->second.credential_id);
  state.topics_.erase(topic);
  state.topic_names_.erase(name);
}

void CatalogueState::Applier::operator()(const TopicPaused& change) const {
  const auto name = state.topic_names_.find(change.topic.value);
  if (name != state.topic_names_.end()) state.topics_.at(name->second).definition.paused = change.paused;
}

void CatalogueState::Applier::operator()(const TopicTtl& change) const {
  const auto name = state.topic_names_.find(change.topic.value);
  if (name == state.topic_names_.end()) return;
  state.topics_.at(name->second).definition.settings.message_ttl_ms = change.message_ttl_ms;
}

void CatalogueState::Applier::operator()(const TopicChanged& change) const {
  const auto name = state.topic_names_.find(change.topic.value);
  if (name == state.topic_names_.end()) return;
  auto& settings = state.topics_.at(name->second).definition.settings;
  settings = change.change.applied_to(settings);
}

void CatalogueState::Applier::operator()(const TopicLog& change) const {
  const auto name = state.topic_names_.find(change.topic.value);
  if (name != state.topic_names_.end()) state.topics_.at(name->second).definition.log_id = change.log_id;
}

void CatalogueState::Applier::operator()(const TopicCredential& change) const {
  const auto name = state.topic_names_.find(change.topic.value);
  if (name == state.topic_names_.end() || !state.credentials_.contains(change.credential_id)) return;
  auto& credential_id = state.topics_.find(name->second)->second.credential_id;
  add_use(change.credential_id);
  drop_use(std::exchange(credential_id, change.credential_id));
}

void CatalogueState::Applier::operator()(const CredentialAdded& change) const {
  state.credentials_.insert_or_assign(change.credential.id, change.credential);
  state.next_ids_.credential = std::max(state.next_ids_.credential, change.credential.id + 1);
}

void CatalogueState::Applier::operator()(const UserPut& change) const {
  const UserRecord& user = change.user;
  state.next_ids_.credential = std::max({state.next_ids_.credential, user.id + 1, user.credential.id + 1});
  const auto known = state.users_.find(user.name());
  if (known != state.users_.end() && known->second.id != user.id) return;
  (*this)(UserRemoved{user.id});
  state.users_.emplace(user.name(), user);
  state.user_names_.emplace(user.id, user.name());
  if (user.uid) state.users_by_uid_.insert_or_assign(*user.uid, user.name());
}

void CatalogueState::Applier::operator()(const UserRemoved& change) const {
  const auto name = state.user_names_.find(change.id);
  if (name == state.user_names_.end()) return;
  const auto user = state.users_.find(name->second);
  if (user->second.uid) state.users_by_uid_.erase(*user->second.uid);
  state.users_.erase(user);
  state.user_names_.erase(name);
}

void CatalogueState::Applier::operator()(const EndpointPut& change) const {
  const auto& endpoint = change.endpoint;
  state.next_ids_.endpoint = std::max(state.next_ids_.endpoint, endpoint.id + 1);
  if (!state.topic_names_.contains(endpoint.topic.value)) return;
  state.endpoints_[endpoint.topic.value].insert_or_assign(endpoint.id, endpoint);
  state.endpoint_topics_.insert_or_assign(endpoint.id, endpoint.topic.value);
  state.released_.erase(endpoint.port);
}

void CatalogueState::Applier::operator()(const EndpointRemoved& change) const {
  const auto* endpoint = state.endpoint(change.id);
  if (endpoint == nullptr) return;
  release_port(*endpoint, change.at_ms);
  state.endpoints_[endpoint->topic.value].erase(change.id);
  state.endpoint_topics_.erase(change.id);
}

void CatalogueState::Applier::operator()(const PortReleased& change) const {
  state.released_[change.port] = change.at_ms;
}

void CatalogueState::Applier::operator()(const NextIds& change) const {
  state.next_ids_.topic = std::max(state.next_ids_.topic, change.topic);
  state.next_ids_.credential = std::max(state.next_ids_.credential, change.credential);
  state.next_ids_.endpoint = std::max(state.next_ids_.endpoint, change.endpoint);
}

void CatalogueState::Applier::operator()(const ClientKeyPut& change) const {
  const auto& record = change.record;
  if (!state.topic_names_.contains(record.grant.topic.value)) return;
  state.client_keys_[record.grant.topic.value].insert_or_assign({record.key, record.grant.role}, record);
}

void CatalogueState::Applier::operator()(const ClientKeyRemoved& change) const {
  const auto keys = state.client_keys_.find(change.grant.topic.value);
  if (keys == state.client_keys_.end()) return;
  keys->second.erase({change.key, change.grant.role});
  if (keys->second.empty()) state.client_keys_.erase(keys);
}

void CatalogueState::Applier::operator()(const TicketKeyNamed& change) const {
  if (change.key_id == state.ticket_key_id_) return;
  state.client_keys_.clear();
  state.ticket_key_id_ = change.key_id;
}

void CatalogueState::Applier::operator()(const AdministratorPut& change) const {
  const std::uint32_t generation = change.administrator.generation;
  for (auto& [topic, keys] : state.client_keys_) {
    std::erase_if(keys, [generation](const auto& entry) {
      const TicketHolder& holder = entry.second.holder;
      return holder.user == 0 && holder.generation != generation;
    });
  }
  std::erase_if(state.client_keys_, [](const auto& entry) { return entry.second.empty(); });
  state.administrator_ = change.administrator;
}

void CatalogueState::Applier::operator()(const GroupPut& change) const {
  const auto name = state.topic_names_.find(change.topic.value);
  if (name == state.topic_names_.end()) return;
  state.topics_.at(name->second).definition.groups.insert_or_assign(change.group, change.setup);
}

void CatalogueState::Applier::operator()(const GroupRemoved& change) const {
  const auto name = state.topic_names_.find(change.topic.value);
  if (name != state.topic_names_.end()) state.topics_.at(name->second).definition.groups.erase(change.group);
}

void CatalogueState::Applier::operator()(const SchedulePut& change) const {
  const auto name = state.topic_names_.find(change.topic.value);
  if (name == state.topic_names_.end()) return;
  state.topics_.at(name->second).definition.schedules.insert_or_assign(change.name, change.schedule);
}

void CatalogueState::Applier::operator()(const ScheduleRemoved& change) const {
  const auto name = state.topic_names_.find(change.topic.value);
  if (name != state.topic_names_.end())
    state.topics_.at(name->second).definition.schedules.erase(change.name);
}

void CatalogueState::Applier::operator()(const UnknownChange& change) const {
  // The last one of equal changes is kept. So a newer broker that applies them finds the present state.
  std::erase(state.unknown_, change.text);
  state.unknown_.push_back(change.text);
}

void CatalogueState::Applier::release_port(const EndpointRecord& endpoint, std::int64_t at_ms) const {
  if (endpoint.transport == protocol::Transport::tcp && endpoint.port != 0)
    state.released_[endpoint.port] = at_ms;
}

void CatalogueState::Applier::add_use(std::uint64_t credential_id) const {
  const auto* const used = state.credential(credential_id);
  if (used == nullptr) return;
  ++state.uses_[used->id];
  state.by_user_[used->user_id].insert(used->id);
}

void CatalogueState::Applier::drop_use(std::uint64_t credential_id) const {
  const auto use = state.uses_.find(credential_id);
  if (use == state.uses_.end() || --use->second > 0) return;
  state.uses_.erase(use);
  const auto user = state.by_user_.find(state.credentials_.at(credential_id).user_id);
  user->second.erase(credential_id);
  if (user->second.empty()) state.by_user_.erase(user);
}

}  // namespace lightq::broker
