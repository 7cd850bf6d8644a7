/// Numbers of hand-outs in the client, and sets of offsets by their number. docs/session.md, "Leases".
/// Layer: client.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <lightq/base/types.hpp>
#include <lightq/detail/offset_ranges.hpp>

namespace lightq::inline v1 {

/// The number of a hand-out. The upper half tells the connections of a consumer apart, the lower half is the
/// number on the wire; 0 if the consumer has no leases. A later hand-out has a greater number.
using HandOut = std::uint64_t;

/// Returns the hand-out with the number `number` on the wire, over the connection with this number.
constexpr HandOut hand_out_of(std::uint64_t connection, std::uint32_t number) {
  return connection << 32U | number;
}
/// Returns the number on the wire.
constexpr std::uint32_t wire_number(HandOut hand_out) {
  return static_cast<std::uint32_t>(hand_out);
}

/// Sets of offsets by hand-out. Adding is cheap for the hand-out that was added last: mostly there is only
/// one. A value for one thread.
class HandOutRanges {
 public:
  /// Offsets of one hand-out.
  struct Part {
    HandOut hand_out = 0;
    std::vector<OffsetRange> ranges;  ///< ascending; they do not touch each other
  };

  void add(OffsetRange range, HandOut hand_out) {
    if (hand_out != hand_out_) [[unlikely]]
      turn_to(hand_out);
    ranges_.add(range);
  }
  [[nodiscard]] bool empty() const { return ranges_.empty() && others_.empty(); }
  /// Returns the number of ranges of the hand-out that was added last.
  [[nodiscard]] std::size_t size() const { return ranges_.size(); }
  void clear() {
    ranges_.clear();
    others_.clear();
  }
  /// Removes and returns up to `most` ranges of one hand-out. Requires: not empty().
  Part take_first(std::size_t most) {
    if (ranges_.empty()) {
      hand_out_ = others_.back().first;
      ranges_ = std::move(others_.back().second);
      others_.pop_back();
    }
    return {hand_out_, ranges_.take_first(most)};
  }

 private:
  /// Makes `hand_out` the one that is cheap to add to.
  [[gnu::noinline]] void turn_to(HandOut hand_out) {
    if (!ranges_.empty()) others_.emplace_back(hand_out_, std::exchange(ranges_, {}));
    hand_out_ = hand_out;
    const auto found = std::ranges::find(others_, hand_out, &std::pair<HandOut, OffsetRanges>::first);
    if (found == others_.end()) return;
    ranges_ = std::move(found->second);
    others_.erase(found);
  }

  HandOut hand_out_ = 0;  // of ranges_
  OffsetRanges ranges_;
  std::vector<std::pair<HandOut, OffsetRanges>> others_;  // none is empty
};

}  // namespace lightq::inline v1
