/// The dead messages of a consumer group, as its cursor saves them. Layer: log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/types.hpp>

#include "log/offsets/offset_set.hpp"

namespace lightq::log {

/// Parts of a set by time: times ascend, and each differs from the one before. No offset is in two parts, and
/// no part is empty.
using TimedSets = std::vector<std::pair<Timestamp, OffsetSet>>;

/// The saved facts about the death of one message.
struct SavedDeath {
  Offset offset;
  Timestamp first_failure;
  Timestamp last_failure;
  std::string reason;  ///< at most SavedDead::reason_bytes_max bytes
  friend bool operator==(const SavedDeath&, const SavedDeath&) = default;
};

/// The messages of a cursor that have failed for good, and the times of first failures. All its messages are
/// unfinished. A value; copies share their sets.
struct SavedDead {
  static constexpr std::size_t records_max = 10'000;
  static constexpr std::size_t reason_bytes_max = 256;
  static constexpr std::size_t outbox_max = 1U << 20U;
  static constexpr std::size_t under_way_max = 256;
  static constexpr std::uint64_t first_number_max = std::uint64_t{1} << 62U;
  static constexpr std::size_t times_max = 64;

  OffsetSet parked;                 ///< they stay until a command takes them
  OffsetSet rejected;               ///< the dead messages that a consumer declared dead
  OffsetSet expired;                ///< the dead messages that expired; none is rejected
  OffsetSet outbox;                 ///< dead messages that wait for a transfer; none is parked
  std::vector<Offset> under_way;    ///< those whose transfer may be done already, by their numbers
  std::uint64_t first_number = 1;   ///< the transfer number of the first one; at least 1
  std::uint64_t incarnation = 0;    ///< of the transfer numbers; 0: no number was given yet
  std::uint64_t target = 0;         ///< the topic that may have letters of the incarnation; 0 if that is 0
  std::vector<SavedDeath> records;  ///< of some dead messages, by ascending offset
  TimedSets first_failures;         ///< unfinished messages that are not dead; at most `times_max` times

  /// Returns true if there is nothing to save.
  [[nodiscard]] bool empty() const {
    return parked.empty() && outbox.empty() && first_failures.empty() && incarnation == 0;
  }
  /// Returns the heap memory in bytes, including memory that copies share.
  [[nodiscard]] std::size_t bytes() const;
  /// Removes everything from `end` on.
  void cut_at(Offset end);
  friend bool operator==(const SavedDead&, const SavedDead&) = default;
};

}  // namespace lightq::log
