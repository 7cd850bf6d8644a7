/// Opens a topic's storage: the kind of log that its settings ask for, its cursors and its known producers.
/// Layer: topic.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log_sink.hpp"
#include "delivery/topic_definition.hpp"
#include "topic/found_topic.hpp"

namespace lightq::broker {

/// The settings of storage, the same for all topics.
struct StorageSettings {
  std::filesystem::path topics_directory;  ///< each topic's files are in a subdirectory named by its id
  std::uint64_t message_bytes_max = limits::message_bytes_max_default;
  std::uint64_t disk_free_floor_bytes = 0;
  std::int64_t flush_interval_ms = 100;
  std::size_t producers_max = limits::producers_max;  ///< the most producers that a topic remembers
};

/// Returns the directory of a durable topic's files.
inline std::filesystem::path topic_directory(const StorageSettings& settings, TopicId topic) {
  return settings.topics_directory / std::to_string(topic.value);
}

/// The subdirectory of a topic's directory with its delayed messages.
inline constexpr std::string_view schedule_directory_name = log::delayed_directory_name;

/// Opens the storage of topics, and owns the cache of decrypted batches that they share. Lifetime: outlives
/// every topic. Thread: any.
class TopicOpener {
 public:
  /// `decrypted_bytes_max`: the most bytes of decrypted batches that are cached for all encrypted topics
  /// together. Lifetime: `storage` and `pool` outlive this.
  TopicOpener(log::Storage& storage, log::SegmentPool& pool,
              std::size_t decrypted_bytes_max = limits::decrypted_bytes_total_default)
      : storage_(storage), pool_(pool), decrypted_(decrypted_bytes_max) {}

  /// Sets the ciphers of topics with `encrypt_at_rest`. Requires: no topic was opened. Lifetime: `ciphers`
  /// outlives the topics.
  void encrypt_with(const log::BatchCiphers& ciphers) { ciphers_ = &ciphers; }
  /// Sets the names of encrypted topics' logs, for errors. Requires: no topic was opened.
  void name_logs(log::ExpectedLog::Names names) { log_names_ = std::move(names); }

  /// Opens a topic's storage: recovers existing files, or creates new ones. Writes the findings of the
  /// recovery to the sink. Errors: io_error and no_space (cursors past the log's end cannot be moved back on
  /// disk); not_supported (there is no key to encrypt with); corrupt (the files are another topic's); those
  /// of log::SegmentLog::open.
  Result<FoundTopic> open(const TopicDefinition& definition, const StorageSettings& settings, Timestamp now,
                          LogSink& sink);

 private:
  Result<void> open_segments(FoundTopic& opened, const TopicDefinition& definition,
                             const StorageSettings& settings, Timestamp now, LogSink& sink);
  Result<void> load_cursors(FoundTopic& opened, std::vector<log::NamedCursor>& older,
                            const TopicDefinition& definition, LogSink& sink);
  Result<std::unique_ptr<FoundSchedule>> open_schedule(const TopicDefinition& definition,
                                                       const StorageSettings& settings, Timestamp now,
                                                       LogSink& sink);
  Result<void> find_schedule(FoundTopic& opened, const TopicDefinition& definition,
                             const StorageSettings& settings, Timestamp now, LogSink& sink);
  static bool begin_life(FoundTopic& opened, bool is_restored);
  Result<void> cut_cursors(FoundTopic& opened, std::vector<log::NamedCursor> older,
                           const TopicDefinition& definition, LogSink& sink);
  static void drop_purged(FoundTopic& opened, const TopicDefinition& definition, LogSink& sink);
  Result<void> encrypt(log::SegmentLogOptions& options, const TopicDefinition& definition);
  /// `found`: the contents of the producer file, or the error of loading it.
  static Result<std::unique_ptr<DurableProducers>> recover_producers(
      ProducerFile& file, const Result<std::optional<ProducerSnapshot>>& found, log::BatchLog& log,
      std::size_t producers_max, const std::string& where, LogSink& sink);

  log::Storage& storage_;
  log::SegmentPool& pool_;
  const log::BatchCiphers* ciphers_ = nullptr;
  log::ExpectedLog::Names log_names_;
  log::DecryptedMemory decrypted_;  // the cache of all encrypted topics
};

}  // namespace lightq::broker
