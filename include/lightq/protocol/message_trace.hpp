/// The trace of one message, as the control protocol has it. docs/protocol.md, "trace". Layer: protocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/protocol/group_control.hpp>

namespace lightq::inline v1::protocol {

/// The state of one message in one group. The wire words are those of the enumerators.
enum class MessageState {
  ready,         ///< can be delivered, for the first time or again
  in_flight,     ///< delivered, and not acknowledged
  retrying,      ///< failed, and waits for its due time
  parked,        ///< dead, and kept by the group
  dead_waiting,  ///< dead, and waiting for its transfer to the dead-letter topic
  dead_letter,   ///< dead, and in the dead-letter topic
  done,          ///< acknowledged, sent by a plain endpoint, or ended in another way
  expired,       ///< its time to live was over before it was delivered
  skipped,       ///< a seek or a purge moved the group past it
  before_group,  ///< stored before the first message that the group wanted
  lost           ///< dropped from the log, or damaged, before the group had it
};

/// The last command that moved a group past a message, or back to it. Wire words: none, seek, purge.
enum class MovedBy { none, seek, purge };

/// Where one message is in one group. Which members are set depends on the state.
struct GroupTrace {
  std::string group;  ///< empty for a consumer without a name
  MessageState state = MessageState::ready;
  /// ready, in_flight, retrying: how often it was delivered, the present time included. A delivery that the
  /// program had not begun does not count.
  std::uint64_t deliveries = 0;
  /// Milliseconds since 1970. retrying: when it is due; in_flight: when it is taken back, 0: never.
  std::uint64_t due_ms = 0;
  /// in_flight to a session or to HTTP: the consumer's number in the group, as in its statistics.
  std::optional<std::uint64_t> consumer = {};
  std::string user_id = {};  ///< that consumer's user; empty as in MemberStats
  bool started = false;      ///< in_flight: its program has begun with it, as far as is known
  MovedBy moved_by = MovedBy::none;
  std::optional<DeadMessage> death = {};            ///< of a dead message; of a letter without its source
  std::string letter_topic = {};                    ///< dead_waiting, dead_letter: the dead-letter topic
  std::optional<std::uint64_t> letter_offset = {};  ///< dead_letter: the letter's offset there
  std::uint64_t user = 0;                           ///< the user's number in the broker; not on the wire
  friend bool operator==(const GroupTrace&, const GroupTrace&) = default;
};

/// A header of a message.
struct TracedHeader {
  std::string name;
  std::string value;
  friend bool operator==(const TracedHeader&, const TracedHeader&) = default;
};

/// Where the message itself is. Wire words: stored, carried, dropped, damaged.
enum class StoredState {
  stored,   ///< in the log
  carried,  ///< dropped from the log, and kept apart for a group that is not done with it
  dropped,  ///< not there any more
  damaged   ///< its bytes fail their checks
};

/// The state of one message, and its states in the groups.
struct MessageTrace {
  static constexpr std::uint64_t groups_max = 1000;  ///< a reply has at most so many groups

  std::string topic;
  std::uint64_t offset = 0;
  StoredState state = StoredState::stored;
  // Known only if the message can be read, down to `expired`:
  std::uint64_t stored_us = 0;  ///< microseconds since 1970 when it was appended
  std::uint64_t time_us = 0;    ///< the producer's own time; 0: none
  std::uint64_t size = 0;       ///< of the payload, in bytes
  std::string key = {};
  std::vector<TracedHeader> headers = {};
  bool durable = false;  ///< it survives a power cut
  bool expired = false;  ///< its time to live is over
  /// By the order of their creation. Those behind groups_max are left out, and counted.
  std::vector<GroupTrace> groups = {};
  std::uint64_t groups_left_out = 0;
};

constexpr std::string_view to_word(MessageState state) {
  constexpr std::string_view words[] = {"ready",        "in_flight",    "retrying", "parked",
                                        "dead_waiting", "dead_letter",  "done",     "expired",
                                        "skipped",      "before_group", "lost"};
  return words[static_cast<int>(state)];
}
constexpr std::string_view to_word(MovedBy by) {
  constexpr std::string_view words[] = {"none", "seek", "purge"};
  return words[static_cast<int>(by)];
}
constexpr std::string_view to_word(StoredState state) {
  constexpr std::string_view words[] = {"stored", "carried", "dropped", "damaged"};
  return words[static_cast<int>(state)];
}

}  // namespace lightq::inline v1::protocol
