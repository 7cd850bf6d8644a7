/// Records recurring schedules in the catalogue. Layer: control.
#pragma once

#include <string>

#include "control/catalogue/catalogue.hpp"

namespace lightq::broker {

/// Records a recurring schedule of the topic, new or changed. Writes nothing if that is already recorded.
/// Errors: those of Catalogue::change.
inline Result<void> put_schedule(Catalogue& catalogue, TopicId topic, const std::string& name,
                                 const RecurringSchedule& schedule) {
  const TopicEntry* const entry = catalogue.state().find(topic);
  if (entry == nullptr) return {};
  const auto known = entry->definition.schedules.find(name);
  if (known != entry->definition.schedules.end() && known->second == schedule) return {};
  return catalogue.change(SchedulePut{topic, name, schedule});
}

/// Records that the topic no longer has the schedule. Writes nothing if it has none of this name. Errors:
/// those of Catalogue::change.
inline Result<void> remove_schedule(Catalogue& catalogue, TopicId topic, const std::string& name) {
  const TopicEntry* const entry = catalogue.state().find(topic);
  if (entry == nullptr || !entry->definition.schedules.contains(name)) return {};
  return catalogue.change(ScheduleRemoved{topic, name});
}

}  // namespace lightq::broker
