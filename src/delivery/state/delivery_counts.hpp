/// The number of deliveries of each message in a group's queue, as sets of offsets. Layer: delivery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <lightq/base/types.hpp>

#include "delivery/state/counted_ranges.hpp"
#include "log/offsets/offset_set.hpp"
#include "log/saved_state/unfinished.hpp"

namespace lightq::broker {

/// Maps messages to their number of deliveries. A message is in set b if its number, exclusive-or 1, has bit
/// b. So messages that were delivered once, as most were, are in no set and take no memory. There are at most
/// 32 sets for all possible numbers, and an operation costs the time of one on each set that is not empty.
/// Each of these counts as work of this turn (TurnWork). A copy costs time by the number of sets. A plain
/// value for one thread; a copy may be used by another.
/// Example: message 7 was delivered 4 times. 4 exclusive-or 1 is 5, so 7 is in the sets 0 and 2.
class DeliveryCounts {
 public:
  /// The number of a message in no set.
  static constexpr std::uint32_t by_default = 1;

  DeliveryCounts() = default;
  /// Takes sets as `sets` returns them. Those beyond the 32nd are ignored.
  explicit DeliveryCounts(std::vector<log::OffsetSet> sets);

  /// Sets the number of deliveries of all messages in `range`.
  void set(OffsetRange range, std::uint32_t deliveries);
  /// Sets the numbers of many messages at once, which takes less time for each. Requires: the ranges ascend
  /// and do not overlap, none is empty, and all their messages have the number `by_default`.
  void add(std::span<const CountedRange> ranges);
  /// Forgets the messages in `range`: their number is `by_default` again.
  void remove(OffsetRange range);
  void clear();

  /// Returns true if all messages have the number `by_default`.
  [[nodiscard]] bool empty() const { return sets_.empty(); }
  /// Returns the number of deliveries of the message at `offset`.
  [[nodiscard]] std::uint32_t of(Offset offset) const;
  /// Returns the end of the messages from `range.begin` on that have the same number of deliveries: at most
  /// `range.end`. Requires: `range` is not empty.
  [[nodiscard]] Offset end_of_equal(OffsetRange range) const;
  /// Returns the heap memory in bytes.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// Returns the sets. The last one is not empty.
  [[nodiscard]] const std::vector<log::OffsetSet>& sets() const { return sets_; }

 private:
  template <typename Change>
  void change(log::OffsetSet& set, Change&& change);
  void drop_empty();
  void resize(std::size_t sets);

  std::vector<log::OffsetSet> sets_;
  std::size_t bytes_ = 0;
};

}  // namespace lightq::broker
