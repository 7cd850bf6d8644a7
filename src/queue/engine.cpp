/// An open queue: opening, closing, and calls from readers. Layer: queue.
#include "queue/engine.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "queue/clock.hpp"

namespace lightq::queue {

namespace {

const std::atomic<std::uint32_t> no_beat{CoarseClock::still};

constexpr std::uint64_t flush_bytes_default = 16 * limits::MiB;  // limits how much a single sync has to write

constexpr std::size_t packed_bytes_max = 4095;
constexpr std::int64_t retire_gather_us = 1000;

Result<void> check(const QueueOptions& options) {
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

// Returns true if writers append in groups. Not if an append may wait for space, because then one writer
// would wait on behalf of the whole group.
bool waits_together(const QueueOptions& options) {
  const bool is_bounded = options.capacity_bytes != 0 || options.capacity_messages != 0;
  return options.flush.each_append && options.many_writers &&
         !(is_bounded && options.overflow == Overflow::block);
}

log::SegmentLogOptions log_options(const std::string& directory, const QueueOptions& options, bool mapped,
                                   log::SegmentViews& views) {
  log::SegmentLogOptions log;
  log.directory = directory;
  log.segment_bytes = options.segment_bytes + log::segment_header_bytes;
  log.segment_messages_max = options.segment_messages_max;
  log.capacity_bytes = options.capacity_bytes;
  log.capacity_messages = options.capacity_messages;
  log.retention_bytes = options.retention_bytes;
  log.retention_ms = options.retention_time.count();
  log.retention_messages = options.retention_messages;
  log.flush_interval_ms = options.flush.interval.count();
  log.flush_bytes = mapped ? 0 : flush_bytes_default;
  if (options.flush.bytes != 0) log.flush_bytes = std::min(flush_bytes_default, options.flush.bytes);
  log.disk_free_floor_bytes = options.disk_free_floor_bytes;
  log.mapped_writes = mapped;
  log.prefault = mapped && options.background;
  log.retire_gather_us = options.background ? retire_gather_us : 0;
  log.views = &views;
  return log;
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::open(const std::string& directory, const QueueOptions& options,
                                             log::Storage& storage) {
  if (auto valid = check(options); !valid) return valid.error();
  auto lock = log::DirectoryLock::acquire(directory);
  if (!lock) return lock.error();
  return open(directory, options, storage, std::move(*lock));
}

Result<std::unique_ptr<Engine>> Engine::open(const std::string& directory, const QueueOptions& options,
                                             log::Storage& storage, log::DirectoryLock lock) {
  if (auto valid = check(options); !valid) return valid.error();
  std::unique_ptr<Engine> engine(new Engine(directory, options, storage, std::move(lock)));
  if (auto opened = engine->open_log(); !opened) return opened.error();
  if (auto opened = engine->open_cursors(); !opened) return opened.error();
  if (options.background) {
    engine->background_.start([raw = engine.get()] { raw->mutex_.request(); });
    engine->background_.wake();  // for work that is due after opening
    if (engine->pulse_ != nullptr)
      engine->beat_call_ = engine->pulse_->call_each_beat([raw = engine.get()] { raw->wake_if_put_off(); });
  }
  return engine;
}

Engine::Engine(std::string directory, const QueueOptions& options, log::Storage& storage,
               log::DirectoryLock lock)
    : HasHeldStorage(storage, std::move(lock)),
      SegmentSource(held_, options.mapped_bytes_max),
      directory_(std::move(directory)),
      options_(options),
      mapped_(options.flush.is_none()),
      quick_(mapped_ && !options.many_writers),
      groups_(waits_together(options)),
      packed_bytes_max_(std::min<std::uint64_t>(packed_bytes_max, options.message_bytes_max)),
      boot_{storage.boot_id()},
      pool_({directory_ + "/pool", options.recycled_files_max, ~std::uint64_t{0}}, held_),
      pulse_(quick_ && options.background ? CoarseClock::shared() : nullptr),
      beat_(pulse_ != nullptr ? &pulse_->beat() : &no_beat) {}

Result<void> Engine::open_log() {
  if (auto known = log::CursorTable::check_known(storage(), directory_); !known) return known;
  auto opened = log::SegmentLog::open(log_options(directory_, options_, mapped_, views()), storage(), pool_,
                                      coarse_now());
  if (!opened) return opened.error();
  log_ = std::move(*opened);
  const log::RecoveryReport& report = log_->recovery();
  recovery_.clean = report.closed || log_->segments().empty();
  recovery_.scanned_bytes = report.scanned_bytes;
  recovery_.bytes_cut = report.bytes_cut;
  recovery_.cut_file = report.cut_file;
  for (const log::DamagedRange& range : report.damaged) {
    recovery_.damaged.push_back(
        {range.file, range.begin_position, range.end_position, range.first, range.next});
  }
  note_log();
  publish(log_->next_offset());
  return {};
}

Result<void> Engine::open_cursors() {
  if (log_->segments().empty()) return {};
  auto opened = log::CursorTable::open(storage(), directory_, log_->incarnation());
  if (!opened && log::is_missing(opened.error())) return {};
  if (!opened) return opened.error();
  cursors_ = std::move(*opened);
  recovery_.clamped_cursors = cursors_->clamp(log_->next_offset());
  // Sync before new messages are appended. Otherwise a power cut could restore the earlier, higher position,
  // and skip them.
  if (!recovery_.clamped_cursors.empty()) {
    if (auto flushed = cursors_->flush(); !flushed) return flushed;
  }
  cursor_is_damaged_ = !cursors_->damaged().empty();
  for (const log::ListedCursor& listed : cursors_->list()) {
    const auto cursor = cursors_->find(listed.name);
    if (cursor && *cursor != nullptr) all_cursors_.push_back(*cursor);
  }
  drop_committed();
  return {};
}

Engine::~Engine() {
  static_cast<void>(close());
}

Result<void> Engine::close() {
  Lock lock(mutex_);
  stopping_ = true;
  lock.unlock();
  if (pulse_ != nullptr) pulse_->stop_calling(beat_call_);
  background_.stop();
  lock.lock();
  if (auto job = background_.take_done()) finish_job(std::move(job));
  if (closed_ || log_ == nullptr) return {};
  closed_ = true;
  close_batch();
  Result<void> done = sync_up_to(lock, log_->next_offset());
  if (log::CursorTable* const cursors = cursors_.get(); cursors != nullptr) {
    lock.unlock();  // as in flush(): creating a cursor takes this lock
    if (auto flushed = cursors->flush(); done) done = flushed;
    lock.lock();
  }
  if (done) done = log_->close();
  note_log();
  const auto durable = durability_.take(durable_offset());
  const auto others = durability_.take_all();
  lock.unlock();
  for (const auto& callback : durable) callback({});
  for (const auto& callback : others) callback(closed_error());
  return done;
}

std::shared_ptr<log::SegmentNode> Engine::node_of(Offset offset) {
  const Lock lock(mutex_);
  return log_->node_of(offset);
}

bool Engine::wait(Offset offset, std::chrono::milliseconds timeout) {
  return readers_.wait(timeout, [&] { return offset < next_offset(); });
}

QueueStats Engine::stats() const {
  const Lock lock(mutex_);
  QueueStats stats;
  stats.first_offset = first_offset();
  stats.next_offset = next_offset();
  stats.durable_offset = durable_offset();
  stats.stored_bytes = log_->stored_bytes();
  stats.segments = log_->segments().size();
  stats.mapped_bytes = views().mapped_bytes();
  stats.dropped_messages = dropped_messages_;
  if (cursors_ == nullptr) return stats;
  for (const log::ListedCursor& cursor : cursors_->list()) {
    stats.cursors.push_back({cursor.name, cursor.committed, cursor.delivered});
  }
  return stats;
}

}  // namespace lightq::queue
