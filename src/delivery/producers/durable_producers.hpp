/// Keeps a topic's known producers as durable as the topic, and decides when their table is saved.
/// Layer: delivery. docs/log_format.md, "Producer file", gives the rules and the reasons.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "delivery/producers/producer_file.hpp"
#include "delivery/producers/producer_table.hpp"
#include "log/log.hpp"

namespace lightq::broker {

/// The end of a log.
struct LogEnds {
  Offset next;     ///< one past the newest message
  Offset durable;  ///< one past the last message that survives a power cut

  static LogEnds of(const log::BatchLog& log) { return {log.next_offset(), log.durable_offset()}; }
};

/// Owns the table of known producers and decides what is saved and when. The caller writes the file.
/// Thread: the reactor's. Has no clock and starts no threads.
class DurableProducers {
 public:
  enum class Kept {
    in_memory,  ///< the topic's log does not outlive the process, and neither does the table
    on_disk,
  };

  DurableProducers(Kept kept, ProducerTable table) : kept_(kept), table_(std::move(table)) {}

  /// The result of `recover`.
  struct Recovery {
    std::optional<std::string> doubt;  ///< why some producers may have been forgotten
    bool remove_file = false;          ///< the caller must remove the file before anything is appended
  };
  /// Restores the table from the file's snapshot and brings it up to the log's end. Requires: nothing else
  /// was called before. Errors: io_error if the log cannot be read now.
  Result<Recovery> recover(const ProducerSnapshot& found, log::BatchLog& log);

  // Calls that ProducerTable documents.

  /// Opens a producer. The caller answers the producer only once the present `change()` is settled.
  ProducerTable::Opened open(ProducerIdentity wanted, std::uint64_t fresh_id, Timestamp now,
                             const ProducerTable::Opener& opener = {});
  void close(std::uint64_t id, Timestamp now) {
    table_.close(id, now);
    unsaved_ = true;
  }
  [[nodiscard]] Admission admit(const Sequences& batch) const { return table_.admit(batch); }
  /// Records that the batch is in the log. Requires: called immediately after the append, before any other
  /// call.
  void stored(const Sequences& batch, Timestamp now);
  /// Counts the bytes of an append by any producer: a start would have to read them. Requires: called after
  /// each append.
  void appended(std::uint64_t bytes) { unsaved_bytes_ += bytes; }
  /// Forgets an id that no client knows and that no client will receive.
  void forget(std::uint64_t id) {
    table_.forget(id);
    unsaved_ = true;
  }
  [[nodiscard]] const KnownProducer* find(std::uint64_t id) const { return table_.find(id); }
  /// Prefetches the producer that stored most recently.
  void fetch_ahead_newest() const { table_.fetch_ahead_newest(); }
  [[nodiscard]] const ProducerTable& table() const { return table_; }

  // Changes that must be durable before a client learns of them.

  /// Returns the number of the latest change that must survive a power cut before any client learns of it.
  /// Such changes are the first save of this process, and the takeover of an id with a later epoch.
  [[nodiscard]] std::uint64_t change() const { return change_; }
  [[nodiscard]] bool is_settled(std::uint64_t change) const {
    return kept_ == Kept::in_memory || change <= settled_;
  }

  // Saving.

  /// Returns the snapshot to write now, or nothing. After a snapshot, returns nothing until `saved` is
  /// called.
  std::optional<EncodedProducers> take_save(LogEnds ends, Timestamp now);
  /// Reports whether the snapshot was written. If `well`, clients that wait for its change may be answered
  /// now.
  void saved(bool well);
  /// Returns true if a save is due now or later even without further events. The caller must keep calling
  /// take_save.
  [[nodiscard]] bool wants_save() const;
  /// Requests a save so that the log up to its present end can be removed. Returns the change to wait for:
  /// once it is settled, a start no longer needs those messages. Returns 0 if a start never needs them.
  std::uint64_t ask_for_save() {
    if (kept_ == Kept::in_memory || !in_use_) return 0;
    return asked_ = ++change_;
  }
  /// Returns the offset from which a start reads the log to restore its producers. Returns the highest offset
  /// if a start reads nothing.
  [[nodiscard]] Offset needed_from() const {
    return kept_ == Kept::on_disk && saved_as_of_ ? *saved_as_of_ : Offset{~std::uint64_t{0}};
  }
  /// Asks for a snapshot as of `end` or later, within the usual second. The messages before `end` can be
  /// removed once it is saved.
  void want_past(Offset end) {
    if ((pending_ ? pending_->snapshot.as_of : needed_from()) < end) unsaved_ = true;
  }
  /// Returns the offset before which everything must become durable before the snapshot that a producer waits
  /// for can be written. Returns nothing if no producer waits for that.
  [[nodiscard]] std::optional<Offset> wants_flush(LogEnds ends) const;
  /// Returns the last snapshot to write at a clean stop, so that the next start reads nothing of the log.
  /// Requires: the last append and flush are done, and no snapshot is being written.
  std::optional<EncodedProducers> take_last_save(LogEnds ends);

 private:
  struct Pending {
    ProducerSnapshot snapshot;
    std::uint64_t change = 0;
    bool out = false;
  };
  [[nodiscard]] bool somebody_waits() const { return settled_ < asked_; }
  [[nodiscard]] bool is_outdated() const;
  void take_snapshot(Offset as_of);

  Kept kept_;
  ProducerTable table_;
  bool in_use_ = false;              // a file or producers exist
  bool unsaved_ = false;             // the table differs from the last snapshot
  std::uint64_t unsaved_bytes_ = 0;  // appended since the last snapshot
  std::uint64_t change_ = 1;         // change 1: this process has written the file
  std::uint64_t asked_ = 0;          // the latest change that a caller waits for
  std::uint64_t settled_ = 0;
  std::optional<Pending> pending_;
  std::optional<Offset> saved_as_of_;
  Timestamp taken_{INT64_MIN};  // when the last snapshot was taken
  bool failed_ = false;         // the last save failed
};

}  // namespace lightq::broker
