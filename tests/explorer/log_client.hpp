/// A user of a log and its cursor on an explored disk, who holds the log to its promises.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <lightq/base/batch.hpp>

#include "explorer/history.hpp"
#include "log/cursor_file.hpp"
#include "log/open_batch.hpp"
#include "log/segment_log.hpp"
#include "support/explorer_storage.hpp"

namespace lightq::test {

/// What ended the life before: it decides what must still be there.
enum class Ending {
  kill,       ///< everything appended
  power_cut,  ///< everything durable
};

/// Appends, flushes, works, commits; and after each opening reads everything and compares it with `history`.
/// The first broken promise is kept in `violation`. One process's life lasts from `open` to `close`.
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
  /// True while calls are made to fail: then opening may fail too, and what it finds is not compared.
  bool calls_fail = false;
  /// The life before may have ended while it opened the log: damage that it has found and sealed is not found
  /// again before it is read.
  bool died_opening = false;

  /// Opens the log that `ending` left, compares, and takes what is there for the history from here on. False
  /// if the log does not open.
  bool open(Ending ending);
  /// Ends this life without a word, as a kill would.
  void close();
  void move_to(ExplorerStorage& storage) { storage_ = &storage; }
  [[nodiscard]] ExplorerStorage& storage() { return *storage_; }
  [[nodiscard]] log::SegmentLog* log() { return log_.get(); }

  [[nodiscard]] const Payloads& payloads() const { return payloads_; }

  log::AppendOutcome append(const std::vector<std::size_t>& sizes);
  // With options.mapped_writes: packing_client.cpp.
  /// Adds a message to the open batch, beginning one if need be.
  log::AppendOutcome pack(std::size_t bytes);
  /// Completes the open batch, if there is one. Every other call but those of jobs does so first.
  void finish_batch();
  /// As pack or, for `stored` of their stores in eighths, as much of it as a kill in its middle leaves.
  void pack_half(std::size_t bytes, std::uint64_t eighths);
  void finish_batch_half(std::uint64_t eighths);
  /// Looks at what is stored meanwhile, as if the system wrote it back.
  std::function<void()> on_store;
  /// For a clean stop; the log stays open.
  bool close_log();
  bool flush();
  void make_room(std::size_t bytes, Offset limit);
  void maintain();
  bool take_job();
  void run_job();
  void finish_job();
  [[nodiscard]] bool has_job() const { return job_ != nullptr; }
  bool commit(std::uint64_t offset);
  /// What `commit` writes: more than a sector, so that it can be torn.
  static std::vector<log::NamedCursor> cursors_at(std::uint64_t offset);
  /// Another log on the same disk gets messages and is deleted; nothing of it may ever be in this one.
  void donate(std::size_t batches, std::size_t bytes);
  /// Everything readable is right, and everything promised is readable.
  void compare(Ending ending);
  /// Brings history.first up to date while a call is under way.
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
  std::vector<Offset> damaged_now_;  // found by compare_messages
};

}  // namespace lightq::test
