/// Records settings that change after a topic or group was made. Layer: control.
#pragma once

#include <cstdint>
#include <string>

#include "control/catalogue/catalogue.hpp"

namespace lightq::broker {

/// Records the time to live of a topic's messages. Writes nothing if that is already recorded. Errors: those
/// of Catalogue::change.
inline Result<void> put_message_ttl(Catalogue& catalogue, TopicId topic, std::uint64_t ttl_ms) {
  const TopicEntry* const entry = catalogue.state().find(topic);
  if (entry == nullptr || entry->definition.settings.message_ttl_ms == ttl_ms) return {};
  return catalogue.change(TopicTtl{topic, ttl_ms});
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
