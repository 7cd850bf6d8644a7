/// A topic's known producers, as durable as the topic: the table, and when it is to be written. Layer:
/// delivery. The rules and why they are so: docs/log_format.md, "Producer file".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "broker/delivery/producer_file.hpp"
#include "broker/delivery/producer_table.hpp"
#include "log/log.hpp"

namespace lightq::broker {

/// How far a log goes.
struct LogEnds {
  Offset next;     ///< one past the newest message
  Offset durable;  ///< one past the last that survives a power cut

  static LogEnds of(const log::Log& log) { return {log.next_offset(), log.durable_offset()}; }
};

/// Decides what is written and when; somebody else writes it. No clock, no threads: the reactor's thread.
class DurableProducers {
 public:
  enum class Kept {
    in_memory,  ///< the topic's log does not outlive the process, and neither does this
    on_disk,
  };

  DurableProducers(Kept kept, ProducerTable table) : kept_(kept), table_(std::move(table)) {}

  /// What a start could not believe.
  struct Recovery {
    std::optional<std::string> doubt;  ///< why some who were known may be unknown now
    bool remove_file = false;          ///< the file is to be gone before anything is appended
  };
  /// What the file said, brought up to the log's end, before anything else. Errors: io_error, the log cannot
  /// be read now.
  Result<Recovery> recover(const ProducerSnapshot& found, log::Log& log);

  // What the table does, see there.

  /// The producer may be told so once this `change` is settled.
  ProducerTable::Opened open(session::ProducerIdentity wanted, std::uint64_t fresh_id, Timestamp now,
                             const ProducerTable::Opener& opener = {});
  void close(std::uint64_t id, Timestamp now) {
    table_.close(id, now);
    unsaved_ = true;
  }
  [[nodiscard]] Admission admit(const Sequences& batch) const { return table_.admit(batch); }
  /// At once after the append, before anything else is asked of this.
  void stored(const Sequences& batch, Timestamp now);
  /// Likewise after each append, whoever sent it: how much a start has to read.
  void appended(std::uint64_t bytes) { unsaved_bytes_ += bytes; }
  /// Nobody has been told of this id, and nobody will be.
  void forget(std::uint64_t id) {
    table_.forget(id);
    unsaved_ = true;
  }
  [[nodiscard]] const KnownProducer* find(std::uint64_t id) const { return table_.find(id); }
  /// Asks the processor for who stored last.
  void fetch_ahead_newest() const { table_.fetch_ahead_newest(); }
  [[nodiscard]] const ProducerTable& table() const { return table_; }

  // Who may be told what.

  /// Counts what must not be told to anybody before it survives a power cut: that there is a table at all,
  /// and who has taken an id over.
  [[nodiscard]] std::uint64_t change() const { return change_; }
  [[nodiscard]] bool is_settled(std::uint64_t change) const {
    return kept_ == Kept::in_memory || change <= settled_;
  }

  // Saving.

  /// What is to be written now, if anything is; then nothing more before `saved`.
  std::optional<EncodedProducers> take_save(LogEnds ends, Timestamp now);
  /// What became of it. Whoever waited for a change may have it now.
  void saved(bool well);
  /// Something is to be written now or later, though nothing else happens: keep asking.
  [[nodiscard]] bool wants_save() const;
  /// The log's beginning, up to where it ends now, may go once this change is settled: then a start does not
  /// need it. 0: it never does.
  std::uint64_t ask_for_save() {
    if (kept_ == Kept::in_memory || !in_use_) return 0;
    return asked_ = ++change_;
  }
  /// A start reads the log from here on to know what has become of the producers; the highest offset there
  /// is: it reads nothing.
  [[nodiscard]] Offset needed_from() const {
    return kept_ == Kept::on_disk && saved_as_of_ ? *saved_as_of_ : Offset{~std::uint64_t{0}};
  }
  /// What is before `end` would go if a start did not need it: there is to be a file that says so, within the
  /// usual second.
  void want_past(Offset end) {
    if ((pending_ ? pending_->snapshot.as_of : needed_from()) < end) unsaved_ = true;
  }
  /// A producer waits for a change, and that for the log to be durable up to where it is.
  [[nodiscard]] bool wants_flush(LogEnds ends) const;
  /// For a clean stop, behind the last append and flush: what is left to be written, so that the next start
  /// reads nothing of the log. Nothing may be out.
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
  bool in_use_ = false;              // there is a file, or there are producers
  bool unsaved_ = false;             // the table is another one than in the last snapshot
  std::uint64_t unsaved_bytes_ = 0;  // appended since
  std::uint64_t change_ = 1;         // the first: that there is a file, written by this process
  std::uint64_t asked_ = 0;          // somebody waits for this change
  std::uint64_t settled_ = 0;
  std::optional<Pending> pending_;
  std::optional<Offset> saved_as_of_;
  Timestamp taken_{INT64_MIN};  // when the last snapshot was
  bool failed_ = false;         // the last save
};

}  // namespace lightq::broker
