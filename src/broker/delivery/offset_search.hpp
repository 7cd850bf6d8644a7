/// Finds the message that a place in a topic speaks of. Layer: delivery.
#pragma once

#include <optional>

#include <lightq/protocol/session_consuming.hpp>

#include "log/log.hpp"

namespace lightq::broker {

/// Between the log's first and its next offset. A time: the first message that was appended then or later.
/// Errors: io_error where that lies among messages that cannot be read now.
Result<Offset> offset_of(const session::Place& place, log::Log& log);

/// When the first message at or behind `offset` that can be read was appended; nothing if there is none, or
/// it is not known now.
std::optional<Timestamp> append_time_at(Offset offset, log::Log& log);

}  // namespace lightq::broker
