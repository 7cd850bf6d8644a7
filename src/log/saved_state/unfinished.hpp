/// The messages that a consumer group has not finished, as its cursor saves them. Layer: log.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <lightq/base/types.hpp>

#include "log/offsets/offset_set.hpp"
#include "log/saved_state/saved_dead.hpp"

namespace lightq::log {

/// The unfinished messages of a cursor. Every message from the cursor's offset up to `next` that is not in
/// `messages` is processed. A value whose copies share their sets: a copy is a snapshot for another thread.
/// Example: of a cursor with offset 4, messages 4 to 9 were delivered; 5 and 6 are acknowledged. Then `next`
/// is 10 and `messages` is {[4, 5), [7, 10)}.
struct Unfinished {
  /// The number of delivery bits: a message has at most 2^32 - 1 deliveries.
  static constexpr std::size_t delivery_bits_max = 32;
  /// The highest number of parts that wait.
  static constexpr std::size_t delayed_max = 65'536;

  /// The first message that was never delivered. If it lies before the cursor's offset, there are no
  /// messages, and that offset counts instead.
  Offset next;
  OffsetSet messages;  ///< every unfinished message before `next`: ready, delayed or in flight
  /// Parts of `messages` that wait, by the wall time when each part is due: times ascend, and each differs
  /// from the one before. No message is in two parts, and no part is empty. At most
  /// `delayed_max` parts.
  TimedSets delayed = {};
  /// A message is in set b if its number of deliveries so far, exclusive-or 1, has bit b. So messages that
  /// were delivered once, as most were, are in no set. Parts of `messages`; at most `delivery_bits_max`, and
  /// the last one is not empty.
  std::vector<OffsetSet> delivery_bits = {};
  /// The messages that are not delivered any more. Their number of deliveries is that of their failures.
  SavedDead dead = {};

  /// Returns true if a cursor with this offset needs no more than its offset.
  [[nodiscard]] bool is_plain(Offset offset) const {
    return next <= offset && messages.empty() && dead.empty();
  }
  /// Returns the heap memory of all sets in bytes, including memory that copies share.
  [[nodiscard]] std::size_t bytes() const;
  /// Returns true if both are equal and share all sets. Takes constant time for each set.
  [[nodiscard]] bool shares_all_with(const Unfinished& other) const;
  /// Returns the processed ranges from `offset` on, ascending: the lowest `ranges_max` of them. Requires:
  /// `offset` is the cursor's.
  [[nodiscard]] std::vector<OffsetRange> processed(Offset offset, std::size_t ranges_max) const;
  /// Removes everything from `end` on, and lowers `next` to it. Returns true if that changed anything.
  bool cut_at(Offset end);
  friend bool operator==(const Unfinished&, const Unfinished&) = default;
};

/// Returns the unfinished messages of a cursor at `offset` behind which the ranges `processed` are processed,
/// and everything behind the last of them was never delivered. Requires: the ranges ascend, and touch neither
/// each other nor `offset`.
Unfinished unfinished_between(Offset offset, const std::vector<OffsetRange>& processed);

}  // namespace lightq::log
