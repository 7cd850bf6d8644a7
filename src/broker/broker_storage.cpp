/// Opens the storage of a broker's topics and of its catalogue. Layer: broker.
#include "broker/broker_storage.hpp"

#include <string>
#include <utility>

#include <lightq/base/limits.hpp>

#include "base/setting_error.hpp"
#include "broker/topic_space.hpp"
#include "broker/wall_clock.hpp"
#include "crypto/storage_key_command.hpp"
#include "crypto/storage_key_file.hpp"
#include "log/segment_log/segment_log.hpp"

namespace lightq::broker {

BrokerStorage::BrokerStorage(const Config& config, const DataDirectory& directory,
                             LimitCounts& limits_reached)
    : storage_(files_, directory.held()),
      quota_(quota_of(config, directory, quota_counter_)),
      pool_({.directory = directory.pool().string(),
             .quota = quota_ ? &*quota_ : nullptr,
             .floor_has_parts = true,
             .log_waits = [&limits_reached](log::SpaceBound bound) { count_wait(limits_reached, bound); }},
            storage_),
      catalogue_pool_({.directory = directory.pool().string(), .files_max = 0}, storage_),
      opener_(storage_, pool_, config.decrypted_bytes_total) {}

Result<void> BrokerStorage::open_keys(const Config& config, const PipeWait& wait, LogSink& sink) {
  if (config.storage_key_file.empty() && config.storage_key_command.empty()) return {};
  auto keys = config.storage_key_file.empty()
                  ? rest::run_storage_key_command(config.storage_key_command, rest::storage_key_command_time,
                                                  wait.stop_descriptor)
                  : rest::read_storage_keys(config.storage_key_file, wait);
  if (!keys && config.storage_key_file.empty()) return keys.error();
  if (!keys) return error_of_setting("storage_key_file", keys.error());
  keys_ = std::move(*keys);
  opener_.encrypt_with(*keys_);
  sink.info("number of storage keys: " + std::to_string(keys_->size()));
  return {};
}

Result<std::unique_ptr<log::Log>> BrokerStorage::open_catalogue_log(const std::filesystem::path& path,
                                                                    LogSink& sink) {
  log::SegmentLogOptions segments;
  segments.directory = path.string();
  segments.segment_bytes = 1 * limits::MiB;
  segments.flush_interval_ms = 0;  // the catalogue flushes before it answers
  auto opened = log::SegmentLog::open(std::move(segments), storage_, catalogue_pool_, wall_clock_now());
  if (!opened) return opened.error();
  const auto& report = (*opened)->recovery();
  if (!report.clean()) sink.error("catalogue: " + report.text());
  return std::unique_ptr<log::Log>(std::move(*opened));
}

}  // namespace lightq::broker
