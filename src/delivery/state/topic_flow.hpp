/// The counters of a topic that a history samples. Layer: delivery.
#pragma once

#include <cstdint>

namespace lightq::broker {

/// A topic's counters at one moment. Plain data.
struct TopicFlow {
  std::uint64_t in = 0;       ///< messages received
  std::uint64_t out = 0;      ///< messages delivered to consumers
  std::uint64_t pending = 0;  ///< messages that groups have not settled, summed over the groups
  std::uint64_t lag = 0;      ///< messages that no consumer has, of the group with most
};

}  // namespace lightq::broker
