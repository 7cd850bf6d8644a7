/// Messages in a topic's log that may be lost there by a power cut. Layer: delayed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include <lightq/base/types.hpp>

namespace lightq::broker {

/// Keeps the moved messages whose end the topic's log has not synced yet, in the order of their sequence
/// numbers. Each step takes constant time, the lowest place included. Example: with the places 5, 3 and 8 the
/// lowest is 3; it is 8 after the first two are done. Thread: one.
class UndoneMoves {
 public:
  struct Undone {
    std::uint64_t sequence = 0;
    std::uint64_t place = 0;  ///< in the schedule's log, which keeps the message there
    Offset log_end;           ///< the message is done when the topic's log is durable up to here
  };

  /// Requires: its sequence number is above all others.
  void add(const Undone& moved) {
    undone_.push_back(moved);
    while (!lowest_.empty() && moved.place <= lowest_.back().place) lowest_.pop_back();
    lowest_.push_back({moved.sequence, moved.place});
  }
  [[nodiscard]] bool empty() const { return undone_.empty(); }
  [[nodiscard]] std::size_t size() const { return undone_.size(); }
  [[nodiscard]] const Undone& front() const { return undone_.front(); }
  void pop_front() {
    if (lowest_.front().sequence == undone_.front().sequence) lowest_.pop_front();
    undone_.pop_front();
  }
  /// Returns the lowest place, or nothing.
  [[nodiscard]] std::optional<std::uint64_t> lowest_place() const {
    return lowest_.empty() ? std::nullopt : std::optional(lowest_.front().place);
  }

 private:
  struct Place {
    std::uint64_t sequence = 0;
    std::uint64_t place = 0;
  };
  std::deque<Undone> undone_;
  // The undone messages whose place is below those of all later ones: places ascend here.
  std::deque<Place> lowest_;
};

}  // namespace lightq::broker
