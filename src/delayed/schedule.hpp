/// A topic's schedule: the delayed messages that wait, and which of them leave next. Layer: delayed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <lightq/base/batch.hpp>
#include <lightq/base/limits.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "delayed/cancelled_numbers.hpp"
#include "delayed/delayed_bodies.hpp"
#include "delayed/delayed_message.hpp"
#include "delayed/move_plan.hpp"
#include "delayed/schedule_record.hpp"
#include "delayed/undone_moves.hpp"
#include "delayed/waiting_index.hpp"
#include "log/log.hpp"

namespace lightq::broker {

/// Messages on their way to the topic's log, packed as one batch.
struct MoveBatch {
  BatchBuilder builder;
  AttributeKinds kinds;
  std::uint64_t first_sequence = 0;  ///< of a schedule on disk; the others follow
  std::vector<DuePosition> positions;

  /// Returns the batch as the producer `id` appends it, with its kinds. Requires: not empty.
  std::span<std::byte> finish(std::uint64_t id, std::uint64_t first_sequence);
};

/// Bounds of a schedule's work, which tests make smaller.
struct ScheduleLimits {
  /// Old files are cleared when the log has this many bytes more than twice those of the waiting messages.
  std::uint64_t garbage_bytes = 4 * limits::MiB;
  std::size_t copy_bytes = 256 * limits::KiB;  ///< copied by one call of maintain, about
  std::size_t messages = limits::delayed_messages_max;
  std::size_t planned = std::size_t{32} * schedule_record_numbers_max;  ///< the most planned messages: 8 MiB
  std::size_t planned_at_once = std::size_t{2} * schedule_record_numbers_max;  ///< by one call
  /// A plan that is broken is mended at once if it is not longer, otherwise when its record is durable.
  std::size_t mended_at_once = 256;
};

/// Keeps delayed messages until they are due. On disk it is a log of its own, from which a start restores it
/// (`restore`): batches of producers, with due times, and records of the broker (ScheduleRecord), which are
/// batches without a producer. A message's number is the offset of its first copy. In memory it has no log.
///
/// A message leaves in these steps: its plan is written (`plan`) and becomes durable; at its due time it is
/// packed (`take_due`), the caller appends it to the topic's log and calls `moved`; when that log is durable,
/// `log_durable` finishes it. docs/adr/0065-*.md shows why no crash loses or doubles a message.
///
/// The caller owns log, clock and the topic's log. Thread: one. Has no clock, and starts no threads.
class Schedule {
 public:
  /// Makes a schedule in memory.
  Schedule() = default;
  /// Makes a schedule on disk. Call `restore` next. Lifetime: `log` outlives this object.
  explicit Schedule(log::BatchLog& log, const ScheduleLimits& limits = {});

  /// The topic's log at a start.
  struct TopicLog {
    log::BatchLog& log;
    std::uint64_t producer_id = 0;     ///< of the mover
    std::uint64_t sequences_from = 0;  ///< in the log, the mover's numbers begin here
    std::uint64_t expected = 0;  ///< the number that the log expects from the mover, less sequences_from
  };
  /// Restores the messages from the schedule's log, and looks in the topic's log which of the planned ones
  /// have left. Requires: called once, before anything else. Errors: foreign_format (a record of a newer
  /// version), io_error (a log cannot be read now).
  Result<void> restore(const TopicLog& topic);

  // Messages.

  /// Returns true if the index has place for `messages` more. A start restores more than that.
  [[nodiscard]] bool has_place_for(std::size_t messages) const {
    return messages <= limits_.messages && waiting_.size() <= limits_.messages - messages;
  }
  /// Stores a producer's batch. `batch`: not compressed, and with due times. In memory the result's base is
  /// the number of the first message. Throws std::bad_alloc (in memory; nothing has changed then).
  log::AppendResult append(std::span<std::byte> batch, Timestamp now);
  [[nodiscard]] const WaitingIndex& waiting() const { return waiting_; }
  /// Returns the content of a message that waits.
  DelayedBody body_of(const WaitingMessage& message);
  /// Returns true if the message's due time cannot be changed any more.
  [[nodiscard]] bool is_under_way(const WaitingMessage& message) const {
    return plan_.contains(message.position());
  }
  [[nodiscard]] std::uint64_t next_number() const;
  /// Returns the bytes that the waiting messages need in the topic's log, if each is alone in its batch. So
  /// moving them never needs more than they have.
  [[nodiscard]] std::uint64_t charged_bytes() const {
    return waiting_.bytes() + waiting_.size() * charge_of(0);
  }
  static constexpr std::uint64_t charge_of(std::uint64_t message_bytes) {
    return batch_layout::header_bytes + record_bytes(0) + message_bytes;
  }

  // Changes by commands. Each is one record: all or nothing. Requires: at most schedule_record_numbers_max
  // numbers, all of messages that wait.

  /// Removes messages. Errors: io_error, no_space.
  Result<void> cancel(std::span<const std::uint64_t> numbers, Timestamp now);
  /// Changes due times. Requires: none is under way. Errors: as for cancel.
  Result<void> set_due(std::span<const std::uint64_t> numbers, Timestamp due, Timestamp now);
  /// Returns true if a command has cancelled this message, as far as it is still known.
  [[nodiscard]] bool was_cancelled(std::uint64_t number) const;

  // Moving.

  /// A message is planned this long before it is due, at the latest, if the mover is on time.
  static constexpr std::int64_t plan_ahead_us = 20'000;
  /// Plans messages that are due soon. `log_end`: the next offset of the topic's log. Returns true if there
  /// is a new record, which should become durable soon. Errors: io_error, no_space: try again later.
  Result<bool> plan(Timestamp now, Offset log_end);
  /// Called before messages leave. `first`: the first offset of the topic's log now. If the log has dropped
  /// messages behind the offset that the plan states, the plan is taken back: a start could not tell whether
  /// its messages were among those. `plan` writes another one. Does so once until messages have left, so that
  /// a log that drops messages at any time does not hold the others up.
  void log_begins(Offset first);
  /// Packs the messages that leave now, at most about `bytes_max` bytes, or one. Returns false if there is
  /// none. Messages that are damaged are left out and counted. The caller appends the batch to the topic's
  /// log and calls `moved`, or drops it.
  bool take_due(MoveBatch& batch, Timestamp now, std::size_t bytes_max);
  /// Called when the batch is in the topic's log. `end`: the end of that log now.
  void moved(const MoveBatch& batch, Offset end, Timestamp now);
  /// Called when the topic's log is durable up to `durable`.
  void log_durable(Offset durable);
  /// Removes the first message, because the topic can never store it, with a record. Returns its number.
  /// Requires: take_due has just returned it. Errors: io_error, no_space: it stays.
  Result<std::uint64_t> give_up_first(Timestamp now);
  /// Called when more of the schedule's log is durable.
  void durable_moved();
  /// Returns when to call `plan` or `take_due` next; nothing if not before something else happens.
  [[nodiscard]] std::optional<Timestamp> next_time() const;
  /// Returns true if messages were moved that the topic's log may not have durably.
  [[nodiscard]] bool awaits_log() const { return !undone_.empty(); }
  /// Returns how many these are.
  [[nodiscard]] std::size_t undone() const { return undone_.size(); }

  // Upkeep of the log.

  /// Writes which messages are done, copies old messages to the end if their files are mostly
  /// done, and drops old files. A bounded amount. Returns true if there is more to do.
  bool maintain(Timestamp now);
  /// Returns true if a copy must become durable before files can be dropped.
  [[nodiscard]] bool wants_flush() const;

  [[nodiscard]] DelayedStats stats() const;

 private:
  friend class ScheduleReplay;
  struct Relocated {
    std::uint64_t place = 0;
    std::uint64_t number = 0;
    [[nodiscard]] std::uint64_t key() const { return place; }
  };
  enum class Taken : std::uint8_t { yes, skipped, stop };

  void add(const WaitingMessage& message);
  void forget(std::uint64_t number);
  log::AppendResult append_to_memory(const BatchView& batch, Timestamp now);
  void note_done(std::uint64_t sequence);
  void add_done(std::vector<std::vector<std::byte>>& records);
  Result<Offset> append_records(std::span<const std::vector<std::byte>> records, Timestamp now);
  [[nodiscard]] std::vector<DuePosition> due_soon(Timestamp now) const;
  [[nodiscard]] const DuePosition* first_unplanned() const;
  Taken take(MoveBatch& batch, DuePosition position, std::uint64_t sequence, std::size_t bytes_max);
  void drop_damaged(std::uint64_t number);
  [[nodiscard]] std::optional<std::uint64_t> lowest_place();
  bool copy_oldest(Timestamp now);
  void drop_files();

  log::BatchLog* log_ = nullptr;  // null: in memory
  ScheduleLimits limits_;
  std::unique_ptr<LogBodies> stored_;
  MemoryBodies kept_;
  std::uint64_t next_in_memory_ = 1;
  WaitingIndex waiting_;
  MovePlan plan_;
  bool was_taken_back_ = false;    // the plan, by log_begins
  UndoneMoves undone_;             // in the order of their numbers
  std::vector<NumberRange> done_;  // sequence numbers that are done, and have no record yet; ascending
  SortedBlocks<Relocated> relocated_;
  std::uint64_t in_place_from_ = 0;  // messages with lower numbers were copied
  Offset copied_to_;                 // the end of the last copies
  std::uint64_t copied_from_ = 0;    // nothing at or behind it is dropped before copied_to_ is durable
  CancelledNumbers cancelled_;
  DelayedStats counts_;
};

}  // namespace lightq::broker
