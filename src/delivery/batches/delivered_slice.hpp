/// The messages that a consumer receives at once. Layer: delivery.
#pragma once

#include <cstdint>

#include "delivery/batches/batch_slice.hpp"

namespace lightq::broker {

/// A slice to deliver to one consumer.
struct DeliveredSlice {
  BatchSlice slice;
  std::uint32_t delivery = 1;  ///< number of deliveries of its messages, this one included
  std::uint32_t hand_out = 0;  ///< number of the hand-out; 0 if the consumer has no leases
  std::uint64_t lost = 0;      ///< messages that were lost since the consumer's previous slice
  bool expired = false;        ///< its messages have expired; only a read without a cursor receives such ones
};

}  // namespace lightq::broker
