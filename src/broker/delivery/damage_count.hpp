/// Messages that are lost to damage, whichever cursors came to them. Layer: delivery.
#pragma once

#include <cstdint>

#include "broker/delivery/record_walk.hpp"

namespace lightq::broker {

/// A plain value; one thread.
class DamageCount {
 public:
  /// A cursor's loss before and after it moved on: damaged messages count when the first cursor comes to
  /// them.
  void note(const WalkLoss& before, const WalkLoss& after) {
    if (after.damaged_end <= known_to_) return;
    messages_ += after.damaged - before.damaged;
    known_to_ = after.damaged_end;
  }
  [[nodiscard]] std::uint64_t messages() const { return messages_; }

 private:
  Offset known_to_;
  std::uint64_t messages_ = 0;
};

}  // namespace lightq::broker
