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

namespace lightq::broker {

/// Keeps the planned messages in the order of their due times, which is that of their sequence numbers, and
/// those that were moved and are not yet durable in the topic's log. docs/adr/0065-*.md gives the reasons.
///
/// A sequence number is used for one message only. A message that arrives and sorts before planned ones
/// breaks the plan there: those behind it get new, higher numbers. Example: A has 5 and B has 6. X sorts
/// between them. The next plan gives 7 to X and 8 to B, and nobody ever gets 6.
///
/// Thread: one.
class MovePlan {
 public:
  struct Planned {
    std::uint64_t sequence = 0;
    DuePosition position;
    std::uint64_t log_offset = 0;  // of its record
  };

  [[nodiscard]] bool empty() const { return planned_.empty(); }
  [[nodiscard]] std::size_t size() const { return planned_.size(); }
  [[nodiscard]] const Planned& front() const { return planned_.front(); }
  [[nodiscard]] const Planned& at(std::size_t index) const { return planned_[index]; }
  /// Returns the position behind which nothing is planned.
  [[nodiscard]] std::optional<DuePosition> last() const {
    return planned_.empty() ? std::nullopt : std::optional(planned_.back().position);
  }
  [[nodiscard]] bool contains(DuePosition position) const;

  /// Called when a message begins to wait at `position`.
  void note(DuePosition position) {
    if (planned_.empty() || planned_.back().position < position) return;
    if (!break_ || position < *break_) break_ = position;
  }
  /// Returns the first position of a message that waits between planned ones and has no number.
  [[nodiscard]] const std::optional<DuePosition>& broken_at() const { return break_; }
  /// Takes back the numbers of the messages behind the break.
  void mend();
  /// Takes back all numbers.
  void clear() {
    planned_.clear();
    break_.reset();
  }

  [[nodiscard]] std::uint64_t next_sequence() const { return next_sequence_; }
  void set_next_sequence(std::uint64_t sequence) { next_sequence_ = sequence; }
  /// Adds messages to the end of the plan. `log_offset`: as their record states it. `end`: the record is
  /// durable when the schedule is, up to there.
  void add(std::span<const DuePosition> positions, std::uint64_t log_offset, Offset end);
  /// Called when the schedule is durable up to `durable`.
  void durable_up_to(Offset durable);
  /// Returns true if the record of this number is durable. Only then the message may be appended.
  [[nodiscard]] bool is_durable(std::uint64_t sequence) const { return sequence < durable_below_; }
  /// Returns true if a record of the plan is not durable yet.
  [[nodiscard]] bool waits_for_disk() const { return !ends_.empty(); }

  /// Removes the first message: it does not wait any more.
  void drop_front() {
    planned_.pop_front();
    if (planned_.empty()) break_.reset();
  }

 private:
  struct End {
    std::uint64_t sequences_end = 0;
    Offset end;
  };
  std::deque<Planned> planned_;
  std::deque<End> ends_;  // of records that are not durable
  std::optional<DuePosition> break_;
  std::uint64_t next_sequence_ = 0;
  std::uint64_t durable_below_ = 0;
};

}  // namespace lightq::broker
