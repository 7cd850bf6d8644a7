/// A recurring schedule as the catalogue has it. Layer: recurring.
#pragma once

#include <cstdint>

#include <lightq/base/types.hpp>
#include <lightq/protocol/schedules.hpp>

namespace lightq::broker {

/// A schedule of a topic, under its name. A plain value.
struct RecurringSchedule {
  protocol::ScheduleSettings settings;
  /// A random number, not 0: the id of the producer that publishes its messages. It stays when the settings
  /// change, so no time is published twice.
  std::uint64_t incarnation = 0;
  /// When it was set, changed or resumed. Earlier times never fire.
  Timestamp since = {};
  bool paused = false;
  friend bool operator==(const RecurringSchedule&, const RecurringSchedule&) = default;
};

}  // namespace lightq::broker
