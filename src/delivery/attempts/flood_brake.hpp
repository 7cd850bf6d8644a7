/// Notices that most deliveries of a group end with a dead message. Layer: delivery.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "delivery/state/group_time.hpp"

namespace lightq::broker {

/// Compares, over the last ten seconds, the deliveries that ended with the messages that died. A plain value.
class FloodBrake {
 public:
  static constexpr std::uint64_t deliveries_min = 100;
  static constexpr std::chrono::seconds window{10};

  /// Takes the sums since the start: deliveries that ended, and messages that died. Time does not go back.
  void note(SteadyTime now, std::uint64_t ended, std::uint64_t dead);
  /// Forgets everything before the sums that were noted last.
  void reset();
  /// Deliveries that ended, and messages that died, in a window.
  struct Recent {
    std::uint64_t ended = 0;
    std::uint64_t dead = 0;
    friend bool operator==(const Recent&, const Recent&) = default;
  };
  /// Returns the numbers of the window that ends at `now`, or at the last `note` if that is later. With the
  /// sums of now.
  [[nodiscard]] Recent recent(SteadyTime now, std::uint64_t ended, std::uint64_t dead) const;
  /// Returns the numbers of the window at the last `note`.
  [[nodiscard]] Recent recent() const { return recent(last_.time, last_.ended, last_.dead); }
  /// Returns true if at least `deliveries_min` deliveries ended in the window, more than half of them dead.
  [[nodiscard]] bool is_failing() const {
    const Recent now = recent();
    return now.ended >= deliveries_min && now.dead * 2 > now.ended;
  }

 private:
  struct Sample {
    SteadyTime time;
    std::uint64_t ended = 0;
    std::uint64_t dead = 0;
  };
  Sample last_;
  std::vector<Sample> samples_;  // about one for each second; the first is the last one before the window
};

}  // namespace lightq::broker
