/// A message of a group that is dead, and the requests for such messages. Layer: delivery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <lightq/base/types.hpp>

#include "delivery/state/delivery_failure.hpp"
#include "log/saved_state/saved_dead.hpp"

namespace lightq::broker {

/// The state of a dead message, which is not delivered, and stays unfinished.
enum class DeadState : std::uint8_t {
  parked,        ///< nothing, until a command retries or purges it
  dead_waiting,  ///< it waits in the outbox for its transfer to the dead-letter topic
};

/// The facts about a death that a group keeps beside the cause and the attempts. At most
/// `records_max` dead messages of a group have it.
struct DeathRecord {
  static constexpr std::size_t records_max = log::SavedDead::records_max;
  static constexpr std::size_t reason_bytes_max = log::SavedDead::reason_bytes_max;

  Timestamp first_failure;  ///< rounded down to a second, or to more; see FirstFailures
  Timestamp last_failure;   ///< the time of the death
  std::string reason;       ///< the consumer's words, with the cause `rejected`; at most reason_bytes_max
  friend bool operator==(const DeathRecord&, const DeathRecord&) = default;
};

/// A dead message, for listings and transfers.
struct DeadMessage {
  Offset offset;
  DeadState state = DeadState::parked;
  DeathCause cause = DeathCause::attempts;
  std::uint32_t attempts = 0;
  std::optional<DeathRecord> record;  ///< nothing: too many messages were dead
  friend bool operator==(const DeadMessage&, const DeadMessage&) = default;
};

/// The dead messages that a command means: those that have all properties that are given.
struct DeadFilter {
  std::optional<DeadState> state = {};
  std::optional<DeathCause> cause = {};
  /// Died at this time or later, and before this time. A message without a record has neither property.
  std::optional<Timestamp> failed_since = {};
  std::optional<Timestamp> failed_until = {};
  /// The message's key; empty: none. A group does not know keys, and ignores this: see TopicCommands.
  std::optional<std::string> key = {};
  std::vector<OffsetRange> ranges = {};  ///< ascending, and not adjacent; empty: all offsets

  [[nodiscard]] bool has_time() const { return failed_since || failed_until; }
  /// Returns true if the filter means messages that died at this time.
  [[nodiscard]] bool includes(Timestamp died) const {
    return !(failed_since && died < *failed_since) && !(failed_until && *failed_until <= died);
  }
};

/// The result of one call that acts on dead messages. A call does about a millisecond's work.
struct DeadPiece {
  std::uint64_t messages = 0;    ///< counted, retried or purged by this call
  std::optional<Offset> next;    ///< call again from here; nothing: this was all
  std::uint64_t unreadable = 0;  ///< messages with a key that this call could not read
  bool is_pending = false;       ///< `next` cannot be read before the store reports it
};

/// Dead messages that one call has found.
struct DeadFound {
  std::vector<OffsetRange> ranges;  ///< ascending
  std::optional<Offset> next;       ///< as in DeadPiece
};

/// The result of listing dead messages.
struct DeadList {
  std::vector<DeadMessage> messages;  ///< by offset
  std::optional<Offset> next;         ///< there may be more from here on
  std::uint64_t unreadable = 0;       ///< as in DeadPiece
  bool is_pending = false;
};

/// A dead message on its way to the dead-letter topic.
struct Transfer {
  std::uint64_t number = 0;  ///< at least 1; ascends without gaps in an incarnation of the outbox
  DeadMessage message;
};

}  // namespace lightq::broker
