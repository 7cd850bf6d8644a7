/// Finds the offset of a place in a topic: its first or last message, an offset or a time. Layer: delivery.
#pragma once

#include <optional>

#include "delivery/state/consume_request.hpp"
#include "log/log.hpp"

namespace lightq::broker {

/// Returns the offset of `place`, from the log's first to its next offset. The offset of a time is that of
/// the first message that was appended at that time or later. Errors: io_error if the message is among
/// messages that cannot be read now.
Result<Offset> offset_of(const StartPosition& place, log::BatchLog& log);

/// Returns the append time of the first readable message at or after `offset`. Returns nothing if there is
/// none, or if its batch cannot be read now.
std::optional<Timestamp> append_time_at(Offset offset, log::BatchLog& log);

}  // namespace lightq::broker
