/// The settings, dead messages and statistics of consumer groups, as the control protocol has them.
/// docs/protocol.md, "set_group", "list_dead" and "stats". Layer: protocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/base/types.hpp>

namespace lightq::inline v1::protocol {

/// The rules of a consumer group for messages that its consumers do not finish. docs/protocol.md, "Group
/// settings". Set by the command `set_group`; the defaults apply to all other groups.
struct GroupSettings {
  static constexpr std::size_t backoff_steps_max = 16;
  static constexpr std::uint32_t attempts_limit = 1'000'000;  ///< the largest `max_attempts`
  static constexpr std::uint32_t dead_waiting_default = 10'000;
  static constexpr std::uint32_t dead_waiting_limit = 1'000'000;  ///< the largest `dead_waiting_max`

  std::uint32_t max_attempts = 0;  ///< failures after which a message is dead; 0: no limit
  /// Milliseconds from the first, second, … failure of a message to its next delivery. The last one repeats;
  /// empty: at once. Each is at most the broker's redelivery_ms_max.
  std::vector<std::uint32_t> backoff_ms = {};
  std::string dead_letter_topic = {};  ///< the topic that receives dead messages; empty: they are parked
  std::uint32_t dead_waiting_max = dead_waiting_default;  ///< dead messages that wait before the group pauses
  /// The time for a message from its start; 0: no limit. Nothing: the broker's processing_timeout_ms.
  std::optional<std::uint32_t> processing_timeout_ms = {};
  bool pause_when_failing = false;   ///< the group pauses when most of its deliveries end dead
  bool dead_letter_expired = false;  ///< expired messages go to dead_letter_topic, which must be given
  friend bool operator==(const GroupSettings&, const GroupSettings&) = default;
};

/// The settings of a group that has none of its own.
inline const GroupSettings default_group_settings;

/// A change of a group's settings: those that are given.
struct GroupChange {
  std::optional<std::uint32_t> max_attempts = {};
  std::optional<std::vector<std::uint32_t>> backoff_ms = {};
  std::optional<std::string> dead_letter_topic = {};  ///< a topic's name; empty: none
  std::optional<std::uint32_t> dead_waiting_max = {};
  std::optional<std::uint32_t> processing_timeout_ms = {};
  bool default_processing_timeout = false;  ///< that of the broker again; `null` in JSON
  std::optional<bool> pause_when_failing = {};
  std::optional<bool> dead_letter_expired = {};

  [[nodiscard]] bool empty() const { return *this == GroupChange(); }
  /// Returns `settings` with this change.
  [[nodiscard]] GroupSettings applied_to(GroupSettings settings) const {
    if (max_attempts) settings.max_attempts = *max_attempts;
    if (backoff_ms) settings.backoff_ms = *backoff_ms;
    if (dead_letter_topic) settings.dead_letter_topic = *dead_letter_topic;
    if (dead_waiting_max) settings.dead_waiting_max = *dead_waiting_max;
    if (default_processing_timeout) settings.processing_timeout_ms.reset();
    if (processing_timeout_ms) settings.processing_timeout_ms = processing_timeout_ms;
    if (pause_when_failing) settings.pause_when_failing = *pause_when_failing;
    if (dead_letter_expired) settings.dead_letter_expired = *dead_letter_expired;
    return settings;
  }
  friend bool operator==(const GroupChange&, const GroupChange&) = default;
};

/// The place of a dead message. Wire words: parked, dead_waiting.
enum class DeadState {
  parked,        ///< the group keeps it, until a command retries or purges it
  dead_waiting,  ///< it waits for its transfer to the dead-letter topic
};

/// Why a message is dead. Wire words: attempts, rejected, expired.
enum class DeadCause {
  attempts,  ///< it failed `max_attempts` times
  rejected,  ///< a consumer said so
  expired,   ///< its time to live was over
};

/// The dead messages that a command means: those that have all properties that are given.
struct DeadFilter {
  static constexpr std::size_t ranges_max = 1024;
  static constexpr std::uint64_t time_ms_max = 1'000'000'000'000'000;  ///< far beyond any message

  std::optional<DeadState> state = {};
  std::optional<DeadCause> cause = {};
  /// Milliseconds since 1970: died at this time or later, and before this time. A message whose time of
  /// death is not known has neither property.
  std::optional<std::uint64_t> failed_since_ms = {};
  std::optional<std::uint64_t> failed_until_ms = {};
  /// The message's key, exactly; empty: no key. At most limits::key_bytes_max bytes.
  std::optional<std::string> key = {};
  /// Offsets, ascending, and not adjacent; empty: all.
  std::vector<OffsetRange> ranges = {};
  friend bool operator==(const DeadFilter&, const DeadFilter&) = default;
};

/// A dead message of a group, or a letter in a dead-letter topic.
struct DeadMessage {
  std::uint64_t offset = 0;
  DeadState state = DeadState::parked;
  DeadCause cause = DeadCause::attempts;
  std::uint64_t attempts = 0;  ///< how often it failed
  /// Milliseconds since 1970 of its first failure and of its death; 0: the group does not remember them.
  std::uint64_t first_failure_ms = 0;
  std::uint64_t last_failure_ms = 0;
  std::string reason = {};  ///< the consumer's words; empty: none
  /// A letter: the topic and the group in which the message died, and its offset there. Empty otherwise.
  std::string source_topic = {};
  std::string source_group = {};
  std::uint64_t source_offset = 0;
  friend bool operator==(const DeadMessage&, const DeadMessage&) = default;
};

/// A part of a group's dead messages.
struct DeadPage {
  static constexpr std::uint64_t messages_default = 100;
  static constexpr std::uint64_t messages_max = 1000;

  std::vector<DeadMessage> messages;            ///< by offset
  std::optional<std::uint64_t> continue_after;  ///< the value of `after_offset` for more; nothing: no more
  std::uint64_t unreadable = 0;                 ///< see DeadCount
};

/// The place to which seek_group moves a group. On the wire `position` is first or next, or there is
/// `offset` or `time_ms`.
struct GroupPlace {
  enum class From : std::uint8_t {
    first,   ///< the oldest kept message
    next,    ///< behind the newest message
    offset,  ///< `value`, or the nearest offset that the log has
    time     ///< the first message that was stored at `value`, milliseconds since 1970, or later
  };
  From from = From::next;
  std::uint64_t value = 0;
  friend bool operator==(const GroupPlace&, const GroupPlace&) = default;
};

/// The effect of seek_group.
struct GroupMove {
  std::uint64_t former_offset = 0;   ///< the group's committed offset before
  std::uint64_t offset = 0;          ///< the offset of the next message that the group gets
  std::uint64_t former_pending = 0;  ///< messages that the group was not done with before
  std::uint64_t pending = 0;         ///< and afterwards
  friend bool operator==(const GroupMove&, const GroupMove&) = default;
};

/// The letters of a dead-letter topic that retry_dead has given back, and those that wait still, by the
/// reason.
struct ReturnedLetters {
  std::uint64_t given_back = 0;   ///< to the group in which they died
  std::uint64_t published = 0;    ///< published anew to their topic, because it no longer has the message
  std::uint64_t group_gone = 0;   ///< wait: the group does not exist
  std::uint64_t topic_gone = 0;   ///< wait: their topic does not exist
  std::uint64_t not_allowed = 0;  ///< wait: the asker may not manage their topic
  std::uint64_t failed = 0;       ///< wait: their topic could not take them
  friend bool operator==(const ReturnedLetters&, const ReturnedLetters&) = default;
};

/// How many dead messages a command meant.
struct DeadCount {
  std::uint64_t messages = 0;
  /// With a key: messages that could not be read, so the key is not known. They are not in `messages`.
  std::uint64_t unreadable = 0;
  std::optional<ReturnedLetters> returned = {};  ///< of retry_dead on a dead-letter topic
  friend bool operator==(const DeadCount&, const DeadCount&) = default;
};

/// A consumer of a group, over a session or over HTTP.
struct MemberStats {
  std::uint64_t number = 0;  ///< how many consumers had joined the group before it
  /// Empty: the administrator, the topic's own user, a client without a login; or the asker may not manage
  /// the topic.
  std::string user_id;
  std::uint64_t since_ms = 0;                  ///< milliseconds since 1970 when it joined
  std::uint64_t in_flight = 0;                 ///< messages delivered to it and not acknowledged
  std::uint64_t credit_messages = 0;           ///< messages that it accepts beside those
  std::uint64_t credit_bytes = 0;              ///< their bytes
  std::optional<std::uint32_t> heard_ms = {};  ///< time since its last sign of life; nothing: it gives none
  std::uint64_t user = 0;                      ///< the user's number in the broker; not on the wire
};

/// Statistics of one consumer group.
struct GroupStats {
  std::string group;                   ///< empty for a consumer without a name
  std::string mode = "group";          ///< group: shared by consumers; own: of one consumer
  std::uint64_t next_offset = 0;       ///< the next message to dispatch
  std::uint64_t committed_offset = 0;  ///< where the group would continue after a crash of the broker
  std::uint64_t pending = 0;           ///< messages not settled: the sum of the next five
  std::uint64_t ready = 0;             ///< of these: can be dispatched now
  std::uint64_t in_flight = 0;         ///< of these: delivered to a consumer and not acknowledged
  std::uint64_t retrying = 0;          ///< of these: rejected, and their delay has not passed
  std::uint64_t parked = 0;            ///< of these: dead, and kept until a command retries or purges them
  std::uint64_t dead_waiting = 0;  ///< of these: dead, and waiting for the transfer to the dead-letter topic
  std::uint64_t lag = 0;           ///< of these: not with a consumer; ready plus retrying
  std::uint64_t lost = 0;          ///< messages trimmed or dropped before the group got them
  std::uint64_t consumers = 0;     ///< connected consumers
  std::uint64_t free_consumers = 0;     ///< of these: have credit, or have sent all they took
  std::uint64_t unacknowledged = 0;     ///< of in_flight: with consumers over sessions
  std::uint64_t redelivered = 0;        ///< redeliveries; a message counts each time
  std::uint64_t acknowledged = 0;       ///< deliveries that ended with an acknowledgement
  std::uint64_t released = 0;           ///< returned by a consumer, or not begun when it left: no failure
  std::uint64_t failed = 0;             ///< rejected for another attempt
  std::uint64_t timed_out = 0;          ///< taken back because the time for processing had passed
  std::uint64_t lost_with_session = 0;  ///< begun by a consumer that left
  std::uint64_t revoked = 0;            ///< taken back without a failure
  std::uint64_t dead = 0;               ///< messages that died
  std::uint64_t expired = 0;       ///< messages that were not delivered, or not again, because they expired
  std::uint64_t recent_ended = 0;  ///< deliveries that ended in the last 10 seconds
  std::uint64_t recent_dead = 0;   ///< messages that died in the last 10 seconds
  std::uint64_t oldest_ms = 0;     ///< age of the oldest message that is not settled; 0: there is none
  std::uint64_t ack_holes = 0;     ///< messages that are settled behind one that is not
  std::uint64_t next_due_ms = 0;   ///< when the next of `retrying` is due, in ms since 1970; 0: none waits
  bool paused = false;             ///< the group itself is paused, whether or not its topic is
  /// Why the group itself delivers nothing: empty, `command`, `failing` or `dead_letters`.
  std::string paused_by;
  std::string blocked_by;       ///< why consumers wait although messages are ready: empty, or `disk: WHY`
  std::string dead_waiting_by;  ///< why dead_waiting messages do not move; empty: they do
  GroupSettings settings;
  std::optional<std::vector<MemberStats>> members = {};  ///< with Stats::members_max
};

constexpr std::string_view to_word(DeadState state) {
  return state == DeadState::parked ? "parked" : "dead_waiting";
}
/// Only the places `first` and `next` have words.
constexpr std::string_view to_word(GroupPlace::From from) {
  return from == GroupPlace::From::first ? "first" : "next";
}
constexpr std::string_view to_word(DeadCause cause) {
  constexpr std::string_view words[] = {"attempts", "rejected", "expired"};
  return words[static_cast<int>(cause)];
}

}  // namespace lightq::inline v1::protocol
