/// Messages that are lost to damage, whoever came to them. Layer: delivery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "broker/delivery/range_map.hpp"

namespace lightq::broker {

/// Each counts once, when the first cursor or read comes to it. A plain value; one thread.
class DamageCount {
 public:
  /// What one of them has passed over.
  void note(const std::vector<OffsetRange>& damage) {
    for (const OffsetRange range : damage) {
      messages_ += distance(range.begin, range.end) - known_.messages_in(range);
      known_.assign(range, true);
    }
    while (known_.ranges() > stretches_max) forget_the_lowest();
  }
  [[nodiscard]] std::uint64_t messages() const { return messages_; }

 private:
  static constexpr std::size_t stretches_max = 4096;

  // What lies between the lowest two counts as known from then on, so that nothing is counted twice.
  void forget_the_lowest() {
    const OffsetRange lowest = known_.front().range;
    known_.cut(lowest);
    known_.assign({lowest.begin, known_.front().range.begin}, true);
  }

  RangeMap<bool> known_;
  std::uint64_t messages_ = 0;
};

}  // namespace lightq::broker
