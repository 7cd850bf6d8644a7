/// The requests of a consumer about messages that it has received. Layer: delivery.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <lightq/base/types.hpp>

namespace lightq::broker {

// `hand_out` is the number of the messages' hand-out, from a consumer with leases; 0 from others. A request
// acts on messages in flight with this number only.

/// The consumer has processed the messages.
struct Ack {
  std::optional<Offset> before;     ///< everything below this offset; then there are no ranges
  std::vector<OffsetRange> ranges;  ///< ascending, and not adjacent
  std::uint32_t hand_out = 0;
};

/// The consumer has begun to process the messages, or is about to. Only consumers with leases say so.
struct Start {
  std::optional<Offset> before;     ///< everything below this offset; then there are no ranges
  std::vector<OffsetRange> ranges;  ///< ascending, and not adjacent
  std::uint32_t hand_out = 0;
};

/// The consumer does not process the messages. They are delivered again after `delay_ms`.
struct Rejection {
  std::uint32_t delay_ms = 0;
  std::vector<OffsetRange> ranges;  ///< ascending, and not adjacent
  std::uint32_t hand_out = 0;
  bool releases = false;  ///< the consumer has not begun the messages: this delivery does not count
};

/// The consumer acknowledges the messages within `timeout_ms` from now.
struct Extension {
  std::uint32_t timeout_ms = 0;
  std::vector<OffsetRange> ranges;  ///< ascending, and not adjacent
  std::uint32_t hand_out = 0;
};

}  // namespace lightq::broker
