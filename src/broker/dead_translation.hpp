/// Translates dead messages between delivery and the control protocol. Layer: broker.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include <lightq/protocol/group_control.hpp>

#include "control/commands/data_plane.hpp"
#include "delivery/dead/dead_message.hpp"
#include "topic/runtime/topic_commands.hpp"

namespace lightq::broker {

constexpr protocol::DeadState shown(DeadState state) {
  return state == DeadState::parked ? protocol::DeadState::parked : protocol::DeadState::dead_waiting;
}

constexpr protocol::DeadCause shown(DeathCause cause) {
  switch (cause) {
    case DeathCause::attempts: break;
    case DeathCause::rejected: return protocol::DeadCause::rejected;
    case DeathCause::expired: return protocol::DeadCause::expired;
  }
  return protocol::DeadCause::attempts;
}

constexpr DeathCause cause_of(protocol::DeadCause cause) {
  switch (cause) {
    case protocol::DeadCause::attempts: break;
    case protocol::DeadCause::rejected: return DeathCause::rejected;
    case protocol::DeadCause::expired: return DeathCause::expired;
  }
  return DeathCause::attempts;
}

inline DeadFilter filter_of(const protocol::DeadFilter& asked) {
  DeadFilter filter{.state = std::nullopt, .cause = std::nullopt, .ranges = asked.ranges};
  if (asked.state)
    filter.state = *asked.state == protocol::DeadState::parked ? DeadState::parked : DeadState::dead_waiting;
  if (asked.cause) filter.cause = cause_of(*asked.cause);
  return filter;
}

/// Returns the messages that an operation means: it acts on parked messages only, so a preview counts only
/// these.
inline DeadFilter filter_of(const DeadWish& wish) {
  DeadFilter filter = filter_of(wish.filter);
  if (!filter.state) filter.state = DeadState::parked;
  return filter;
}

constexpr DeadAction action_of(DeadWish::What what) {
  if (what == DeadWish::What::retry) return DeadAction::retry;
  return what == DeadWish::What::purge ? DeadAction::purge : DeadAction::count;
}

inline protocol::DeadMessage shown(const DeadMessage& message) {
  protocol::DeadMessage to{.offset = message.offset.value,
                           .state = shown(message.state),
                           .cause = shown(message.cause),
                           .attempts = message.attempts};
  if (!message.record) return to;
  const auto ms = [](Timestamp time) { return static_cast<std::uint64_t>(time.us > 0 ? time.us / 1000 : 0); };
  to.first_failure_ms = ms(message.record->first_failure);
  to.last_failure_ms = ms(message.record->last_failure);
  to.reason = message.record->reason;
  return to;
}

/// Requires: if there is a `next`, it is behind offset 0.
inline protocol::DeadPage shown(const DeadList& list) {
  protocol::DeadPage page;
  for (const DeadMessage& message : list.messages) page.messages.push_back(shown(message));
  if (list.next) page.continue_after = list.next->value - 1;
  return page;
}

}  // namespace lightq::broker
