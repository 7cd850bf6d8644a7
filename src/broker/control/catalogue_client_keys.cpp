/// What the catalogue knows of clients' keys. Layer: control.
#include <algorithm>

#include "broker/control/catalogue.hpp"

namespace lightq::broker {

namespace {
bool expired(const ClientKeyRecord& record, std::int64_t now_ms) {
  return now_ms >= 0 && record.expires_ms <= static_cast<std::uint64_t>(now_ms);
}
}  // namespace

void CatalogueState::apply(const ClientKeyPut& change) {
  const auto& record = change.record;
  if (!topic_names_.contains(record.grant.topic.value)) return;
  client_keys_[record.grant.topic.value].insert_or_assign({record.key, record.grant.role}, record);
}

void CatalogueState::apply(const ClientKeyRemoved& change) {
  const auto keys = client_keys_.find(change.grant.topic.value);
  if (keys == client_keys_.end()) return;
  keys->second.erase({change.key, change.grant.role});
  if (keys->second.empty()) client_keys_.erase(keys);
}

std::vector<ClientKeyRecord> CatalogueState::client_keys_of(TopicId topic) const {
  std::vector<ClientKeyRecord> found;
  const auto keys = client_keys_.find(topic.value);
  if (keys == client_keys_.end()) return found;
  for (const auto& [id, record] : keys->second) found.push_back(record);
  return found;
}

std::size_t CatalogueState::client_key_count(TopicId topic) const {
  const auto keys = client_keys_.find(topic.value);
  return keys == client_keys_.end() ? 0 : keys->second.size();
}

const ClientKeyRecord* CatalogueState::client_key(const CurvePublicKey& key, const Grant& grant) const {
  const auto keys = client_keys_.find(grant.topic.value);
  if (keys == client_keys_.end()) return nullptr;
  const auto found = keys->second.find({key, grant.role});
  return found == keys->second.end() ? nullptr : &found->second;
}

void CatalogueState::forget_client_keys_expired_before(std::int64_t ms) {
  for (auto& [topic, keys] : client_keys_)
    std::erase_if(keys, [ms](const auto& entry) { return expired(entry.second, ms); });
  std::erase_if(client_keys_, [](const auto& entry) { return entry.second.empty(); });
}

bool CatalogueState::is_current(const TicketHolder& holder) const {
  if (holder.user == 0 || in_use(holder.user)) return true;
  const auto name = user_names_.find(holder.user);
  const UserRecord* const found = name == user_names_.end() ? nullptr : user(name->second);
  return found != nullptr && found->generation == holder.generation;
}

/// One user may have half of them: of more, its own that ends first makes room.
Result<void> Catalogue::make_room_for_key_of(std::uint64_t user, TopicId topic) {
  std::size_t count = 0;
  const auto keys = state_.client_keys_of(topic);
  const ClientKeyRecord* first = nullptr;
  for (const auto& each : keys) {
    if (each.holder.user != user) continue;
    ++count;
    if (first == nullptr || each.expires_ms < first->expires_ms) first = &each;
  }
  if (first == nullptr || 2 * (count + 1) <= options_.client_keys_per_topic_max + 1) return {};
  return change(ClientKeyRemoved{first->key, first->grant});
}

Result<void> Catalogue::put_client_key(const ClientKeyRecord& record) {
  const TopicId topic = record.grant.topic;
  const auto is_full = [&] { return state_.client_key_count(topic) >= options_.client_keys_per_topic_max; };
  const bool is_new = state_.client_key(record.key, record.grant) == nullptr;
  if (is_new && record.holder.user != 0 &&
      2 * (state_.client_key_count(topic) + 1) > options_.client_keys_per_topic_max + 1) {
    if (auto made = make_room_for_key_of(record.holder.user, topic); !made) return made;
  }
  if (is_full() && is_new) {
    for (const auto& old : state_.client_keys_of(topic)) {
      if (!expired(old, now_ms()) && state_.is_current(old.holder)) continue;
      if (auto removed = change(ClientKeyRemoved{old.key, old.grant}); !removed) return removed;
    }
    if (is_full())
      return Error{ErrorCode::limit_reached,
                   "the topic's clients have registered " + std::to_string(state_.client_key_count(topic)) +
                       " keys, the most there may be; each is kept until its ticket expires"};
  }
  return change(ClientKeyPut{record});
}

}  // namespace lightq::broker
