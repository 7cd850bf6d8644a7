/// The state of one message in one group. Layer: delivery.
#pragma once

#include <optional>

#include <lightq/base/types.hpp>
#include <lightq/protocol/message_trace.hpp>

#include "delivery/consumer_group.hpp"
#include "delivery/dead/dead_message.hpp"
#include "delivery/state/group_time.hpp"
#include "log/log.hpp"

namespace lightq::broker {

/// The state of a message in a group, before its death is worded for the protocol.
struct TracedInGroup {
  /// Without a death. `letter_topic` is the group's present dead-letter topic, if the message may be on its
  /// way there or may have gone there.
  protocol::GroupTrace trace;
  std::optional<DeadMessage> death = {};  ///< of a dead message that the group still has
};

/// Returns the state of `message` in the group. `is_readable`: its log has it, or has carried it over.
/// `clocks`: now, for due times. Takes time by the group's members and distinct due times, which
/// counts as work of this turn (TurnWork).
/// Requires: the topic's log has or had the message, and the group does not wait for messages that the log
/// has dropped (ConsumerGroups::give_up_dropped).
[[nodiscard]] TracedInGroup trace_in_group(ConsumerGroup& group, Offset message, bool is_readable,
                                           const ClockReading& clocks);

}  // namespace lightq::broker
