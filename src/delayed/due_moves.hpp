/// The delayed messages that leave a schedule for the topic's log. Layer: delayed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <lightq/base/batch.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "delayed/delayed_message.hpp"
#include "delayed/move_packer.hpp"
#include "delayed/move_plan.hpp"
#include "delayed/schedule_limits.hpp"
#include "delayed/scheduled_messages.hpp"
#include "delayed/undone_moves.hpp"
#include "delayed/waiting_index.hpp"

namespace lightq::broker {

/// Messages on their way to the topic's log, packed as one batch.
struct MoveBatch {
  MovePacker builder;
  std::uint64_t first_sequence = 0;  ///< of a schedule on disk; the others follow
  std::vector<WaitingRun> runs;      ///< the messages

  [[nodiscard]] bool empty() const { return builder.empty(); }
  /// Returns the batch as the producer `id` appends it, with its kinds. Requires: not empty.
  std::span<std::byte> finish(std::uint64_t id, std::uint64_t first_sequence);
};

/// Plans and packs the messages that are due, and follows them until the topic's log has them durably:
/// see Schedule, which owns it and passes these calls on. In memory nothing is planned. Thread: one.
class DueMoves {
 public:
  /// A message is planned this long before it is due, at the latest, if the mover is on time.
  static constexpr std::int64_t plan_ahead_us = 20'000;

  /// Lifetime: both outlive this object.
  DueMoves(ScheduledMessages& messages, const ScheduleLimits& limits) : from_(messages), limits_(limits) {}

  /// Called when a message begins to wait at `position`.
  void note(DuePosition position) { plan_.note(position); }
  /// Returns true if the message at `position` is planned.
  [[nodiscard]] bool is_under_way(DuePosition position) const { return plan_.contains(position); }

  Result<bool> plan(Timestamp now, Offset log_end);
  void log_begins(Offset first);
  bool take_due(MoveBatch& batch, Timestamp now, std::size_t bytes_max);
  void moved(const MoveBatch& batch, Offset end, Timestamp now);
  void log_durable(Offset durable);
  /// Returns the number of the first message that leaves. Requires: take_due has just returned it.
  [[nodiscard]] std::uint64_t first_number() const {
    return from_.log() == nullptr ? from_.waiting().first()->number : plan_.front().position.number;
  }
  void durable_moved();
  [[nodiscard]] std::optional<Timestamp> next_time() const;

  /// Returns how many messages were moved that the topic's log may not have durably.
  [[nodiscard]] std::size_t undone() const { return undone_.size(); }
  /// Returns the lowest place of these, or nothing.
  [[nodiscard]] std::optional<std::uint64_t> lowest_undone_place() const { return undone_.lowest_place(); }
  /// Writes which messages are done, if no plan will do so soon. Does nothing if that fails: a later call
  /// tries again.
  void write_done(Timestamp now);

  /// Continues after a start. `undone`: in the order of their sequence numbers, and below `next_sequence`.
  /// `taken_back`: messages that were planned, and have not left.
  void restore(std::span<const UndoneMoves::Undone> undone, std::uint64_t next_sequence,
               std::vector<MovePlan::Planned> taken_back);

  [[nodiscard]] std::uint64_t moved_so_far() const { return moved_; }
  /// Returns the longest time between due time and log so far, in µs.
  [[nodiscard]] std::int64_t late_us_max() const { return late_us_max_; }

 private:
  /// The first messages of a run that were taken, or dropped because they are damaged. 0: none now.
  struct Taken {
    std::uint32_t messages = 0;
    bool are_damaged = false;
  };

  [[nodiscard]] WaitingIndex::Walk unplanned() const;
  [[nodiscard]] std::vector<WaitingRun> due_soon(Timestamp now) const;
  bool take_due_in_memory(MoveBatch& batch, Timestamp now, std::size_t bytes_max);
  Taken take(MoveBatch& batch, const WaitingRun& run, std::uint64_t sequence, std::size_t bytes_max);
  void add_plans(std::vector<std::vector<std::byte>>& records, std::span<const WaitingRun> runs,
                 std::uint64_t log_offset) const;
  [[nodiscard]] std::vector<std::vector<std::byte>> voids_besides(std::span<const WaitingRun> planned) const;
  void note_done(std::uint64_t sequence, std::uint32_t count);
  void add_done(std::vector<std::vector<std::byte>>& records) const;

  ScheduledMessages& from_;
  const ScheduleLimits& limits_;
  MovePlan plan_;
  std::vector<MovePlan::Planned> taken_back_;  // their last plan is void, and no record says so yet
  bool was_taken_back_ = false;                // the plan, by log_begins
  UndoneMoves undone_;                         // in the order of their numbers
  std::vector<NumberRange> done_;  // sequence numbers that are done, and have no record yet; ascending
  std::uint64_t moved_ = 0;
  std::int64_t late_us_max_ = 0;
};

}  // namespace lightq::broker
