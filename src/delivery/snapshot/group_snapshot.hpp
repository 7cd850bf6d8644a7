/// The state of a group at one moment, as it is saved. Layer: delivery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <lightq/base/types.hpp>

#include "delivery/dead/dead_messages.hpp"
#include "delivery/state/counted_ranges.hpp"
#include "delivery/state/group_time.hpp"
#include "delivery/state/waiting_messages.hpp"
#include "log/saved_state/unfinished.hpp"

namespace lightq::broker {

/// A list of messages in flight. Adding a range takes constant time: memory grows in pieces that never move.
/// A plain value for one thread at a time.
class InFlightList {
 public:
  /// Adds messages. The number of deliveries that is added last for a message counts. It includes the
  /// delivery under way.
  void add(OffsetRange range, std::uint32_t deliveries) {
    if (range.begin >= range.end) return;
    if (!pieces_.empty()) {
      CountedRange& last = pieces_.back().back();
      if (last.range.end == range.begin && last.deliveries == deliveries) {
        last.range.end = range.end;
        return;
      }
    }
    if (pieces_.empty() || pieces_.back().size() == piece_entries) {
      pieces_.emplace_back();
      // A list is short until it has filled a piece.
      if (pieces_.size() > 1) pieces_.back().reserve(piece_entries);
    }
    pieces_.back().push_back({range, deliveries});
  }
  void clear() { pieces_.clear(); }
  [[nodiscard]] bool empty() const { return pieces_.empty(); }
  /// Calls `visit(entry)` for each entry, in the order in which they were added.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const auto& piece : pieces_) {
      for (const CountedRange& entry : piece) visit(entry);
    }
  }

 private:
  static constexpr std::size_t piece_entries = 4096;
  std::vector<CountedRanges> pieces_;  // none is empty
};

/// The unfinished messages of a group at one moment. Taking it costs time by the number of sets; `unfinished`
/// does the work that takes time by the number of ranges. A value that any thread may use and destroy.
struct GroupSnapshot {
  Offset committed;  ///< all messages below are finished
  Offset next;       ///< the first message that was never delivered
  WaitingMessages waiting;
  /// The messages in flight. May also have messages that have left that state since: finished ones, and ones
  /// that are in `waiting`, which then counts.
  InFlightList in_flight;
  ClockReading clocks;                                 ///< for the due times
  std::shared_ptr<const DeadMessages> dead = nullptr;  ///< null: none

  /// Returns the form in which the state is saved. Messages in flight become ready, with their number of
  /// deliveries. Takes time by the number of ranges: call it on the encoding thread. Ignores messages outside
  /// [committed, next), which no cursor can have.
  [[nodiscard]] log::Unfinished unfinished() const;
};

}  // namespace lightq::broker
