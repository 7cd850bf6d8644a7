/// Lists delayed messages and acts on them, in bounded pieces. Layer: delayed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "delayed/delayed_message.hpp"
#include "delayed/schedule.hpp"

namespace lightq::broker {

/// One command on a schedule. Goes by number if the filter names numbers, otherwise by due time; then
/// DuePosition::number, or the whole DuePosition, is where it continues. Each call does about a millisecond
/// of work. Thread: the schedule's. Lifetime: the references outlive this object.
class DelayedQuery {
 public:
  DelayedQuery(Schedule& schedule, const DelayedFilter& filter) : schedule_(schedule), filter_(filter) {}

  /// Lists at most `most` messages from `from` on, and at most about 256 KiB of their content.
  DelayedList list(DuePosition from, std::size_t most);
  /// Acts on the messages from `from` on. `due`: of `reschedule`; `hurry` makes messages due at `now`.
  /// Errors: io_error, no_space: then nothing was changed by this call.
  Result<DelayedPiece> act(DelayedAction action, DuePosition from, Timestamp due, Timestamp now);

 private:
  /// The messages that a piece of work has found.
  struct Found {
    std::vector<WaitingMessage> messages;
    std::vector<std::uint64_t> absent;  ///< numbers that the filter names alone, and that do not wait
    DuePosition next;
    bool more = false;
  };
  Found find(DuePosition from, std::size_t most);
  void find_by_number(Found& found, std::uint64_t from, std::size_t most);
  void find_by_due(Found& found, DuePosition from, std::size_t most);
  [[nodiscard]] bool means(const WaitingMessage& message);
  Result<void> apply(DelayedAction action, const std::vector<std::uint64_t>& numbers, Timestamp due,
                     Timestamp now);

  Schedule& schedule_;
  const DelayedFilter& filter_;
};

}  // namespace lightq::broker
