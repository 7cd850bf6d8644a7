/// Room for delayed messages in a topic's capacity. Layer: delivery.
#pragma once

#include <cstdint>

#include "delivery/topic.hpp"

namespace lightq::broker {

/// Shares a topic's capacity (ring_bytes in memory, otherwise capacity_bytes) between its log and its delayed
/// messages. A view: it keeps nothing itself. Lifetime: `topic` outlives it. Thread: the topic's.
class DelayedRoom {
 public:
  explicit DelayedRoom(Topic& topic) : topic_(topic) {}

  /// Sets the bytes that the waiting messages of the schedule take of the capacity.
  void set_bytes(std::uint64_t bytes) { topic_.delayed_.bytes = bytes; }
  /// Notes whether producers of delayed messages wait for room.
  void set_held(bool held) { topic_.delayed_.holds_producers = held; }
  /// Makes room for messages of the schedule, which count as `bytes`. Drops messages of the log as a publish
  /// does. Returns `accepted` if there is room; nothing is stored.
  PublishOutcome make(std::uint64_t bytes, std::uint32_t records);
  /// Returns and counts the outcome that the overflow policy gives to messages of the schedule without room.
  PublishOutcome none_for(std::uint32_t records);

 private:
  Topic& topic_;
};

}  // namespace lightq::broker
