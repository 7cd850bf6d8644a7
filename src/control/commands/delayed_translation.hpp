/// Translates delayed messages between topics and the control protocol. Layer: control.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include <lightq/protocol/delayed_control.hpp>

#include "control/commands/data_plane.hpp"
#include "delayed/delayed_message.hpp"

namespace lightq::broker {

inline DelayedFilter filter_of(const protocol::DelayedFilter& asked) {
  DelayedFilter filter{.from = asked.due_from, .until = asked.due_until, .id = asked.id.value_or("")};
  for (const OffsetRange& range : asked.numbers)
    filter.numbers.push_back({range.begin.value, range.end.value});
  return filter;
}

constexpr DelayedAction action_of(DelayedWish::What what) {
  switch (what) {
    case DelayedWish::What::count: break;
    case DelayedWish::What::cancel: return DelayedAction::cancel;
    case DelayedWish::What::hurry: return DelayedAction::hurry;
    case DelayedWish::What::reschedule: return DelayedAction::reschedule;
  }
  return DelayedAction::count;
}

/// Returns the first position behind a place.
constexpr DuePosition position_behind(const protocol::DelayedPlace& place) {
  return {place.due.us, place.number + 1};
}

/// Returns the last place before a position. Requires: the position is behind a message.
constexpr protocol::DelayedPlace place_before(const DuePosition& position) {
  constexpr auto greatest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (position.number > 0) return {{position.due_us}, position.number - 1};
  return {{position.due_us - 1}, greatest};
}

/// `payload_bytes`: the most bytes of the payload; 0: none.
inline protocol::DelayedMessage shown(const DelayedMessage& message, std::size_t payload_bytes) {
  const AttributesView attributes = message.attributes();
  protocol::DelayedMessage to{
      .number = message.number,
      .due = message.due,
      .state = message.is_under_way ? protocol::DelayedState::moving : protocol::DelayedState::waiting,
      .bytes = message.bytes,
      .id = std::string(attributes.id()),
      .key = std::string(attributes.key())};
  if (payload_bytes == 0 || (message.message.empty() && message.bytes != 0)) return to;
  const std::string_view payload = as_text(message.payload());
  to.payload = payload.substr(0, payload_bytes);
  to.payload_bytes = payload.size();
  return to;
}

/// Adds the effect of a part of a command.
inline void add(protocol::DelayedCount& to, const DelayedPiece& piece) {
  to.messages += piece.done;
  to.too_late += piece.too_late;
  to.unknown += piece.unknown;
  for (const DelayedAnswer& answer : piece.answers) {
    if (answer.outcome == DelayedOutcome::done) continue;
    const bool is_late = answer.outcome == DelayedOutcome::too_late;
    to.untouched.push_back(
        {answer.number, is_late ? protocol::DelayedRefusal::too_late : protocol::DelayedRefusal::unknown});
  }
}

/// Returns the error as the control protocol words it.
inline Error shown(const Error& error) {
  if (error.code != ErrorCode::invalid_argument) return error;
  return {ErrorCode::invalid_request, error.message, error.system_error};
}

}  // namespace lightq::broker
