/// The requests of a consumer about messages that it has received. Layer: delivery.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
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

/// The way in which a consumer rejects messages.
enum class RejectKind : std::uint8_t {
  retry,    ///< another attempt: this delivery has failed
  release,  ///< the consumer has not begun the messages, or they are not at fault: this delivery does not
            ///< count
  dead,     ///< no further attempt
};

/// The consumer does not process the messages. They are delivered again after `delay_ms`, or are dead. With 0
/// the group's settings give the delay of a retry.
struct Rejection {
  std::uint32_t delay_ms = 0;
  std::vector<OffsetRange> ranges;  ///< ascending, and not adjacent
  std::uint32_t hand_out = 0;
  RejectKind kind = RejectKind::retry;
  std::string reason = {};  ///< of the kind `dead`: at most DeathRecord::reason_bytes_max bytes
};

/// The consumer acknowledges the messages within `timeout_ms` from now.
struct Extension {
  std::uint32_t timeout_ms = 0;
  std::vector<OffsetRange> ranges;  ///< ascending, and not adjacent
  std::uint32_t hand_out = 0;
};

}  // namespace lightq::broker
