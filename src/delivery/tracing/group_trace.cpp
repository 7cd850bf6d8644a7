/// The state of one message in one group. Layer: delivery.
#include "delivery/tracing/group_trace.hpp"

#include <algorithm>
#include <cstdint>

#include "admission/turn_work.hpp"

namespace lightq::broker {

namespace {

using protocol::GroupTrace;
using protocol::MessageState;

/// The work of looking for one message in a set or a map of ranges.
constexpr std::uint64_t set_searched = 4 * TurnWork::range_passed;

std::uint64_t wall_ms(const ClockReading& clocks, SteadyTime due) {
  if (due == never) return 0;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(clocks.wall_time_of(due).us, 0)) / 1000;
}

/// Sets the state of a message that waits for another delivery. Returns false if it does not.
bool find_waiting(const WaitingMessages& waiting, Offset message, const ClockReading& clocks,
                  GroupTrace& trace) {
  const OffsetRange one{message, message + 1};
  const bool delayed = waiting.delayed().count_in(one) != 0;
  if (!delayed && waiting.ready().count_in(one) + waiting.alone().count_in(one) == 0) return false;
  trace.state = delayed ? MessageState::retrying : MessageState::ready;
  trace.deliveries = waiting.counts().of(message);
  if (!delayed) return true;
  for (const auto& [due, messages] : waiting.due().sets()) {
    TurnWork::add(set_searched);
    if (messages.count_in(one) == 0) continue;
    trace.due_ms = wall_ms(clocks, due);
    break;
  }
  return true;
}

/// Sets the state of a message that a consumer has. Returns false if none has it.
bool find_in_flight(const GroupMessages& messages, Offset message, const ClockReading& clocks,
                    GroupTrace& trace) {
  const auto in_flight = [&](const Delivery& delivery) {
    trace.state = MessageState::in_flight;
    trace.deliveries = delivery.count;
    trace.due_ms = wall_ms(clocks, delivery.deadline);
    trace.started = delivery.started;
    return true;
  };
  const auto first = messages.consumers().standing.first();
  if (first && *first <= message) {
    for (const auto& member : messages.consumers().members) {
      TurnWork::add(set_searched);
      const auto entry = member->outstanding().first_behind(message);
      if (!entry || message < entry->range.begin) continue;
      trace.consumer = member->number();
      trace.user = member->user();
      return in_flight(entry->value);
    }
  }
  return is_in_flight(messages, message) && in_flight(messages.delivery_of_unsent(message));
}

/// Returns the state of a message that the group has not come to yet.
MessageState state_ahead(GroupMessages& messages, Offset message, bool is_readable) {
  if (messages.expiry().in({message, message + 1}) != 0)
    return messages.expiry().keeps() ? MessageState::dead_waiting : MessageState::expired;
  return is_readable ? MessageState::ready : MessageState::lost;
}

/// Returns the state of a message that the group has passed, and does not have any more.
MessageState state_behind(GroupMessages& messages, const PositionMoves& moves, Offset message) {
  switch (moves.skip_of(message)) {
    case PositionMoves::Skip::before_group: return MessageState::before_group;
    case PositionMoves::Skip::move: return MessageState::skipped;
    case PositionMoves::Skip::none: break;
  }
  return messages.expiry().runs().has(message) ? MessageState::expired : MessageState::done;
}

}  // namespace

TracedInGroup trace_in_group(ConsumerGroup& group, Offset message, bool is_readable,
                             const ClockReading& clocks) {
  TracedInGroup traced{.trace = {.group = group.name()}};
  GroupTrace& trace = traced.trace;
  GroupMessages& messages = group.messages();
  const RedeliveryQueue& redelivery = messages.redelivery();
  if (const auto* const move = group.standing().roll.moves.last_over(message))
    trace.moved_by = move->is_purge ? protocol::MovedBy::purge : protocol::MovedBy::seek;
  if (redelivery.has_dead() && redelivery.dead()->messages_in({message, message + 1}) != 0) {
    traced.death = redelivery.dead()->at(message);
    trace.state =
        traced.death->state == DeadState::parked ? MessageState::parked : MessageState::dead_waiting;
  } else if (!find_waiting(redelivery.waiting(), message, clocks, trace) &&
             !find_in_flight(messages, message, clocks, trace)) {
    trace.state = messages.next() <= message ? state_ahead(messages, message, is_readable)
                                             : state_behind(messages, group.standing().roll.moves, message);
  }
  if (trace.state == MessageState::dead_waiting || trace.state == MessageState::done)
    trace.letter_topic = group.failures().settings().dead_letter_topic;
  return traced;
}

}  // namespace lightq::broker
