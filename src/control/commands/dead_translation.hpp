/// Translates dead messages between delivery and the control protocol. Layer: control.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include <lightq/protocol/group_control.hpp>

#include "control/commands/data_plane.hpp"
#include "delivery/dead/dead_message.hpp"
#include "log/elapsed.hpp"
#include "topic/dead/return_office.hpp"
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
  DeadFilter filter{.key = asked.key, .ranges = asked.ranges};
  if (asked.state)
    filter.state = *asked.state == protocol::DeadState::parked ? DeadState::parked : DeadState::dead_waiting;
  if (asked.cause) filter.cause = cause_of(*asked.cause);
  const auto time_of = [](std::uint64_t ms) { return Timestamp{log::in_us(static_cast<std::int64_t>(ms))}; };
  if (asked.failed_since_ms) filter.failed_since = time_of(*asked.failed_since_ms);
  if (asked.failed_until_ms) filter.failed_until = time_of(*asked.failed_until_ms);
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

/// Returns a time in milliseconds since 1970 as replies have it.
constexpr std::uint64_t shown_ms(std::int64_t ms) {
  return ms > 0 ? static_cast<std::uint64_t>(ms) : 0;
}

inline protocol::DeadMessage shown(const DeadMessage& message) {
  protocol::DeadMessage to{.offset = message.offset.value,
                           .state = shown(message.state),
                           .cause = shown(message.cause),
                           .attempts = message.attempts};
  if (!message.record) return to;
  to.first_failure_ms = shown_ms(log::ms_since_1970(message.record->first_failure));
  to.last_failure_ms = shown_ms(log::ms_since_1970(message.record->last_failure));
  to.reason = message.record->reason;
  return to;
}

/// Requires: if there is a `next`, it is behind offset 0.
inline protocol::DeadPage shown(const DeadList& list) {
  protocol::DeadPage page;
  for (const DeadMessage& message : list.messages) page.messages.push_back(shown(message));
  if (list.next) page.continue_after = list.next->value - 1;
  page.unreadable = list.unreadable;
  return page;
}

inline protocol::MessageTrace shown(TracedMessage traced) {
  for (TracedInGroup& group : traced.groups) {
    if (group.death) group.trace.death = shown(*group.death);
    traced.trace.groups.push_back(std::move(group.trace));
  }
  return std::move(traced.trace);
}

constexpr LetterAction letter_action_of(DeadWish::What what) {
  if (what == DeadWish::What::retry) return LetterAction::give_back;
  return what == DeadWish::What::purge ? LetterAction::purge : LetterAction::count;
}

inline protocol::DeadCount shown(const LetterCounts& counts, LetterAction action) {
  protocol::DeadCount to{.messages = counts.messages};
  if (action != LetterAction::give_back) return to;
  to.returned = {.given_back = counts.given_back,
                 .published = counts.published,
                 .group_gone = counts.group_gone,
                 .topic_gone = counts.topic_gone,
                 .not_allowed = counts.not_allowed,
                 .failed = counts.failed};
  return to;
}

inline protocol::DeadMessage shown(const FoundLetter& letter) {
  const DeathAccount& death = letter.death;
  return {.offset = letter.offset.value,
          .state = letter.is_under_way ? protocol::DeadState::dead_waiting : protocol::DeadState::parked,
          .cause = shown(death.cause),
          .attempts = death.attempts,
          .first_failure_ms = shown_ms(death.first_failure_ms),
          .last_failure_ms = shown_ms(death.last_failure_ms),
          .reason = death.reason,
          .source_topic = death.topic,
          .source_group = death.group,
          .source_offset = death.offset.value};
}

/// Requires: if there is a `next`, it is behind offset 0.
inline protocol::DeadPage shown(const LetterList& list) {
  protocol::DeadPage page;
  for (const FoundLetter& letter : list.letters) page.messages.push_back(shown(letter));
  if (list.next) page.continue_after = list.next->value - 1;
  return page;
}

}  // namespace lightq::broker
