/// Delayed messages in a topic's schedule, as the control protocol has them. docs/protocol.md,
/// "list_delayed". Layer: protocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/base/limits.hpp>
#include <lightq/base/types.hpp>

namespace lightq::inline v1::protocol {

/// A state of a message in the schedule. Wire words: waiting, moving.
enum class DelayedState {
  waiting,  ///< it can be cancelled or moved to another time
  moving,   ///< it is due, or nearly: it is on its way to the topic's log
};

/// The delayed messages that a command means: those that have all properties that are given. With none: all.
struct DelayedFilter {
  static constexpr std::size_t ranges_max = 1024;

  /// Due at this time or later, and before this time.
  std::optional<Timestamp> due_from = {};
  std::optional<Timestamp> due_until = {};
  /// The message's id, exactly: 1 to limits::message_id_bytes_max bytes.
  std::optional<std::string> id = {};
  /// Ranges of numbers instead of offsets, ascending, and not overlapping; empty: all. Commands answer for
  /// each range of one number.
  std::vector<OffsetRange> numbers = {};
  friend bool operator==(const DelayedFilter&, const DelayedFilter&) = default;
};

/// The place of a message in a list by due time. Messages with the same due time are listed by number.
struct DelayedPlace {
  Timestamp due;
  std::uint64_t number = 0;
  friend constexpr auto operator<=>(const DelayedPlace&, const DelayedPlace&) = default;
};

/// A delayed message in the schedule of its topic.
struct DelayedMessage {
  std::uint64_t number = 0;
  Timestamp due;
  DelayedState state = DelayedState::waiting;
  std::uint64_t bytes = 0;  ///< of attributes and payload
  /// The id and the key; empty: it has none, or it cannot be read now.
  std::string id = {};
  std::string key = {};
  /// The first bytes of the payload; nothing if they were not asked for, or cannot be read now.
  std::optional<std::string> payload = {};
  std::uint64_t payload_bytes = 0;  ///< of the whole payload, if `payload` is there
  friend bool operator==(const DelayedMessage&, const DelayedMessage&) = default;
};

/// A part of a topic's delayed messages.
struct DelayedPage {
  static constexpr std::uint64_t messages_default = 100;
  static constexpr std::uint64_t messages_max = 1000;
  /// The most bytes of each payload.
  static constexpr std::uint64_t payload_bytes_max = limits::schedule_payload_bytes_max;
  /// A page with so many bytes of payloads ends.
  static constexpr std::uint64_t payloads_bytes_max = 256 * limits::KiB;

  /// By due time, then number; by number if the filter has numbers.
  std::vector<DelayedMessage> messages;
  std::optional<DelayedPlace> continue_after;  ///< the value of `after` for more; nothing: no more
};

/// The reason why a command did nothing to a message. Wire words: too_late, unknown.
enum class DelayedRefusal {
  too_late,  ///< it is in the topic's log or on its way to it, or it was cancelled
  unknown,   ///< no message has had this number yet
};

/// A message to which a command did nothing, although its number was given.
struct UntouchedDelayed {
  std::uint64_t number = 0;
  DelayedRefusal why = DelayedRefusal::unknown;
  friend bool operator==(const UntouchedDelayed&, const UntouchedDelayed&) = default;
};

/// The effect of a command on delayed messages.
struct DelayedCount {
  /// That were cancelled, hurried or rescheduled. Cancelling a message again counts it again.
  std::uint64_t messages = 0;
  /// The numbers that were given singly and to which the command did nothing, by the reason.
  std::uint64_t too_late = 0;
  std::uint64_t unknown = 0;
  std::vector<UntouchedDelayed> untouched = {};  ///< these numbers
  friend bool operator==(const DelayedCount&, const DelayedCount&) = default;
};

/// Statistics of a topic's schedule. Counting starts at the broker's start.
struct DelayedStats {
  std::uint64_t messages = 0;     ///< that wait now
  std::uint64_t bytes = 0;        ///< of these, as they count in the topic's capacity
  std::uint64_t next_due_us = 0;  ///< when the first one is due, microseconds since 1970; 0: none waits
  std::uint64_t moved = 0;        ///< appended to the topic's log
  std::uint64_t cancelled = 0;
  std::uint64_t late_us_max = 0;  ///< the longest time from due to appended
  std::uint64_t corrupt = 0;      ///< lost to damage on the disk
  std::string waiting_by = {};    ///< why messages that are due are not in the log yet; empty: none is held
  friend bool operator==(const DelayedStats&, const DelayedStats&) = default;
};

constexpr std::string_view to_word(DelayedState state) {
  return state == DelayedState::waiting ? "waiting" : "moving";
}
constexpr std::string_view to_word(DelayedRefusal why) {
  return why == DelayedRefusal::too_late ? "too_late" : "unknown";
}

}  // namespace lightq::inline v1::protocol
