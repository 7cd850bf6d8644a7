/// Checks the keys of plain ZeroMQ clients. Layer: access.
#include "access/client_keys.hpp"

namespace lightq::broker {

void ClientKeys::put(const ClientKeyRecord& record) {
  const std::scoped_lock lock(mutex_);
  records_.insert_or_assign(id_of(record.key, record.grant), record);
}

void ClientKeys::remove(const CurvePublicKey& key, const Grant& grant) {
  const std::scoped_lock lock(mutex_);
  records_.erase(id_of(key, grant));
}

void ClientKeys::remove_topic(TopicId topic) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(records_, [topic](const auto& entry) { return entry.second.grant.topic == topic; });
}

ClientKeys::Verdict ClientKeys::check(const CurvePublicKey& key, const Grant& grant, Timestamp now) const {
  const std::scoped_lock lock(mutex_);
  const auto found = records_.find(id_of(key, grant));
  if (found == records_.end()) {
    const auto other = records_.lower_bound(id_of(key, {TopicId{0}, EndpointRole::produce}));
    if (other == records_.end() || other->second.key != key) return {"a key that is not registered", {}};
    const auto here = records_.lower_bound(id_of(key, {grant.topic, EndpointRole::produce}));
    const bool of_topic =
        here != records_.end() && here->second.key == key && here->second.grant.topic == grant.topic;
    return {of_topic ? "a key of another role or mode" : "a key of another topic", {}};
  }
  if (now.us / 1000 >= 0 && static_cast<std::uint64_t>(now.us / 1000) >= found->second.expires_ms)
    return {"an expired key", {}};
  if (ends_too_late(found->second.expires_ms, lifetime_max_, now))
    return {"a key that expires later than ticket_ms allows", {}};
  return {{}, found->second};
}

std::size_t ClientKeys::size() const {
  const std::scoped_lock lock(mutex_);
  return records_.size();
}

}  // namespace lightq::broker
