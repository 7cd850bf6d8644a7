/// The messages that leave next, with the sequence numbers that they have for ever. Layer: delayed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include <lightq/base/types.hpp>

#include "delayed/delayed_message.hpp"
#include "delayed/waiting_index.hpp"

namespace lightq::broker {

/// Keeps the planned messages in the order of their due times, which is that of their sequence numbers. An
/// entry has one message, or neighbours in number and sequence with one due time. docs/adr/0065-*.md gives
/// the reasons.
///
/// A sequence number is used for one message only. A message that arrives and sorts before planned ones
/// breaks the plan there: those behind it get new, higher numbers. Example: A has 5 and B has 6. X sorts
/// between them. The next plan gives 7 to X and 8 to B, and nobody ever gets 6.
///
/// Thread: one.
class MovePlan {
 public:
  struct Planned {
    std::uint64_t sequence = 0;    ///< of the first message
    DuePosition position;          ///< of the first one
    std::uint64_t log_offset = 0;  ///< of their record
    std::uint32_t count = 1;       ///< of messages

    /// Returns the entry without its first messages. Requires: at least one remains.
    [[nodiscard]] Planned rest(std::uint32_t messages) const {
      return {
          sequence + messages, {position.due_us, position.number + messages}, log_offset, count - messages};
    }
    /// Returns the number behind the last one.
    [[nodiscard]] std::uint64_t end() const { return position.number + count; }
    [[nodiscard]] DuePosition last() const { return {position.due_us, end() - 1}; }
  };

  [[nodiscard]] bool empty() const { return planned_.empty(); }
  /// Returns the number of messages.
  [[nodiscard]] std::size_t size() const { return messages_; }
  [[nodiscard]] std::size_t entries() const { return planned_.size(); }
  [[nodiscard]] const Planned& front() const { return planned_.front(); }
  [[nodiscard]] const Planned& at(std::size_t entry) const { return planned_[entry]; }
  /// Returns the position behind which nothing is planned.
  [[nodiscard]] std::optional<DuePosition> last() const {
    return planned_.empty() ? std::nullopt : std::optional(planned_.back().last());
  }
  [[nodiscard]] bool contains(DuePosition position) const;

  /// Called when a message begins to wait at `position`.
  void note(DuePosition position) {
    if (planned_.empty() || planned_.back().last() < position) return;
    if (!break_ || position < *break_) break_ = position;
  }
  /// Returns the first position of a message that waits between planned ones and has no number.
  [[nodiscard]] const std::optional<DuePosition>& broken_at() const { return break_; }
  /// Takes back the sequence numbers of the messages behind the break. Adds their entries to `taken_back`.
  void mend(std::vector<Planned>& taken_back);
  /// Takes back all sequence numbers. Adds their entries to `taken_back`.
  void clear(std::vector<Planned>& taken_back);

  [[nodiscard]] std::uint64_t next_sequence() const { return next_sequence_; }
  void set_next_sequence(std::uint64_t sequence) { next_sequence_ = sequence; }
  /// Adds messages to the end of the plan. `log_offset`: as their record states it. `end`: the record is
  /// durable when the schedule is, up to there.
  void add(std::span<const WaitingRun> runs, std::uint64_t log_offset, Offset end);
  /// Called when the schedule is durable up to `durable`.
  void durable_up_to(Offset durable);
  /// Returns true if the record of this number is durable. Only then the message may be appended.
  [[nodiscard]] bool is_durable(std::uint64_t sequence) const { return sequence < durable_below_; }
  /// Returns true if a record of the plan is not durable yet.
  [[nodiscard]] bool waits_for_disk() const { return !ends_.empty(); }

  /// Removes the first messages: they do not wait any more. Requires: the first entry has as many.
  void drop_front(std::uint32_t messages);

 private:
  struct End {
    std::uint64_t sequences_end = 0;
    Offset end;
  };
  void cut(std::deque<Planned>::iterator from, std::vector<Planned>& taken_back);

  std::deque<Planned> planned_;
  std::size_t messages_ = 0;
  std::deque<End> ends_;  // of records that are not durable
  std::optional<DuePosition> break_;
  std::uint64_t next_sequence_ = 0;
  std::uint64_t durable_below_ = 0;
};

}  // namespace lightq::broker
