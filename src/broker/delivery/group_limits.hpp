/// How much a topic's groups and their consumers may grow. Layer: delivery.
#pragma once

#include <cstddef>
#include <cstdint>

#include <lightq/base/limits.hpp>

namespace lightq::broker {

/// The broker's settings, the same for all topics; what each is, limits.hpp says.
struct GroupLimits {
  std::size_t groups_max = limits::groups_per_topic_max;
  std::size_t members_max = limits::members_per_group_max;
  std::uint64_t in_flight_messages_max = limits::in_flight_messages_max;  ///< at least 1
  std::size_t outstanding_ranges_max = limits::outstanding_ranges_max;    ///< at least 2
  std::size_t returned_ranges_max = limits::returned_ranges_max;          ///< at least 1
  std::uint64_t redelivery_ms_max = limits::redelivery_ms_max_default;    ///< of a reject or an extend
  std::size_t ranges_max = limits::group_ranges_total;                    ///< of all groups of a reactor
};

}  // namespace lightq::broker
