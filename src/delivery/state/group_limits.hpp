/// Limits on a topic's consumer groups and their members. Layer: delivery.
#pragma once

#include <cstddef>
#include <cstdint>

#include <lightq/base/limits.hpp>

namespace lightq::broker {

/// The broker's settings, equal for all topics. limits.hpp explains each default.
struct GroupLimits {
  std::size_t groups_max = limits::groups_per_topic_max;
  std::size_t members_max = limits::members_per_group_max;
  std::uint64_t in_flight_messages_max = limits::in_flight_messages_max;  ///< at least 1
  std::size_t outstanding_ranges_max = limits::outstanding_ranges_max;    ///< at least 2
  std::size_t state_bytes_max = limits::group_state_bytes_default;        ///< of one group; at least 1
  std::uint64_t redelivery_ms_max = limits::redelivery_ms_max_default;    ///< of a reject or an extend
  /// The time that a consumer with leases has for a message from its start; 0: no limit.
  std::uint32_t processing_timeout_ms = limits::processing_timeout_ms_default;
  std::size_t ranges_max = limits::group_ranges_total;  ///< for all groups of a reactor together
};

}  // namespace lightq::broker
