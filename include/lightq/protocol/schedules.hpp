/// Recurring schedules, as the control protocol has them. docs/protocol.md, "set_schedule" and
/// "list_schedules". Layer: protocol.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lightq::inline v1::protocol {

/// The effect of a firing that fell due while the broker was down. Wire words: skip, once.
enum class MissedFirings {
  skip,  ///< it is left out
  once,  ///< after the start the last one of them is published, and no earlier one
};

/// A header of the messages of a schedule.
struct ScheduleHeader {
  std::string name;
  std::string value;
  friend bool operator==(const ScheduleHeader&, const ScheduleHeader&) = default;
};

/// A recurring schedule: the rule for its times, and the message that it publishes at each of them.
struct ScheduleSettings {
  std::string cron;          ///< five fields: docs/recurring.md, "Cron rules"
  std::string zone = "UTC";  ///< the time zone of the rule, such as `Europe/Berlin`
  MissedFirings missed = MissedFirings::skip;
  std::string key = {};  ///< of the message; empty: none
  std::vector<ScheduleHeader> headers = {};
  std::string payload = {};
  friend bool operator==(const ScheduleSettings&, const ScheduleSettings&) = default;
};

/// A schedule in a list.
struct ScheduleListing {
  std::string topic;
  std::string name;
  ScheduleSettings settings;  ///< without the payload, unless the request names the schedule
  std::uint64_t payload_bytes = 0;
  bool paused = false;
  /// The next times, in milliseconds since 1970, ascending. Empty: the schedule is paused, or its rule has no
  /// time any more.
  std::vector<std::uint64_t> next_ms = {};
  // The state since the broker's start. Only in lists of one topic.
  std::uint64_t fired = 0;      ///< messages published
  std::uint64_t last_ms = 0;    ///< the time of the last firing, from before the start too; 0: not known
  std::string waiting_by = {};  ///< why a firing that is due is not published yet; empty: none waits
  friend bool operator==(const ScheduleListing&, const ScheduleListing&) = default;
};

/// A part of the schedules.
struct SchedulePage {
  static constexpr std::uint64_t schedules_default = 100;
  static constexpr std::uint64_t schedules_max = 1000;
  static constexpr std::uint64_t times_max = 100;  ///< next times of one schedule

  std::vector<ScheduleListing> schedules = {};  ///< by topic and name
  std::string continue_after = {};  ///< the value of `after` for the next page; empty: this was the last one
};

constexpr std::string_view to_word(MissedFirings missed) {
  return missed == MissedFirings::skip ? "skip" : "once";
}

}  // namespace lightq::inline v1::protocol
