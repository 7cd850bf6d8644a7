/// Looks up entries of the catalogue's contents in memory. Layer: control.
#include "control/catalogue/catalogue_state.hpp"

#include <algorithm>

namespace lightq::broker {

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
  for (const auto& [name, topic] : topics_)
    count += topic.definition.groups.size() + topic.definition.schedules.size();
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
  for (const auto& [name, entry] : topics_) {
    changes.emplace_back(TopicAdded{entry});
    for (const auto& [group, setup] : entry.definition.groups)
      changes.emplace_back(GroupPut{entry.definition.id, group, setup});
    for (const auto& [schedule_name, schedule] : entry.definition.schedules)
      changes.emplace_back(SchedulePut{entry.definition.id, schedule_name, schedule});
  }
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
