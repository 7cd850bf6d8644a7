/// A topic's schedule: the delayed messages that wait, and which of them leave next. Layer: delayed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "delayed/cancelled_numbers.hpp"
#include "delayed/delayed_bodies.hpp"
#include "delayed/delayed_message.hpp"
#include "delayed/due_moves.hpp"
#include "delayed/schedule_limits.hpp"
#include "delayed/schedule_record.hpp"
#include "delayed/schedule_upkeep.hpp"
#include "delayed/scheduled_messages.hpp"
#include "delayed/waiting_index.hpp"
#include "log/log.hpp"

namespace lightq::broker {

/// Keeps delayed messages until they are due. On disk it is a log of its own, from which a start restores it
/// (`restore`): batches of producers, with due times, and records of the broker (ScheduleRecord), which are
/// batches without a producer. A message's number is the offset of its first copy. In memory it has no log.
///
/// A message leaves in these steps: its plan is written (`plan`) and becomes durable; at its due time it is
/// packed (`take_due`), the caller appends it to the topic's log and calls `moved`; when that log is durable,
/// `log_durable` finishes it. docs/adr/0065-*.md shows why no crash loses or doubles a message.
///
/// Connects its parts: the messages that wait (ScheduledMessages), those that leave (DueMoves), and the
/// upkeep of the log (ScheduleUpkeep). Applies commands itself.
///
/// The caller owns log, clock and the topic's log. Thread: one. Has no clock, and starts no threads.
class Schedule {
 public:
  /// Makes a schedule in memory.
  Schedule() = default;
  /// Makes a schedule on disk. Call `restore` next. Lifetime: `log` outlives this object.
  explicit Schedule(log::BatchLog& log, const ScheduleLimits& limits = {})
      : limits_(limits), messages_(log) {}
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

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
    return messages <= limits_.messages && waiting().size() <= limits_.messages - messages;
  }
  /// Stores a producer's batch. `batch`: not compressed, and with due times. In memory the result's base is
  /// the number of the first message. Throws std::bad_alloc (in memory; nothing has changed then).
  log::AppendResult append(std::span<std::byte> batch, Timestamp now);
  [[nodiscard]] const WaitingIndex& waiting() const { return messages_.waiting(); }
  /// Returns the content of a message that waits.
  DelayedBody body_of(const WaitingMessage& message) { return messages_.body_of(message); }
  /// Returns true if the message's due time cannot be changed any more.
  [[nodiscard]] bool is_under_way(const WaitingMessage& message) const {
    return moves_.is_under_way(message.position());
  }
  [[nodiscard]] std::uint64_t next_number() const { return messages_.next_number(); }
  /// Returns the bytes that the waiting messages need in the topic's log, if each is alone in its batch. So
  /// moving them never needs more than they have.
  [[nodiscard]] std::uint64_t charged_bytes() const { return messages_.charged_bytes(); }
  static constexpr std::uint64_t charge_of(std::uint64_t message_bytes) {
    return ScheduledMessages::charge_of(message_bytes);
  }

  // Changes by commands. Each is one record: all or nothing. Requires: at most schedule_record_numbers_max
  // numbers, all of messages that wait.

  /// Removes messages. Errors: io_error, no_space.
  Result<void> cancel(std::span<const std::uint64_t> numbers, Timestamp now);
  /// Changes due times. Requires: none is under way. Errors: as for cancel.
  Result<void> set_due(std::span<const std::uint64_t> numbers, Timestamp due, Timestamp now);
  /// Returns true if a command has cancelled this message, as far as it is still known.
  [[nodiscard]] bool was_cancelled(std::uint64_t number) const { return cancelled_.contains(number); }

  // Moving.

  /// A message is planned this long before it is due, at the latest, if the mover is on time.
  static constexpr std::int64_t plan_ahead_us = DueMoves::plan_ahead_us;
  /// Plans messages that are due soon. `log_end`: the next offset of the topic's log. Returns true if there
  /// is a new record, which should become durable soon. Errors: io_error, no_space: try again later.
  Result<bool> plan(Timestamp now, Offset log_end) { return moves_.plan(now, log_end); }
  /// Called before messages leave. `first`: the first offset of the topic's log now. If the log has dropped
  /// messages behind the offset that the plan states, the plan is taken back: a start could not tell whether
  /// its messages were among those. `plan` writes another one. Does so once until messages have left, so that
  /// a log that drops messages at any time does not hold the others up.
  void log_begins(Offset first) { moves_.log_begins(first); }
  /// Packs the messages that leave now, at most about `bytes_max` bytes, or one. Returns false if there is
  /// none. Messages that are damaged are left out and counted. The caller appends the batch to the topic's
  /// log and calls `moved`, or drops it.
  bool take_due(MoveBatch& batch, Timestamp now, std::size_t bytes_max) {
    return moves_.take_due(batch, now, bytes_max);
  }
  /// Called when the batch is in the topic's log. `end`: the end of that log now.
  void moved(const MoveBatch& batch, Offset end, Timestamp now) { moves_.moved(batch, end, now); }
  /// Called when the topic's log is durable up to `durable`.
  void log_durable(Offset durable) { moves_.log_durable(durable); }
  /// Removes the first message, because the topic can never store it, with a record. Returns its number.
  /// Requires: take_due has just returned it. Errors: io_error, no_space: it stays.
  Result<std::uint64_t> give_up_first(Timestamp now);
  /// Called when more of the schedule's log is durable.
  void durable_moved() { moves_.durable_moved(); }
  /// Returns when to call `plan` or `take_due` next; nothing if not before something else happens.
  [[nodiscard]] std::optional<Timestamp> next_time() const { return moves_.next_time(); }
  /// Returns true if messages were moved that the topic's log may not have durably.
  [[nodiscard]] bool awaits_log() const { return moves_.undone() != 0; }
  /// Returns how many these are.
  [[nodiscard]] std::size_t undone() const { return moves_.undone(); }

  // Upkeep of the log.

  /// Writes which messages are done, copies old messages to the end if their files are mostly
  /// done, and drops old files. A bounded amount. Returns true if there is more to do.
  bool maintain(Timestamp now) { return upkeep_.maintain(now); }
  /// Returns true if a copy must become durable before files can be dropped.
  [[nodiscard]] bool wants_flush() const { return upkeep_.wants_flush(); }

  [[nodiscard]] DelayedStats stats() const;

 private:
  Result<void> write(const std::vector<std::byte>& record, Timestamp now);

  const ScheduleLimits limits_;
  ScheduledMessages messages_;
  DueMoves moves_{messages_, limits_};
  CancelledNumbers cancelled_;
  ScheduleUpkeep upkeep_{messages_, moves_, cancelled_, limits_};
  std::uint64_t cancelled_so_far_ = 0;
};

}  // namespace lightq::broker
