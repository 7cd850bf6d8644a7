/// The durable definition of a topic. The catalogue stores it, and a reactor opens the topic from it.
/// Layer: delivery.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include <lightq/base/types.hpp>
#include <lightq/protocol/control.hpp>

#include "delivery/attempts/group_setup.hpp"
#include "recurring/recurring_schedule.hpp"

namespace lightq::broker {

struct TopicDefinition {
  TopicId id;
  TopicName name;
  protocol::TopicSettings settings;
  bool paused = false;       ///< the topic starts paused
  std::uint32_t log_id = 0;  ///< the upper half of an encrypted topic's log incarnation; 0: not known
  /// The settings of groups by name, whether or not the groups exist. All others have the defaults.
  std::map<std::string, GroupSetup, std::less<>> groups = {};
  /// The recurring schedules by name, also paused ones.
  std::map<std::string, RecurringSchedule, std::less<>> schedules = {};
};

}  // namespace lightq::broker
