/// The control requests on recurring schedules. docs/protocol.md, "set_schedule" and "list_schedules".
/// Layer: protocol.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <lightq/base/types.hpp>
#include <lightq/protocol/credentials.hpp>
#include <lightq/protocol/schedules.hpp>

namespace lightq::inline v1::protocol {

/// Sets a recurring schedule of the topic, or replaces the one of this name.
struct SetSchedule {
  Credentials user;
  TopicName topic;
  std::string name;
  ScheduleSettings settings;
  bool as_admin = false;
};
/// Asks for a page of the schedules of a topic or, without `topic`, of all topics that the user may manage.
struct ListSchedules {
  Credentials user;
  std::optional<TopicName> topic = {};
  std::string name = {};   ///< only this one, with its payload; needs `topic`; empty: all
  std::string after = {};  ///< the page begins behind it: SchedulePage::continue_after
  std::uint64_t limit = SchedulePage::schedules_default;
  std::uint64_t times = 1;  ///< how many of the next times of each schedule; more than one needs `name`
  bool as_admin = false;
};
/// Stops a schedule until ResumeSchedule. Its times until then are left out.
struct PauseSchedule {
  Credentials user;
  TopicName topic;
  std::string name;
  bool as_admin = false;
};
struct ResumeSchedule {
  Credentials user;
  TopicName topic;
  std::string name;
  bool as_admin = false;
};
/// Removes a schedule. Messages that it has published stay.
struct RemoveSchedule {
  Credentials user;
  TopicName topic;
  std::string name;
  bool as_admin = false;
};
}  // namespace lightq::inline v1::protocol
