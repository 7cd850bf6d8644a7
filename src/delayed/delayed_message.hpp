/// Delayed messages as commands list them and act on them. Layer: delayed.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <lightq/base/batch.hpp>
#include <lightq/base/due.hpp>
#include <lightq/base/types.hpp>

namespace lightq::broker {

/// A place in the order in which delayed messages become due: by due time, then by number.
struct DuePosition {
  std::int64_t due_us = std::numeric_limits<std::int64_t>::min();  ///< microseconds since 1970
  std::uint64_t number = 0;
  friend constexpr auto operator<=>(const DuePosition&, const DuePosition&) = default;
};

/// Returns the time until which a message waits. `due`: the attribute of its record; `appended`: the append
/// time of its batch. A due time in the past means now. So a message never sorts before those that have been
/// due for a while, and a stream of them cannot hold those up.
constexpr Timestamp waiting_until(std::int64_t due, Timestamp appended) {
  return std::max(due_time(due, appended), appended);
}

/// Numbers `begin` up to and without `end`.
struct NumberRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  friend bool operator==(const NumberRange&, const NumberRange&) = default;
};

/// The delayed messages that a command means: those that meet all conditions.
struct DelayedFilter {
  std::vector<NumberRange> numbers = {};  ///< empty: all; ascending, and not overlapping
  std::optional<Timestamp> from = {};     ///< due then or later
  std::optional<Timestamp> until = {};    ///< due before
  std::string id = {};                    ///< the message's id; empty: any
};

/// A message that waits in a schedule, with a copy of its content.
struct DelayedMessage {
  std::uint64_t number = 0;
  Timestamp due = {};
  Timestamp arrived = {};               ///< when the schedule has stored it
  std::uint64_t bytes = 0;              ///< of the whole message: attributes and payload
  bool is_under_way = false;            ///< it leaves within moments: its due time cannot be changed any more
  AttributeKinds kinds = {};            ///< of `message`; never with a due time
  std::vector<std::byte> message = {};  ///< attributes and payload, as a record of the topic's log
  [[nodiscard]] AttributesView attributes() const { return AttributesView::trusted(kinds, message.data()); }
  [[nodiscard]] ByteView payload() const { return payload_of(kinds, message); }
};

/// A part of a list.
struct DelayedList {
  std::vector<DelayedMessage> messages = {};  ///< in the order of DuePosition
  DuePosition next = {};                      ///< where the list continues, if there is more
  bool more = false;
};

enum class DelayedAction : std::uint8_t {
  count,       ///< changes nothing
  cancel,      ///< removes the messages
  hurry,       ///< makes them due now
  reschedule,  ///< gives them another due time
};

/// The fate of a message that a command names by its number.
enum class DelayedOutcome : std::uint8_t {
  done,      ///< also if an earlier command has cancelled the message, and this one cancels it
  too_late,  ///< it is in the log or on its way there, or it was cancelled
  unknown,   ///< the schedule has not given this number to any message yet
};

struct DelayedAnswer {
  std::uint64_t number = 0;
  DelayedOutcome outcome = DelayedOutcome::unknown;
  friend bool operator==(const DelayedAnswer&, const DelayedAnswer&) = default;
};

/// The effect of a part of a command.
struct DelayedPiece {
  std::uint64_t done = 0;
  std::uint64_t too_late = 0;
  std::uint64_t unknown = 0;
  /// For each number that the filter names alone (a range of one), in ascending order.
  std::vector<DelayedAnswer> answers = {};
  DuePosition next = {};  ///< where the command continues, if there is more
  bool more = false;
};

/// The counters of a schedule. Those marked *so far* begin at 0 at each start.
struct DelayedStats {
  std::uint64_t messages = 0;              ///< that wait
  std::uint64_t bytes = 0;                 ///< of these, as counted in the topic's capacity
  std::optional<Timestamp> next_due = {};  ///< of the first one that waits
  std::uint64_t moved = 0;                 ///< to the log, so far
  std::uint64_t cancelled = 0;             ///< so far
  std::uint64_t corrupt = 0;               ///< messages that damage has cost, as far as it is known, so far
  /// Why messages that are due are not in the log yet; empty: none waits for anything but its due time.
  std::string waiting_by = {};
  std::int64_t late_us_max = 0;  ///< the longest time between due time and log, so far; in µs
};

}  // namespace lightq::broker
