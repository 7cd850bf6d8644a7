/// The loop that delivers messages to consumers of every kind. Layer: delivery.
#pragma once

#include <concepts>
#include <cstdint>

#include "delivery/batches/next_slice.hpp"
#include "delivery/slice_source.hpp"

namespace lightq::broker {

/// The consumers of one turn. The kinds differ only here: which consumer is next, how much it takes, what it
/// does with messages, and when the turn is over. There are PlainTurn (plain consumers of a group, or a
/// subscriber), ConsumerGroup::MemberTurn, and the ReadTurn of sessions.
template <typename Turn>
concept DispatchTurn = requires(Turn turn, SliceSource& source, DeliveredSlice& delivered) {
  /// Returns false if the turn has used up its share of work.
  { turn.has_budget() } -> std::same_as<bool>;
  /// Chooses the consumer that is next. Returns false if none can take messages.
  { turn.can_take() } -> std::same_as<bool>;
  /// Returns how much the chosen consumer can take.
  { turn.limits() } -> std::same_as<SliceLimits>;
  /// Passes the chosen consumer as much of the slice as it takes, and calls source.taken.
  { turn.take(source, delivered) } -> std::same_as<void>;
};

/// The reason for which a turn has ended.
enum class TurnEnd : std::uint8_t {
  over,         ///< its budget is used up; there may be more messages
  no_consumer,  ///< no consumer takes more
  no_message,  ///< no further message in the log or within the limits, or a full redelivery queue holds newer
               ///< ones back
  pending,     ///< the store reports when the next message can be read
  unavailable,  ///< the next message cannot be read now
};

/// Delivers messages from the source to the turn's consumers until the turn ends.
template <DispatchTurn Turn>
TurnEnd dispatch_turn(SliceSource& source, Turn& turn) {
  NextSlice next;
  for (;;) {
    if (!turn.has_budget()) return TurnEnd::over;
    if (!turn.can_take()) return TurnEnd::no_consumer;
    switch (source.next(turn.limits(), next)) {
      case SliceOutcome::slice: turn.take(source, next.delivered); break;
      case SliceOutcome::skipped: return TurnEnd::over;
      case SliceOutcome::pending: return TurnEnd::pending;
      case SliceOutcome::unavailable: return TurnEnd::unavailable;
      case SliceOutcome::end:
      case SliceOutcome::limit:
      case SliceOutcome::expired:
      case SliceOutcome::held_back: return TurnEnd::no_message;
    }
  }
}

}  // namespace lightq::broker
