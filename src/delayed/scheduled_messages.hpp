/// The delayed messages that wait in a schedule, with their content. Layer: delayed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <lightq/base/batch.hpp>
#include <lightq/base/types.hpp>

#include "delayed/delayed_bodies.hpp"
#include "delayed/delayed_message.hpp"
#include "delayed/sorted_blocks.hpp"
#include "delayed/waiting_index.hpp"
#include "log/log.hpp"

namespace lightq::broker {

/// Stores delayed messages, in a log or in memory, and finds those that wait: by number, by due time and by
/// place. A message's place is the offset of its newest copy, or the address of its memory (MemoryBodies).
/// Schedule owns it. Thread: one.
class ScheduledMessages {
 public:
  /// Keeps the messages in memory.
  ScheduledMessages() : waiting_(WaitingIndex::Places::equal) {}
  /// Keeps the messages in a log. Lifetime: `log` outlives this object.
  explicit ScheduledMessages(log::BatchLog& log) : log_(&log), stored_(std::make_unique<LogBodies>(log)) {}
  ScheduledMessages(const ScheduledMessages&) = delete;
  ScheduledMessages& operator=(const ScheduledMessages&) = delete;
  ~ScheduledMessages();

  /// Returns the log, or null if the messages are in memory.
  [[nodiscard]] log::BatchLog* log() const { return log_; }
  [[nodiscard]] const WaitingIndex& waiting() const { return waiting_; }
  /// Returns the number of the next message that is stored.
  [[nodiscard]] std::uint64_t next_number() const {
    return log_ == nullptr ? next_in_memory_ : log_->next_offset().value;
  }
  /// Returns the bytes that the waiting messages need in the topic's log, if each is alone in its batch.
  [[nodiscard]] std::uint64_t charged_bytes() const {
    return waiting_.bytes() + waiting_.size() * charge_of(0);
  }
  static constexpr std::uint64_t charge_of(std::uint64_t message_bytes) {
    return batch_layout::header_bytes + record_bytes(0) + message_bytes;
  }
  /// Returns how many messages were lost by damage, as far as it is known.
  [[nodiscard]] std::uint64_t corrupt() const { return corrupt_; }
  void count_corrupt(std::uint64_t messages) { corrupt_ += messages; }

  struct Stored {
    log::AppendResult result;
    DuePosition first;  ///< the first of the batch's messages in the order of due times, if it was appended
  };
  /// Stores a producer's batch: see Schedule::append.
  Stored append(std::span<std::byte> batch, Timestamp now);
  /// Returns the content of a message that waits.
  DelayedBody body_of(const WaitingMessage& message) {
    return bodies_of({message.number, message.due_us, message.place, message.bytes}).first();
  }
  /// Returns the contents of the first messages of a run that waits.
  DelayedBodies bodies_of(const WaitingRun& run) {
    return log_ == nullptr ? MemoryBodies::read(run) : stored_->read(run.place, run.count);
  }
  /// Changes the due time of `count` messages from `number` on, as far as they wait.
  void set_due(std::uint64_t number, std::uint32_t count, std::int64_t due_us);
  /// Forgets `count` messages from `number` on, as far as they wait.
  void forget(std::uint64_t number, std::uint32_t count = 1);
  /// Forgets a message that cannot be read any more, and counts it.
  void drop_damaged(std::uint64_t number) {
    forget(number);
    ++corrupt_;
  }

  // Messages on disk, by place.

  /// Returns the message with the lowest place that is not below `at`, or nothing.
  [[nodiscard]] std::optional<WaitingMessage> from_place(std::uint64_t at);
  /// Returns the lowest place of a message that waits.
  [[nodiscard]] std::optional<std::uint64_t> lowest_place() {
    const auto lowest = from_place(0);
    return lowest ? std::optional(lowest->place) : std::nullopt;
  }
  /// Notes that a copy of the message is at `place`. Requires: the message waits; no other one is there.
  void copied(std::uint64_t number, std::uint64_t place);

  // Restoring from a log.

  void load_begin() { waiting_.load_begin(); }
  void load_end() { waiting_.load_end(); }
  /// Adds messages. Requires: on disk; their numbers do not wait.
  void load(const WaitingRun& run);

 private:
  struct Relocated {
    std::uint64_t place = 0;
    std::uint64_t number = 0;
    [[nodiscard]] std::uint64_t key() const { return place; }
  };
  Stored append_to_memory(const BatchView& batch, Timestamp now);
  void drop_kept(const WaitingRun& run);
  void pack(std::uint64_t place);

  log::BatchLog* log_ = nullptr;  // null: in memory
  std::unique_ptr<LogBodies> stored_;
  std::uint64_t next_in_memory_ = 1;
  WaitingIndex waiting_;
  SortedBlocks<Relocated> relocated_;  // the messages that were copied
  std::uint64_t in_place_from_ = 0;    // messages with lower numbers were copied
  std::uint64_t corrupt_ = 0;
};

}  // namespace lightq::broker
