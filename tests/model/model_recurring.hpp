/// The reference model of a topic's recurring schedules.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "model/content.hpp"
#include "model/disagreement.hpp"

namespace lightq::model {

/// A schedule with a rule of minutes: those that leave `phase` when divided by `every`. A plain value.
struct ModelRecurring {
  static constexpr std::int64_t minute_us = 60'000'000;
  static constexpr std::int64_t no_time = std::numeric_limits<std::int64_t>::min();

  std::uint64_t number = 0;   ///< a new one for each schedule, also of the same name
  std::uint64_t version = 0;  ///< of its settings
  std::uint64_t every = 1;    ///< a divisor of 60
  std::uint64_t phase = 0;
  bool is_once = false;  ///< the last missed time is published after a start
  bool is_paused = false;
  std::int64_t since_us = 0;                ///< it was set, changed or resumed
  std::int64_t started_us = no_time;        ///< a start left out the times before
  std::int64_t started_least_us = no_time;  ///< the clock was set back to here since
  std::optional<std::uint64_t> last;        ///< the minute of the last message in the log
  std::int64_t due_since_ms = -1;           ///< since when a message is due that the log has not

  /// Returns the last minute of the rule behind `begin_us` and not behind `end_us`.
  [[nodiscard]] std::optional<std::uint64_t> last_within(std::int64_t begin_us, std::int64_t end_us) const {
    std::uint64_t minute = static_cast<std::uint64_t>(end_us / minute_us);
    while (minute % every != phase) --minute;
    const bool is_behind = begin_us < static_cast<std::int64_t>(minute) * minute_us;
    return is_behind ? std::optional(minute) : std::nullopt;
  }
  /// Returns the time up to which nothing is published any more.
  [[nodiscard]] std::int64_t done_us(std::int64_t started) const {
    const std::int64_t of_last = last ? static_cast<std::int64_t>(*last) * minute_us : no_time;
    return std::max({since_us, started, of_last});
  }
  /// Returns the minute whose message must be in the log now, if there is one.
  [[nodiscard]] std::optional<std::uint64_t> due(std::int64_t wall_us) const {
    return is_paused ? std::nullopt : last_within(done_us(started_us), wall_us);
  }
  /// Follows a message that is in the log now.
  void fired(const Content& content, std::int64_t wall_us) {
    const std::string name = "message of " + content.id() + ": ";
    demand(!is_paused, [&] { return name + "its schedule is paused"; });
    demand(content.version() == version, [&] { return name + "it has former settings"; });
    demand(!last || *last != content.minute(), [&] { return name + "it is doubled"; });
    const auto newest = last_within(done_us(started_least_us), wall_us);
    demand(newest.has_value(), [&] { return name + "it is early, or was missed"; });
    demand(*newest == content.minute(), [&] { return name + "it is not the newest that is due"; });
    last = content.minute();
    due_since_ms = -1;
  }
  /// Follows a start: `found` is the last minute in the log.
  void started(std::int64_t wall_us, std::optional<std::uint64_t> found) {
    last = found;
    started_us = started_least_us = is_once ? no_time : wall_us;
    due_since_ms = -1;
  }
};

/// The schedules by name.
using ModelRecurrings = std::map<std::string, ModelRecurring>;

}  // namespace lightq::model
