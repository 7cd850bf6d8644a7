/// The requests of a consumer about messages that it has received. Layer: delivery.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <lightq/base/types.hpp>

namespace lightq::broker {

/// The consumer has processed the messages.
struct Ack {
  std::optional<Offset> before;     ///< everything below this offset; then there are no ranges
  std::vector<OffsetRange> ranges;  ///< ascending, and not adjacent
};

/// The consumer does not process the messages. They are delivered again after `delay_ms`.
struct Rejection {
  std::uint32_t delay_ms = 0;
  std::vector<OffsetRange> ranges;  ///< ascending, and not adjacent
};

/// The consumer acknowledges the messages within `timeout_ms` from now.
struct Extension {
  std::uint32_t timeout_ms = 0;
  std::vector<OffsetRange> ranges;  ///< ascending, and not adjacent
};

}  // namespace lightq::broker
