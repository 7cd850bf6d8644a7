/// The storage of a broker's topics and of its catalogue. Layer: broker.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include <lightq/base/private_file.hpp>
#include <lightq/base/result.hpp>

#include "admission/limit_counts.hpp"
#include "base/log_sink.hpp"
#include "broker/config.hpp"
#include "broker/data_directory.hpp"
#include "broker/data_storage.hpp"
#include "crypto/storage_keys.hpp"
#include "log/log.hpp"
#include "log/segment/segment_pool.hpp"
#include "log/storage/disk_quota.hpp"
#include "log/storage/posix_storage.hpp"
#include "topic/reactor/topic_opener.hpp"

namespace lightq::broker {

/// Owns what topics and the catalogue need to keep logs in files: the file system, the disk quota, the pools
/// of spare files, and the keys of topics with `encrypt_at_rest`. Thread: made and opened on the composition
/// root's thread. Later the topics use it on the threads of their reactors. Lifetime: outlives them.
class BrokerStorage {
 public:
  /// Lifetime: `directory` and `limits_reached` outlive this object.
  BrokerStorage(const Config& config, const DataDirectory& directory, LimitCounts& limits_reached);
  BrokerStorage(const BrokerStorage&) = delete;
  BrokerStorage& operator=(const BrokerStorage&) = delete;

  /// Reads the keys of topics with `encrypt_at_rest`, if the configuration names a file or a command. Errors:
  /// those of rest::read_storage_keys and rest::run_storage_key_command.
  Result<void> open_keys(const Config& config, const PipeWait& wait, LogSink& sink);
  /// Opens the catalogue's log, and reports damage to `sink`. Errors: those of log::SegmentLog::open.
  Result<std::unique_ptr<log::Log>> open_catalogue_log(const std::filesystem::path& path, LogSink& sink);

  /// Returns the object that opens topics' storage. Lifetime: that of this object.
  [[nodiscard]] TopicOpener& opener() { return opener_; }

 private:
  log::PosixStorage files_;
  DataStorage storage_;
  std::optional<log::DiskQuota> quota_;  // not set: only the disk limits topics
  std::jthread quota_counter_;
  log::SegmentPool pool_;
  // Keeps no spare files. Not part of the topics' quota, so that rights can be revoked even when topics fill
  // the disk's quota.
  log::SegmentPool catalogue_pool_;
  std::unique_ptr<rest::StorageKeys> keys_;  // null: no encryption at rest
  TopicOpener opener_;
};

}  // namespace lightq::broker
