/// Where a topic's log and cursors live: opens the right log for a topic's settings. Layer: endpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lightq/base/random.hpp>

#include "broker/delivery/durable_producers.hpp"
#include "broker/delivery/log_lives.hpp"
#include "broker/delivery/topic_definition.hpp"
#include "broker/endpoint/log_sink.hpp"
#include "log/cursor_file.hpp"
#include "log/segment_log.hpp"
#include "log/write_behind_log.hpp"

namespace lightq::broker {

struct StorageSettings {
  std::filesystem::path topics_directory;  ///< a topic's files lie in the directory of its id below it
  std::uint64_t message_bytes_max = limits::message_bytes_max_default;
  std::uint64_t disk_free_floor_bytes = 0;
  std::int64_t flush_interval_ms = 100;
  std::size_t producers_max = limits::producers_max;  ///< that a topic remembers
};

/// Among a topic's cursors: everything before its offset has been purged, whether or not it is gone yet.
inline constexpr std::string_view purged_cursor_name = "purged:";

/// Where the topic's files lie, if it has any.
inline std::filesystem::path topic_directory(const StorageSettings& settings, TopicId topic) {
  return settings.topics_directory / std::to_string(topic.value);
}

/// Writes a topic's cursors; the other kind of job beside the log's own.
class CursorSaveJob final : public log::DiskJob {
 public:
  CursorSaveJob(log::CursorFile& file, log::EncodedCursors cursors)
      : file_(file), cursors_(std::move(cursors)) {}
  void run() override { result_ = file_.write(std::move(cursors_)); }
  void finish() override {}
  /// After run.
  [[nodiscard]] const Result<void>& result() const { return result_; }

 private:
  log::CursorFile& file_;
  log::EncodedCursors cursors_;
  Result<void> result_;
};

/// Writes a topic's known producers.
class ProducerSaveJob final : public log::DiskJob {
 public:
  ProducerSaveJob(ProducerFile& file, EncodedProducers producers)
      : file_(file), producers_(std::move(producers)) {}
  void run() override { result_ = file_.write(std::move(producers_)); }
  void finish() override {}
  /// After run.
  [[nodiscard]] const Result<void>& result() const { return result_; }

 private:
  ProducerFile& file_;
  EncodedProducers producers_;
  Result<void> result_;
};

/// Removes files of a topic on the disk's thread.
class RemovalJob : public log::DiskJob {
 public:
  void finish() override {}
  /// After run: success also where there was nothing to be removed.
  [[nodiscard]] const Result<void>& result() const { return result_; }

 protected:
  Result<void> result_;
};

/// Removes a directory with everything in it: what a topic left behind that could not be opened.
class DirectoryRemovalJob final : public RemovalJob {
 public:
  explicit DirectoryRemovalJob(std::filesystem::path directory) : directory_(std::move(directory)) {}
  void run() override;

 private:
  std::filesystem::path directory_;
};

/// One topic's log, and its cursors and producers, on disk where they outlive the process. Move-only.
struct TopicStorage {
  std::unique_ptr<log::Log> log;
  log::SegmentLog* segments = nullptr;  ///< the part of `log` that is on disk; null: a transient topic
  log::WriteBehindLog* write_behind = nullptr;  ///< `log`, for a queue_file topic
  std::unique_ptr<log::CursorFile> cursor_file;
  std::vector<log::NamedCursor> stored;         ///< as found at the start, by name
  std::unique_ptr<ProducerFile> producer_file;  ///< null: a transient topic
  std::unique_ptr<DurableProducers> producers;  ///< never null
  /// Random where the log does not outlive the process.
  LogLives lives{random_number<std::uint64_t>()};
  std::filesystem::path directory;  ///< empty: a transient topic

  [[nodiscard]] bool keeps_cursors() const { return cursor_file != nullptr; }
  /// The start found the log closed, or empty: then its cursors are on disk for good, too.
  [[nodiscard]] bool was_closed() const;
  [[nodiscard]] std::optional<Offset> stored_cursor(std::string_view name) const;
  /// One save at a time: the next only after this job's finish.
  [[nodiscard]] std::unique_ptr<CursorSaveJob> save_cursors(const std::vector<log::NamedCursor>& cursors);
  /// As save_cursors, of what DurableProducers has given; it is told of the result.
  [[nodiscard]] std::unique_ptr<ProducerSaveJob> save_producers(EncodedProducers snapshot);
  /// Removes the topic's files. The log must still exist; nothing may be asked of it afterwards.
  Result<void> delete_files();
};

/// Holds a topic's storage until nothing uses it any more, and gives it to the heir then, if there is one.
struct StorageHolder {
  using Heir = std::function<void(std::unique_ptr<TopicStorage>)>;

  StorageHolder(std::unique_ptr<TopicStorage> held, Heir to)
      : storage(std::move(held)), heir(std::move(to)) {}
  StorageHolder(const StorageHolder&) = delete;
  StorageHolder& operator=(const StorageHolder&) = delete;
  ~StorageHolder() {
    if (heir) heir(std::move(storage));
  }

  std::unique_ptr<TopicStorage> storage;
  Heir heir;
};

/// Removes the files of a topic that is destroyed already.
class TopicRemovalJob final : public RemovalJob {
 public:
  explicit TopicRemovalJob(std::unique_ptr<TopicStorage> storage) : storage_(std::move(storage)) {}
  void run() override;

 private:
  std::unique_ptr<TopicStorage> storage_;
};

/// Opens topics' storage. Any thread; outlives every topic.
class StorageRoom {
 public:
  /// `decrypted_bytes_max`: of batches of encrypted topics that are kept as they were read, of all together.
  StorageRoom(log::Storage& storage, log::SegmentPool& pool,
              std::size_t decrypted_bytes_max = limits::decrypted_bytes_total_default)
      : storage_(storage), pool_(pool), decrypted_(decrypted_bytes_max) {}

  /// What topics with `encrypt_at_rest` are encrypted with, which outlives them; before any is opened.
  void encrypt_with(const log::BatchCiphers& ciphers) { ciphers_ = &ciphers; }
  /// Whose the logs of such topics are, for errors; before any is opened.
  void name_logs(log::ExpectedLog::Names names) { log_names_ = std::move(names); }

  /// Recovers what is there, or begins anew; what recovery found is written to the sink. Errors: io_error and
  /// no_space where cursors past the log's end cannot be cut back on the disk; not_supported where a key is
  /// missing; corrupt where the files are another topic's; as log::SegmentLog::open.
  Result<TopicStorage> open(const TopicDefinition& definition, const StorageSettings& settings, Timestamp now,
                            LogSink& sink);

 private:
  Result<void> open_segments(TopicStorage& opened, const TopicDefinition& definition,
                             const StorageSettings& settings, Timestamp now, LogSink& sink);
  Result<void> load_cursors(TopicStorage& opened, std::vector<log::NamedCursor>& older,
                            const TopicDefinition& definition, LogSink& sink);
  static bool begin_life(TopicStorage& opened);
  static Result<void> cut_cursors(TopicStorage& opened, std::vector<log::NamedCursor> older,
                                  const TopicDefinition& definition, LogSink& sink);
  static void drop_purged(TopicStorage& opened, const TopicDefinition& definition, LogSink& sink);
  /// `found`: what the file of producers had.
  Result<void> open_producers(TopicStorage& opened, const Result<std::optional<ProducerSnapshot>>& found,
                              const TopicDefinition& definition, std::size_t producers_max, LogSink& sink);

  log::Storage& storage_;
  log::SegmentPool& pool_;
  const log::BatchCiphers* ciphers_ = nullptr;
  log::ExpectedLog::Names log_names_;
  log::DecryptedMemory decrypted_;  // of all topics that are encrypted
};

}  // namespace lightq::broker
