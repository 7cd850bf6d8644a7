/// The stored form of a topic's groups, for tests of delivery.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "delivery/saves/group_cursors.hpp"
#include "delivery/topic.hpp"

namespace lightq::test {

/// Returns the cursors of all groups as a save stores them.
inline std::vector<log::NamedCursor> stored_cursors(broker::ConsumerGroups& groups,
                                                    const broker::ClockReading& clocks = {}) {
  broker::GroupCursors saves(groups);
  saves.begin();
  saves.collect(std::numeric_limits<std::size_t>::max(), clocks);
  return saves.take().finished();
}
/// Restores groups as a start does.
inline void restore_cursors(broker::Topic& topic, const std::vector<log::NamedCursor>& stored,
                            const broker::ClockReading& clocks = {}) {
  broker::GroupCursors(topic.groups()).restore(stored, topic.log().next_offset(), clocks);
}
/// Returns the finished ranges that a cursor stores above its offset.
inline std::vector<OffsetRange> processed(const log::NamedCursor& cursor) {
  return cursor.unfinished.processed(cursor.offset, std::numeric_limits<std::size_t>::max());
}

}  // namespace lightq::test
