/// The limits of a durable log that may change while it is open. Layer: log.
#pragma once

#include <cstdint>

namespace lightq::log {

/// See SegmentLogOptions for the members that it has, too.
struct LogLimits {
  std::uint64_t segment_bytes = 0;  ///< of segments that begin later
  std::uint64_t capacity_bytes = 0;
  std::uint64_t retention_bytes = 0;
  std::int64_t retention_ms = 0;
  std::uint64_t retention_messages = 0;
  bool leaves_others_room = true;
  std::uint64_t carried_bytes_max = 0;  ///< for messages that were carried over; 0: no limit
};

}  // namespace lightq::log
