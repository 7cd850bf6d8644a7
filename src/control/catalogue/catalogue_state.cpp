/// Applies changes to the catalogue's contents in memory, and looks up entries. Layer: control.
#include "control/catalogue/catalogue_state.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace lightq::broker {

void CatalogueState::apply(const CatalogueChange& change) {
  std::visit([this](const auto& one) { apply(one); }, change);
}

void CatalogueState::apply(const TopicAdded& change) {
  const auto& definition = change.entry.definition;
  if (topic_names_.contains(definition.id.value) || topics_.contains(definition.name.text())) return;
  topics_.emplace(definition.name.text(), change.entry);
  topic_names_.emplace(definition.id.value, definition.name.text());
  removed_topics_.erase(definition.id.value);
  next_ids_.topic = std::max(next_ids_.topic, definition.id.value + 1);
  add_use(change.entry.credential_id);
}

void CatalogueState::apply(const TopicRemoved& change) {
  removed_topics_.insert(change.topic.value);  // also for a topic without a record
  const auto name = topic_names_.find(change.topic.value);
  if (name == topic_names_.end()) return;
  for (const auto& endpoint : endpoints_of(change.topic)) apply(EndpointRemoved{endpoint.id, change.at_ms});
  endpoints_.erase(change.topic.value);
  client_keys_.erase(change.topic.value);
  const auto topic = topics_.find(name->second);
  drop_use(topic->second.credential_id);
  topics_.erase(topic);
  topic_names_.erase(name);
}

void CatalogueState::apply(const TopicPaused& change) {
  const auto name = topic_names_.find(change.topic.value);
  if (name != topic_names_.end()) topics_.at(name->second).definition.paused = change.paused;
}

void CatalogueState::apply(const TopicLog& change) {
  const auto name = topic_names_.find(change.topic.value);
  if (name != topic_names_.end()) topics_.at(name->second).definition.log_id = change.log_id;
}

void CatalogueState::apply(const CredentialAdded& change) {
  credentials_.insert_or_assign(change.credential.id, change.credential);
  next_ids_.credential = std::max(next_ids_.credential, change.credential.id + 1);
}

void CatalogueState::apply(const TopicCredential& change) {
  const auto name = topic_names_.find(change.topic.value);
  if (name == topic_names_.end() || !credentials_.contains(change.credential_id)) return;
  auto& credential_id = topics_.find(name->second)->second.credential_id;
  add_use(change.credential_id);
  drop_use(std::exchange(credential_id, change.credential_id));
}

void CatalogueState::apply(const UserPut& change) {
  const UserRecord& user = change.user;
  next_ids_.credential = std::max({next_ids_.credential, user.id + 1, user.credential.id + 1});
  const auto known = users_.find(user.name());
  if (known != users_.end() && known->second.id != user.id) return;
  apply(UserRemoved{user.id});
  users_.emplace(user.name(), user);
  user_names_.emplace(user.id, user.name());
  if (user.uid) users_by_uid_.insert_or_assign(*user.uid, user.name());
}

void CatalogueState::apply(const UserRemoved& change) {
  const auto name = user_names_.find(change.id);
  if (name == user_names_.end()) return;
  const auto user = users_.find(name->second);
  if (user->second.uid) users_by_uid_.erase(*user->second.uid);
  users_.erase(user);
  user_names_.erase(name);
}

void CatalogueState::apply(const EndpointPut& change) {
  const auto& endpoint = change.endpoint;
  next_ids_.endpoint = std::max(next_ids_.endpoint, endpoint.id + 1);
  if (!topic_names_.contains(endpoint.topic.value)) return;
  endpoints_[endpoint.topic.value].insert_or_assign(endpoint.id, endpoint);
  endpoint_topics_.insert_or_assign(endpoint.id, endpoint.topic.value);
  released_.erase(endpoint.port);
}

void CatalogueState::apply(const EndpointRemoved& change) {
  const auto* endpoint = this->endpoint(change.id);
  if (endpoint == nullptr) return;
  release_port(*endpoint, change.at_ms);
  endpoints_[endpoint->topic.value].erase(change.id);
  endpoint_topics_.erase(change.id);
}

void CatalogueState::apply(const PortReleased& change) {
  released_[change.port] = change.at_ms;
}

void CatalogueState::apply(const NextIds& change) {
  next_ids_.topic = std::max(next_ids_.topic, change.topic);
  next_ids_.credential = std::max(next_ids_.credential, change.credential);
  next_ids_.endpoint = std::max(next_ids_.endpoint, change.endpoint);
}

void CatalogueState::release_port(const EndpointRecord& endpoint, std::int64_t at_ms) {
  if (endpoint.transport == protocol::Transport::tcp && endpoint.port != 0) released_[endpoint.port] = at_ms;
}

void CatalogueState::add_use(std::uint64_t credential_id) {
  const auto* const used = credential(credential_id);
  if (used == nullptr) return;
  ++uses_[used->id];
  by_user_[used->user_id].insert(used->id);
}

void CatalogueState::drop_use(std::uint64_t credential_id) {
  const auto use = uses_.find(credential_id);
  if (use == uses_.end() || --use->second > 0) return;
  uses_.erase(use);
  const auto user = by_user_.find(credentials_.at(credential_id).user_id);
  user->second.erase(credential_id);
  if (user->second.empty()) by_user_.erase(user);
}

const TopicEntry* CatalogueState::find(std::string_view name) const {
  const auto found = topics_.find(name);
  return found == topics_.end() ? nullptr : &found->second;
}

const TopicEntry* CatalogueState::find(TopicId id) const {
  const auto name = topic_names_.find(id.value);
  return name == topic_names_.end() ? nullptr : find(name->second);
}

const TopicEntry* CatalogueState::topic_of_log(std::uint32_t log_id) const {
  const auto found = std::find_if(topics_.begin(), topics_.end(), [log_id](const auto& topic) {
    return topic.second.definition.log_id == log_id;
  });
  return log_id == 0 || found == topics_.end() ? nullptr : &found->second;
}

std::map<std::uint32_t, std::string> CatalogueState::log_names() const {
  std::map<std::uint32_t, std::string> names;
  for (const auto& [name, topic] : topics_) {
    if (topic.definition.log_id != 0) names.emplace(topic.definition.log_id, name);
  }
  return names;
}

const CredentialRecord* CatalogueState::credential(std::uint64_t id) const {
  const auto found = credentials_.find(id);
  return found == credentials_.end() ? nullptr : &found->second;
}

const CredentialRecord* CatalogueState::credential_of(const std::string& user_id) const {
  const auto user = by_user_.find(user_id);
  return user == by_user_.end() ? nullptr : credential(*user->second.rbegin());
}

const UserRecord* CatalogueState::user(std::string_view name) const {
  const auto found = users_.find(name);
  return found == users_.end() ? nullptr : &found->second;
}

const UserRecord* CatalogueState::user_of_uid(std::uint32_t uid) const {
  const auto found = users_by_uid_.find(uid);
  return found == users_by_uid_.end() ? nullptr : user(found->second);
}

const UserRecord* CatalogueState::user_of_id(std::uint64_t id) const {
  const auto found = user_names_.find(id);
  return found == user_names_.end() ? nullptr : user(found->second);
}

std::vector<EndpointRecord> CatalogueState::endpoints_of(TopicId topic) const {
  std::vector<EndpointRecord> found;
  const auto endpoints = endpoints_.find(topic.value);
  if (endpoints == endpoints_.end()) return found;
  for (const auto& [id, endpoint] : endpoints->second) found.push_back(endpoint);
  return found;
}

void CatalogueState::apply(const UnknownChange& change) {
  if (std::ranges::find(unknown_, change.text) == unknown_.end()) unknown_.push_back(change.text);
}

const EndpointRecord* CatalogueState::endpoint(std::uint64_t id) const {
  const auto topic = endpoint_topics_.find(id);
  return topic == endpoint_topics_.end() ? nullptr : &endpoints_.at(topic->second).at(id);
}

void CatalogueState::forget_ports_released_before(std::int64_t ms) {
  std::erase_if(released_, [ms](const auto& port) { return port.second < ms; });
}

void CatalogueState::keep_removed_topics(const std::set<std::uint64_t>& with_files) {
  std::erase_if(removed_topics_, [&with_files](std::uint64_t id) { return !with_files.contains(id); });
}

void CatalogueState::forget_unused_credentials() {
  std::erase_if(credentials_, [this](const auto& entry) { return !in_use(entry.first); });
}

std::uint64_t CatalogueState::record_count() const {
  std::uint64_t count = 3 + uses_.size() + users_.size() + topics_.size() + endpoint_topics_.size() +
                        released_.size() + unknown_.size() + removed_topics_.size();
  for (const auto& [topic, keys] : client_keys_) count += keys.size();
  return count;
}

std::vector<CatalogueChange> CatalogueState::snapshot() const {
  std::vector<CatalogueChange> changes{next_ids_};
  // These come before the client keys, because they end all keys recorded before them.
  if (!ticket_key_id_.empty()) changes.emplace_back(TicketKeyNamed{ticket_key_id_});
  if (administrator_.generation != 0) changes.emplace_back(AdministratorPut{administrator_});
  for (const auto& [id, record] : credentials_) {
    if (in_use(id)) changes.emplace_back(CredentialAdded{record});
  }
  for (const auto& [name, user] : users_) changes.emplace_back(UserPut{user});
  for (const auto id : removed_topics_) changes.emplace_back(TopicRemoved{{id}, 0});
  for (const auto& [name, entry] : topics_) changes.emplace_back(TopicAdded{entry});
  for (const auto& [topic, endpoints] : endpoints_) {
    for (const auto& [id, endpoint] : endpoints) changes.emplace_back(EndpointPut{endpoint});
  }
  for (const auto& [topic, keys] : client_keys_) {
    for (const auto& [id, record] : keys) changes.emplace_back(ClientKeyPut{record});
  }
  for (const auto& [port, at_ms] : released_) changes.emplace_back(PortReleased{port, at_ms});
  for (const std::string& text : unknown_) changes.emplace_back(UnknownChange{text});
  return changes;
}

}  // namespace lightq::broker
