/// Counts messages that the log has dropped before a cursor came to them. Layer: delivery.
#pragma once

#include <algorithm>
#include <cstdint>

#include <lightq/base/types.hpp>

#include "log/offsets/offset_set.hpp"

namespace lightq::broker {

/// Messages at a cursor that the log does not have any more. Each is there, finished by its expiry, or lost:
/// - *there* are those that were carried over: the cursor can still read them;
/// - *expired* are those of the others that had expired before they were dropped. They are finished;
/// - *lost* are all others. If the cursor keeps expired messages for its dead-letter topic, the expired ones
///   are lost too: each counts as expired since its expiry, and as lost since it was dropped.
/// Every count of dropped messages follows this rule. docs/protocol.md, "Time to live", states it.
struct DropCounts {
  std::uint64_t there = 0;
  std::uint64_t expired = 0;
  std::uint64_t lost = 0;
};

/// Counts the messages of `range`, which the log has dropped and the cursor has not passed.
/// `carried`: those that were carried over; null: none. `expired`: those that have expired; null: none.
/// `keeps`: the cursor keeps expired messages.
inline DropCounts dropped_in(OffsetRange range, const log::OffsetSet* carried, const log::OffsetSet* expired,
                             bool keeps) {
  DropCounts dropped;
  if (range.end <= range.begin) return dropped;
  if (expired != nullptr) dropped.expired = expired->count_in(range);
  if (carried != nullptr) {
    dropped.there = carried->count_in(range);
    for (auto run = carried->first_behind(range.begin); dropped.expired != 0 && run && run->begin < range.end;
         run = carried->first_behind(run->end)) {
      dropped.expired -=
          expired->count_in({std::max(run->begin, range.begin), std::min(run->end, range.end)});
    }
  }
  const std::uint64_t gone = distance(range.begin, range.end) - dropped.there;
  dropped.lost = keeps ? gone : gone - dropped.expired;
  return dropped;
}

}  // namespace lightq::broker
