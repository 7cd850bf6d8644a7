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
  void set_bytes(std::uint64_t bytes) { topic_.delayed().set_bytes(bytes); }
  /// Notes whether producers of delayed messages wait for room.
  void set_held(bool held) { topic_.delayed().set_held(held); }
  /// Makes room for messages of the schedule, which count as `bytes`. Drops messages of the log as a publish
  /// does. Returns `accepted` if there is room; nothing is stored.
  PublishOutcome make(std::uint64_t bytes, std::uint32_t records) {
    if (!topic_.delayed().can_ever_have(bytes)) return topic_.counted(PublishOutcome::refused, records);
    if (topic_.make_room(bytes)) return PublishOutcome::accepted;
    return topic_.carry_over().has_more() ? PublishOutcome::held : none_for(records);
  }
  /// Returns and counts the outcome that the overflow policy gives to messages of the schedule without room.
  PublishOutcome none_for(std::uint32_t records) {
    const bool holds = topic_.definition().settings.overflow == protocol::Overflow::block;
    return topic_.counted(holds ? PublishOutcome::held : PublishOutcome::rejected, records);
  }

 private:
  Topic& topic_;
};

}  // namespace lightq::broker
