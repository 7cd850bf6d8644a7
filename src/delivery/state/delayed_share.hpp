/// The share of a topic's capacity that its delayed messages take. Layer: delivery.
#pragma once

#include <cstdint>

namespace lightq::broker {

/// A message needs place in the log, and room for it beside the schedule; or only room in the capacity.
enum class RoomIn : std::uint8_t { log, schedule };

/// Knows the capacity that a topic's log and its schedule have together, and the part that the schedule
/// takes. Topic owns it; DelayedRoom sets the part. Thread: the topic's.
class DelayedShare {
 public:
  /// `capacity`: of log and schedule together, in bytes; 0: not limited.
  explicit DelayedShare(std::uint64_t capacity) : capacity_(capacity) {}

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  void set_bytes(std::uint64_t bytes) { bytes_ = bytes; }
  /// Changes the capacity, as the constructor has it.
  void set_capacity(std::uint64_t capacity) { capacity_ = capacity; }
  /// Notes whether producers of delayed messages wait for room.
  void set_held(bool held) { holds_producers_ = held; }
  [[nodiscard]] bool holds_producers() const { return holds_producers_; }

  /// Returns true if messages that count as `bytes` fit into an empty topic.
  [[nodiscard]] bool can_ever_have(std::uint64_t bytes) const { return capacity_ == 0 || bytes <= capacity_; }
  /// Returns true if `more` bytes fit beside the schedule and `stored` bytes of the log.
  [[nodiscard]] bool leaves_room(std::uint64_t stored, std::uint64_t more) const {
    return capacity_ == 0 || stored + bytes_ + more <= capacity_;
  }
  /// Returns true if the schedule keeps `more` bytes from no log with `stored` bytes. Alone, the log decides:
  /// an empty one may take more than the capacity.
  [[nodiscard]] bool leaves_log(std::uint64_t stored, std::uint64_t more) const {
    return bytes_ == 0 || leaves_room(stored, more);
  }
  [[nodiscard]] bool leaves(RoomIn needed, std::uint64_t stored, std::uint64_t more) const {
    return needed == RoomIn::log ? leaves_log(stored, more) : leaves_room(stored, more);
  }

 private:
  std::uint64_t bytes_ = 0;
  std::uint64_t capacity_;
  bool holds_producers_ = false;
};

}  // namespace lightq::broker
