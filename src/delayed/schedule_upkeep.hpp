/// Keeps a schedule's log small. Layer: delayed.
#pragma once

#include <cstdint>

#include <lightq/base/types.hpp>

#include "delayed/cancelled_numbers.hpp"
#include "delayed/due_moves.hpp"
#include "delayed/schedule_limits.hpp"
#include "delayed/scheduled_messages.hpp"

namespace lightq::broker {

/// Copies old messages to the end of a schedule's log if their files are mostly done, and drops the files
/// that a start does not need. The last file cannot be dropped: if all waiting messages are in it and nothing
/// has been written for quiet_us, another file begins, so that it can. Does nothing for messages in memory.
/// Schedule owns it. Thread: one.
class ScheduleUpkeep {
 public:
  /// Lifetime: all of them outlive this object.
  ScheduleUpkeep(ScheduledMessages& messages, DueMoves& moves, CancelledNumbers& cancelled,
                 const ScheduleLimits& limits)
      : messages_(messages), moves_(moves), cancelled_(cancelled), limits_(limits) {}

  /// Does a bounded amount. Returns true if there is more to do.
  bool maintain(Timestamp now);
  /// Returns true if a copy must become durable before files can be dropped.
  [[nodiscard]] bool wants_flush() const {
    return messages_.log() != nullptr && messages_.log()->durable_offset() < copied_to_;
  }

 private:
  static constexpr std::int64_t quiet_us = 1'000'000;

  bool copy_oldest(Timestamp now);
  void drop_files();
  bool begin_file_if_quiet(Timestamp now);

  ScheduledMessages& messages_;
  DueMoves& moves_;
  CancelledNumbers& cancelled_;
  const ScheduleLimits& limits_;
  Offset copied_to_;               // the end of the last copies
  std::uint64_t copied_from_ = 0;  // nothing at or behind it is dropped before copied_to_ is durable
  Offset seen_end_;                // the end of the log when something had been written the last time
  Timestamp quiet_since_;          // when that was noticed
};

}  // namespace lightq::broker
