/// Opens the log of a queue, and publishes its offsets. Layer: queue.
#include "queue/queue_log.hpp"

#include <algorithm>
#include <utility>

#include "log/saved_state/cursor_table.hpp"
#include "queue/clock.hpp"

namespace lightq::queue {

namespace {

constexpr std::uint64_t flush_bytes_default = 16 * limits::MiB;  // limits how much a single sync has to write
constexpr std::int64_t retire_gather_us = 1000;

}  // namespace

Result<void> QueueLog::check(const QueueOptions& options) {
  const auto invalid = [](std::string what) {
    return Error{ErrorCode::invalid_argument, std::move(what), 0};
  };
  if (options.segment_bytes < limits::queue_segment_bytes_min ||
      options.segment_bytes > limits::queue_segment_bytes_max) {
    return invalid("segment_bytes is " + std::to_string(options.segment_bytes) + ", outside of " +
                   std::to_string(limits::queue_segment_bytes_min) + " to " +
                   std::to_string(limits::queue_segment_bytes_max));
  }
  if (options.message_bytes_max == 0 || options.message_bytes_max > limits::message_bytes_max_max) {
    return invalid("message_bytes_max is " + std::to_string(options.message_bytes_max) +
                   ", outside of 1 to " + std::to_string(limits::message_bytes_max_max));
  }
  if (options.flush.interval.count() < 0 || options.retention_time.count() < 0 ||
      options.block_timeout.count() < 0) {
    return invalid("flush.interval, retention_time and block_timeout must not be negative");
  }
  if (options.flush.interval.count() != 0 && !options.background) {
    return invalid("flush.interval needs background = true, because it is a timer");
  }
  return {};
}

QueueLog::QueueLog(std::string directory, const QueueOptions& options, log::Storage& storage)
    : directory_(std::move(directory)),
      options_(options),
      mapped_(options.flush.is_none()),
      storage_(storage),
      pool_({directory_ + "/pool", options.recycled_files_max, ~std::uint64_t{0}}, storage) {}

log::SegmentLogOptions QueueLog::log_options(log::SegmentViews& views) const {
  log::SegmentLogOptions log;
  log.directory = directory_;
  log.segment_bytes = options_.segment_bytes + log::segment_header_bytes;
  log.segment_messages_max = options_.segment_messages_max;
  log.capacity_bytes = options_.capacity_bytes;
  log.capacity_messages = options_.capacity_messages;
  log.retention_bytes = options_.retention_bytes;
  log.retention_ms = options_.retention_time.count();
  log.retention_messages = options_.retention_messages;
  log.flush_interval_ms = options_.flush.interval.count();
  log.flush_bytes = mapped_ ? 0 : flush_bytes_default;
  if (options_.flush.bytes != 0) log.flush_bytes = std::min(flush_bytes_default, options_.flush.bytes);
  log.disk_free_floor_bytes = options_.disk_free_floor_bytes;
  log.mapped_writes = mapped_;
  log.prefault = mapped_ && options_.background;
  log.retire_gather_us = options_.background ? retire_gather_us : 0;
  log.views = &views;
  return log;
}

Result<void> QueueLog::open(log::SegmentViews& views) {
  if (auto known = log::CursorTable::check_known(storage_, directory_); !known) return known;
  auto opened = log::SegmentLog::open(log_options(views), storage_, pool_, coarse_now());
  if (!opened) return opened.error();
  log_ = std::move(*opened);
  return {};
}

QueueRecovery QueueLog::findings() const {
  const log::RecoveryReport& report = log_->recovery();
  QueueRecovery recovery;
  recovery.clean = report.closed || log_->segments().empty();
  recovery.scanned_bytes = report.scanned_bytes;
  recovery.bytes_cut = report.bytes_cut;
  recovery.cut_file = report.cut_file;
  for (const log::DamagedRange& range : report.damaged) {
    recovery.damaged.push_back(
        {range.file, range.begin_position, range.end_position, range.first, range.next});
  }
  return recovery;
}

bool QueueLog::note() {
  const Offset before = first_offset();
  first_.store(log_->first_offset().value, std::memory_order_release);
  durable_.store(log_->durable_offset().value, std::memory_order_release);
  return before < log_->first_offset();
}

}  // namespace lightq::queue
