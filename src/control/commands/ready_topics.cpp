/// Records which topics of the catalogue requests may use. Layer: control.
#include "control/commands/ready_topics.hpp"

namespace lightq::broker {

Result<TopicId> ReadyTopics::find_known(const TopicName& name) const {
  const TopicEntry* const entry = catalogue_.state().find(name.text());
  if (entry == nullptr || is_starting(entry->definition.id))
    return Error{ErrorCode::topic_not_found, "topic not found"};
  return entry->definition.id;
}

Result<TopicId> ReadyTopics::find(const TopicName& name) const {
  const auto id = find_known(name);
  if (!id) return id;
  if (const auto failed = failed_.find(id.value().value); failed != failed_.end()) return failed->second;
  return id;
}

Result<TopicId> ReadyTopics::find_with_messages(const TopicName& name) const {
  const auto id = find(name);
  if (!id) return id;
  const auto& settings = catalogue_.state().find(id.value())->definition.settings;
  if (settings.broker_type != protocol::BrokerType::direct) return id;
  return Error{ErrorCode::not_supported,
               "topic " + name.text() + " is of type direct, which keeps no messages"};
}

}  // namespace lightq::broker
