/// Finds the message that a place in a topic speaks of. Layer: delivery.
#pragma once

#include <lightq/protocol/session_consuming.hpp>

#include "log/log.hpp"

namespace lightq::broker {

/// Between the log's first and its next offset. A time: the first message that was appended then or later.
Offset offset_of(const session::Place& place, log::Log& log);

/// When the first message at or behind `offset` that can be read was appended; nothing if there is none.
std::optional<Timestamp> append_time_at(Offset offset, log::Log& log);

}  // namespace lightq::broker
