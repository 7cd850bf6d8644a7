/// The trace of one message of a topic. Layer: topic.
#pragma once

#include <utility>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>
#include <lightq/protocol/message_trace.hpp>

#include "delivery/state/group_time.hpp"
#include "delivery/topic.hpp"
#include "delivery/tracing/group_trace.hpp"
#include "topic/runtime/topic_reads.hpp"

namespace lightq::broker {

/// A trace, before the deaths in it are worded for the protocol.
struct TracedMessage {
  protocol::MessageTrace trace;            ///< without groups
  std::vector<TracedInGroup> groups = {};  ///< at most protocol::MessageTrace::groups_max
  /// Nothing is traced: the message cannot be read now. Call again when TopicReads reports that it can.
  bool is_pending = false;
};

/// Returns the trace of the message at `offset`. Reads it, and changes nothing. `clocks`: now.
/// Errors: invalid_request if the topic has had no such message yet; io_error if it cannot be read now.
[[nodiscard]] Result<TracedMessage> trace_message(Topic& topic, TopicReads& reads, Offset offset,
                                                  const ClockReading& clocks);

}  // namespace lightq::broker
