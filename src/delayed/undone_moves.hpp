/// Messages in a topic's log that may be lost there by a power cut. Layer: delayed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include <lightq/base/types.hpp>

namespace lightq::broker {

/// Keeps the moved messages whose end the topic's log has not synced yet, in the order of their sequence
/// numbers. An entry has one message or several neighbours. Each step takes constant time, the lowest place
/// included. Example: with the places 5, 3 and 8 the lowest is 3; it is 8 after the first two are done.
/// Thread: one.
class UndoneMoves {
 public:
  struct Undone {
    std::uint64_t sequence = 0;  ///< of the first message
    std::uint64_t place = 0;     ///< of the first one in the schedule's log, which keeps them from there on
    Offset log_end;              ///< they are done when the topic's log is durable up to here
    std::uint32_t count = 1;     ///< of messages; their sequence numbers ascend by one
  };

  /// Requires: its sequence numbers are above all others.
  void add(const Undone& moved) {
    undone_.push_back(moved);
    messages_ += moved.count;
    while (!lowest_.empty() && moved.place <= lowest_.back().place) lowest_.pop_back();
    lowest_.push_back({moved.sequence, moved.place});
  }
  [[nodiscard]] bool empty() const { return undone_.empty(); }
  /// Returns the number of messages.
  [[nodiscard]] std::size_t size() const { return messages_; }
  [[nodiscard]] const Undone& front() const { return undone_.front(); }
  void pop_front() {
    if (lowest_.front().sequence == undone_.front().sequence) lowest_.pop_front();
    messages_ -= undone_.front().count;
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
  // The entries whose place is below those of all later ones: places ascend here.
  std::deque<Place> lowest_;
  std::size_t messages_ = 0;
};

}  // namespace lightq::broker
