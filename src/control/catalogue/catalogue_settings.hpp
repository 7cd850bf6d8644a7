/// Records settings that change after a topic or group was made. Layer: control.
#pragma once

#include <cstdint>
#include <string>

#include "control/catalogue/catalogue.hpp"

namespace lightq::broker {

/// Records a change of a topic's settings. Writes nothing if that is already recorded. A change of the time
/// to live alone has a record of its own, which older brokers accept. Errors: those of Catalogue::change.
inline Result<void> put_topic_change(Catalogue& catalogue, TopicId topic,
                                     const protocol::TopicChange& change) {
  const TopicEntry* const entry = catalogue.state().find(topic);
  if (entry == nullptr) return {};
  const auto& settings = entry->definition.settings;
  if (change.applied_to(settings) == settings) return {};
  if (change == protocol::TopicChange{.message_ttl_ms = change.message_ttl_ms})
    return catalogue.change(TopicTtl{topic, *change.message_ttl_ms});
  return catalogue.change(TopicChanged{topic, change});
}

/// Records a group's settings; the defaults remove the record. Writes nothing if that is already recorded.
/// Errors: those of Catalogue::change.
inline Result<void> put_group(Catalogue& catalogue, TopicId topic, const std::string& group,
                              const GroupSetup& setup) {
  const TopicEntry* const entry = catalogue.state().find(topic);
  if (entry == nullptr) return {};
  const auto& groups = entry->definition.groups;
  const auto known = groups.find(group);
  if ((known == groups.end() ? GroupSetup() : known->second) == setup) return {};
  if (is_default(setup)) return catalogue.change(GroupRemoved{topic, group});
  return catalogue.change(GroupPut{topic, group, setup});
}

}  // namespace lightq::broker
