/// The limits of a topic's log, from the topic's settings. Layer: topic.
#pragma once

#include <algorithm>
#include <cstdint>

#include <lightq/base/limits.hpp>
#include <lightq/protocol/topic_settings.hpp>

#include "log/format/segment_format.hpp"
#include "log/log_limits.hpp"

namespace lightq::broker {

/// Messages that were carried over take at most this share of the topic's ring, or of its capacity.
inline constexpr std::uint64_t carried_share = 10;

/// Returns the segment size: at most the topic's capacity. A segment is dropped only as a whole, and its file
/// is created at its full size.
inline std::uint64_t segment_bytes_of(const protocol::TopicSettings& topic) {
  if (topic.capacity_bytes == 0) return topic.segment_bytes;
  const std::uint64_t capacity = std::min(topic.capacity_bytes, limits::segment_bytes_max);
  return std::min(topic.segment_bytes, std::max(limits::segment_bytes_min, log::round_up_to_page(capacity)));
}

/// Returns the limits of the log of a topic with files.
inline log::LogLimits log_limits_of(const protocol::TopicSettings& topic) {
  return {
      .segment_bytes = segment_bytes_of(topic),
      .capacity_bytes = topic.capacity_bytes,
      .retention_bytes = topic.retention_bytes,
      .retention_ms = static_cast<std::int64_t>(topic.retention_ms),
      .retention_messages = topic.retention_messages,
      // A drop_oldest topic with a capacity takes at most that, and then drops its oldest messages. So it
      // need not leave disk space to others; at such a limit it would stop.
      .leaves_others_room = topic.overflow != protocol::Overflow::drop_oldest || topic.capacity_bytes == 0,
      .carried_bytes_max = topic.capacity_bytes / carried_share};
}

}  // namespace lightq::broker
