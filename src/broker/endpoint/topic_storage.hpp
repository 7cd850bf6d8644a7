/// Where a topic's log and cursors live: opens the right log for a topic's settings. Layer: endpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "broker/delivery/topic.hpp"
#include "broker/endpoint/log_sink.hpp"
#include "log/cursor_file.hpp"
#include "log/log.hpp"
#include "log/segment_pool.hpp"
#include "log/storage.hpp"

namespace lightq::broker {

struct StorageSettings {
  std::filesystem::path topics_directory;  ///< a topic's files lie in the directory of its id below it
  std::uint64_t message_bytes_max = limits::message_bytes_max_default;
  std::uint64_t disk_free_floor_bytes = 0;
  std::uint64_t flush_interval_ms = 100;
};

/// Writes a topic's cursors; the other kind of job beside the log's own.
class CursorSaveJob final : public log::DiskJob {
 public:
  CursorSaveJob(log::CursorFile& file, std::vector<log::Cursor> cursors)
      : file_(file), cursors_(std::move(cursors)) {}
  void run() override { result_ = file_.save(cursors_, log::CursorFile::Sync::yes); }
  void finish() override {}
  [[nodiscard]] const Result<void>& result() const { return result_; }

 private:
  log::CursorFile& file_;
  std::vector<log::Cursor> cursors_;
  Result<void> result_;
};

/// One topic's log, and its cursors where it has any that outlive the process. Move-only.
struct TopicStorage {
  std::unique_ptr<log::Log> log;
  std::unique_ptr<log::CursorFile> cursor_file;  ///< null: a transient topic
  std::vector<NamedCursor> stored;               ///< as found at the start
  std::filesystem::path directory;               ///< empty: a transient topic

  [[nodiscard]] bool keeps_cursors() const { return cursor_file != nullptr; }
  [[nodiscard]] std::optional<Offset> stored_cursor(std::string_view name) const;
  /// One save at a time: the next only after this job's finish.
  [[nodiscard]] std::unique_ptr<log::DiskJob> save_cursors(const std::vector<NamedCursor>& cursors);
  /// Removes the topic's directory; its log must be gone or never used again.
  void delete_files();
};

/// Opens topics' storage. Any thread; outlives every topic.
class StorageRoom {
 public:
  StorageRoom(log::Storage& storage, log::SegmentPool& pool) : storage_(storage), pool_(pool) {}

  /// Recovers what is there, or begins anew; what recovery found is written to the sink.
  Result<TopicStorage> open(const TopicDefinition& definition, const StorageSettings& settings, Timestamp now,
                            LogSink& sink);

 private:
  Result<TopicStorage> open_durable(const TopicDefinition& definition, const StorageSettings& settings,
                                    Timestamp now, LogSink& sink);

  log::Storage& storage_;
  log::SegmentPool& pool_;
};

}  // namespace lightq::broker
