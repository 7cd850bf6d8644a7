/// Settles the messages that a consumer on a session received. Layer: client.
#pragma once

#include <cstdint>

#include <lightq/base/types.hpp>
#include <lightq/detail/offset_ranges.hpp>
#include <lightq/detail/session_unsettled.hpp>

namespace lightq::inline v1 {

/// The part of a consumer's channel that an acknowledgement changes. Owned by SessionDeliveries; the
/// consumer calls it directly, without the rest of the channel. For one thread.
struct SessionSettling {
  SessionUnsettled unsettled;
  OffsetRanges acknowledged;                // acknowledgements to send
  SessionAmount back;                       // credit to give
  std::uint64_t acknowledged_messages = 0;  // since the consumer was made

  /// Acknowledges messages. Returns how many of them were in flight to this consumer.
  std::uint64_t acknowledge(OffsetRange range) {
    const SessionAmount settled =
        unsettled.settle(range, [this](const OffsetRange& piece) { acknowledged.add(piece); });
    acknowledged_messages += settled.messages;
    back += settled;
    return settled.messages;
  }
};

}  // namespace lightq::inline v1
