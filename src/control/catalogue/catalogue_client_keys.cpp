/// The catalogue's functions for client keys. Layer: control.
#include <algorithm>
#include <iterator>

#include "control/catalogue/catalogue.hpp"

namespace lightq::broker {

namespace {
bool expired(const ClientKeyRecord& record, std::int64_t now_ms) {
  return now_ms >= 0 && record.expires_ms <= static_cast<std::uint64_t>(now_ms);
}

/// Returns the keys to remove before adding `record`. If the topic has its maximum of keys: the invalid ones.
/// If those are none, and the user has at least half of the maximum: the user's own key that expires first.
std::vector<ClientKeyRecord> keys_in_the_way_of(const ClientKeyRecord& record, const CatalogueState& state,
                                                const Catalogue::Options& options) {
  const std::size_t half = options.client_keys_per_topic_max / 2;
  if (state.client_key_count(record.grant.topic) < half) return {};
  const auto all = state.client_keys_of(record.grant.topic);
  const Timestamp now = options.now();
  std::vector<ClientKeyRecord> found;
  if (all.size() >= options.client_keys_per_topic_max) {
    std::ranges::copy_if(all, std::back_inserter(found), [&](const ClientKeyRecord& each) {
      return expired(each, now.us / 1000) || !state.is_current(each.holder, each.grant.topic) ||
             ends_too_late(each.expires_ms, options.client_key_lifetime_max, now);
    });
    if (!found.empty()) return found;
  }
  if (record.holder.user == 0) return {};
  std::ranges::copy_if(all, std::back_inserter(found),
                       [&](const ClientKeyRecord& each) { return each.holder.user == record.holder.user; });
  if (found.empty() || found.size() < half) return {};
  return {*std::ranges::min_element(found, {}, &ClientKeyRecord::expires_ms)};
}
}  // namespace

std::size_t CatalogueState::client_key_count() const {
  std::size_t count = 0;
  for (const auto& [topic, keys] : client_keys_) count += keys.size();
  return count;
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

bool CatalogueState::is_current(const TicketHolder& holder, TopicId topic) const {
  if (holder.user == 0) return true;
  if (const TopicEntry* const entry = find(topic); entry != nullptr && entry->credential_id == holder.user)
    return true;
  const UserRecord* const found = user_of_id(holder.user);
  return found != nullptr && found->generation == holder.generation;
}

Result<std::size_t> Catalogue::name_ticket_key(const std::string& key_id) {
  return end_client_keys(TicketKeyNamed{key_id});
}

Result<std::size_t> Catalogue::put_administrator(const AdministratorRecord& administrator) {
  return end_client_keys(AdministratorPut{administrator});
}

Result<std::size_t> Catalogue::end_client_keys(const CatalogueChange& by) {
  const std::size_t before = state_.client_key_count();
  if (auto changed = change(by); !changed) return changed.error();
  return before - state_.client_key_count();
}

Result<std::vector<ClientKeyRecord>> Catalogue::put_client_key(const ClientKeyRecord& record) {
  const bool is_new = state_.client_key(record.key, record.grant) == nullptr;
  auto gone = is_new ? keys_in_the_way_of(record, state_, options_) : std::vector<ClientKeyRecord>();
  for (const ClientKeyRecord& each : gone) {
    if (auto removed = change(ClientKeyRemoved{each.key, each.grant}); !removed) return removed.error();
  }
  const std::size_t count = state_.client_key_count(record.grant.topic);
  if (is_new && count >= options_.client_keys_per_topic_max)
    return Error{ErrorCode::limit_reached, "the topic's clients have registered " + std::to_string(count) +
                                               " keys, the maximum; each is kept until its ticket expires"};
  if (auto put = change(ClientKeyPut{record}); !put) return put.error();
  return gone;
}

}  // namespace lightq::broker
