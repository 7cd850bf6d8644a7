/// Counts the messages of a topic that are lost to damage. Layer: delivery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "delivery/state/range_map.hpp"

namespace lightq::broker {

/// Counts each damaged message once, when the first cursor or read reaches it. A plain value for one thread.
/// To bound memory it remembers at most 4,096 ranges. Beyond that it treats the gap between the two lowest as
/// counted.
class DamageCount {
 public:
  /// Counts the damaged ranges that one cursor or read has skipped.
  void note(const std::vector<OffsetRange>& damage) {
    if (damage.empty()) return;
    for (const OffsetRange range : damage) {
      messages_ += distance(range.begin, range.end) - known_.messages_in(range);
      known_.assign(range, true);
    }
    while (known_.ranges() > stretches_max) forget_the_lowest();
  }
  [[nodiscard]] std::uint64_t messages() const { return messages_; }

 private:
  static constexpr std::size_t stretches_max = 4096;

  // Merges the two lowest ranges and the gap between them, so that no message is ever counted twice.
  void forget_the_lowest() {
    const OffsetRange lowest = known_.front().range;
    known_.cut(lowest);
    known_.assign({lowest.begin, known_.front().range.begin}, true);
  }

  RangeMap<bool> known_;
  std::uint64_t messages_ = 0;
};

}  // namespace lightq::broker
