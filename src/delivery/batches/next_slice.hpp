/// A request for the next messages of a log, and its result. Layer: delivery.
#pragma once

#include <cstdint>
#include <limits>

#include <lightq/base/codec.hpp>
#include <lightq/base/types.hpp>

#include "delivery/batches/delivered_slice.hpp"
#include "delivery/state/group_time.hpp"

namespace lightq::broker {

/// Whether a consumer can take messages that are delivered with no other message.
enum class Alone : std::uint8_t {
  takes,        ///< in the order of offsets
  takes_first,  ///< before all others
  refuses,      ///< it has other messages
};

/// The messages that a consumer can take now. By default a slice is the rest of a batch, decompressed.
struct SliceLimits {
  static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();
  Offset end{none};                    ///< the consumer takes messages below it
  std::uint64_t records = none;        ///< the most messages
  std::uint64_t redelivered = none;    ///< the most messages of a redelivery queue
  std::uint64_t message_bytes = none;  ///< the slice ends with the message that reaches this sum
  CodecSet codecs = {};                ///< the consumer reads whole batches of these codecs
  Alone alone = Alone::takes;
};

/// The reason why a slice was returned, or none.
enum class SliceOutcome : std::uint8_t {
  slice,
  end,          ///< the log has no message at the position
  pending,      ///< the store reports when the next message can be read
  unavailable,  ///< the next message cannot be read now
  limit,        ///< the limits permit no message
  held_back,    ///< newer messages must wait, because the group's redelivery queue is full
  skipped,      ///< many messages were skipped because they had expired: ask again in another turn
  expired,      ///< the next messages have expired, and the group moves them to its dead-letter topic
};

/// The result beside the outcome. One object is used for all slices of a turn.
struct NextSlice {
  DeliveredSlice delivered;  ///< with the outcome `slice`
  SteadyTime again{};        ///< with the outcome `unavailable`: when to try again
};

}  // namespace lightq::broker
