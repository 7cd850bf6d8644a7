/// A user of a log and its cursor on an explored disk. It checks the log's promises.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <lightq/base/batch.hpp>

#include "explorer/history.hpp"
#include "log/format/open_batch.hpp"
#include "log/saved_state/cursor_file.hpp"
#include "log/segment_log/segment_log.hpp"
#include "support/explorer_storage.hpp"

namespace lightq::test {

/// How the previous life ended. It decides which messages must still be there.
enum class Ending {
  kill,       ///< everything appended is there
  power_cut,  ///< everything durable is there
};

/// Appends, flushes, runs jobs and commits. After each opening it reads everything and compares it with
/// `history`. `violation` keeps the first broken promise. The life of a process lasts from `open` to `close`.
class LogClient {
 public:
  static constexpr const char* directory = "/topics/1";
  static constexpr const char* pool_directory = "/pool";

  LogClient(ExplorerStorage& storage, Payloads& payloads);
  ~LogClient() { close(); }
  LogClient(const LogClient&) = delete;
  LogClient& operator=(const LogClient&) = delete;

  log::SegmentLogOptions options;
  std::size_t pool_files_max = 3;
  History history;
  Timestamp now{1'000'000'000'000};
  std::optional<std::string> violation;
  /// True while storage calls are made to fail. Opening may then fail too, and its result is not compared.
  bool calls_fail = false;
  /// True if the previous life may have ended while it opened the log. It may have found and sealed damage,
  /// which this life does not find before it reads the batch.
  bool died_opening = false;

  /// Opens the log that `ending` left and compares it. The history then continues with the messages that are
  /// there. Returns false if the log does not open.
  bool open(Ending ending);
  /// Ends this life without closing the log, as a kill would.
  void close();
  void move_to(ExplorerStorage& storage) { storage_ = &storage; }
  [[nodiscard]] ExplorerStorage& storage() { return *storage_; }
  [[nodiscard]] log::SegmentLog* log() { return log_.get(); }

  [[nodiscard]] const Payloads& payloads() const { return payloads_; }

  log::AppendOutcome append(const std::vector<std::size_t>& sizes);
  // The functions for options.mapped_writes are in packing_client.cpp.
  /// Adds a message to the open batch. Begins a batch if necessary.
  log::AppendOutcome pack(std::size_t bytes);
  /// Completes the open batch, if there is one. Every other call except those of jobs does this first.
  void finish_batch();
  /// Packs a message, or finishes the batch, but then undoes the last stores, as a kill in the middle leaves
  /// them. `eighths` chooses how many stores are undone.
  void pack_half(std::size_t bytes, std::uint64_t eighths);
  void finish_batch_half(std::uint64_t eighths);
  /// Called after each store, so that the disk can act as if the system wrote it back now.
  std::function<void()> on_store;
  /// Closes the log as for a clean stop. The log stays open.
  bool close_log();
  bool flush();
  void make_room(std::size_t bytes, Offset limit);
  void maintain();
  bool take_job();
  void run_job();
  void finish_job();
  bool commit(std::uint64_t offset);
  /// Returns the cursors that `commit` writes. They are larger than a sector, so that a write can be torn.
  static std::vector<log::NamedCursor> cursors_at(std::uint64_t offset);
  /// Fills another log on the same disk and deletes it. None of its messages may ever be in this log.
  void donate(std::size_t batches, std::size_t bytes);
  /// Checks that everything readable is right, and that everything promised is readable.
  void compare(Ending ending);
  /// Updates history.first while a call is under way.
  void note_first();

 private:
  void complain(const std::string& what);
  void note();
  log::AppendOutcome begin_batch(std::size_t bytes);
  void add_record(std::size_t bytes);
  void stamp_open_batch();
  std::span<std::byte> active_file();
  std::vector<std::byte> image();
  void leave_half(const std::vector<std::byte>& before, std::uint64_t eighths);
  void note_durable();
  [[nodiscard]] Offset promised_from(Offset floor) const;
  void compare_ends(Offset floor);
  void compare_reports(Offset floor);
  void compare_messages(Offset floor);
  bool compare_batch(const BatchView& batch, Offset from);
  void compare_damage(Offset from, Offset next, Offset floor);
  void compare_cursor();
  [[nodiscard]] bool is_reported(Offset offset) const;

  ExplorerStorage* storage_;
  Payloads& payloads_;
  BatchBuilder builder_;
  std::unique_ptr<log::SegmentPool> pool_;
  std::unique_ptr<log::SegmentLog> log_;
  std::unique_ptr<log::DiskJob> job_;
  log::OpenBatch open_;
  Offset told_durable_;  // in this life
  std::unique_ptr<log::CursorFile> cursors_;
  std::vector<Offset> damaged_now_;  // set by compare_messages
};

}  // namespace lightq::test
