/// An open queue: opening, closing, the fast path of a message, and calls that concern several parts. Layer:
/// queue.
#include "queue/engine.hpp"

#include <algorithm>
#include <utility>

#include "queue/reader_state.hpp"

namespace lightq::queue {

Result<std::unique_ptr<Engine>> Engine::open(const std::string& directory, const QueueOptions& options,
                                             log::Storage& storage) {
  if (auto valid = QueueLog::check(options); !valid) return valid.error();
  auto lock = log::DirectoryLock::acquire(directory);
  if (!lock) return lock.error();
  return open(directory, options, storage, std::move(*lock));
}

Result<std::unique_ptr<Engine>> Engine::open(const std::string& directory, const QueueOptions& options,
                                             log::Storage& storage, log::DirectoryLock lock) {
  if (auto valid = QueueLog::check(options); !valid) return valid.error();
  std::unique_ptr<Engine> engine(new Engine(directory, options, storage, std::move(lock)));
  if (auto opened = engine->open_parts(); !opened) return opened.error();
  if (options.background) engine->start_background();
  return engine;
}

Engine::Engine(const std::string& directory, const QueueOptions& options, log::Storage& storage,
               log::DirectoryLock lock)
    : HasHeldStorage(storage, std::move(lock)),
      SegmentSource(held_, options.mapped_bytes_max),
      log_(directory, options, held_),
      quick_(log_.is_mapped() && !options.many_writers),
      groups_(GroupCommit::suits(options)),
      packer_(log_),
      feed_(published_end()),
      jobs_(log_, room_),
      space_(log_, packer_, registry_, room_, jobs_),
      appender_(log_, mutex_, packer_, feed_, jobs_, space_),
      group_commit_(log_, mutex_, jobs_, appender_),
      cursors_(log_, mutex_, registry_, room_, jobs_, space_) {}

Result<void> Engine::open_parts() {
  if (auto opened = log_.open(views()); !opened) return opened;
  recovery_ = log_.findings();
  jobs_.note_log();
  publish(log_->next_offset());
  return cursors_.open(recovery_);
}

void Engine::start_background() {
  jobs_.start([this] { mutex_.request(); });
  if (CoarseClock* const pulse = packer_.pulse(); pulse != nullptr)
    beat_call_ = pulse->call_each_beat([this] { jobs_.wake_if_put_off(); });
}

// HandOffMutex calls this function after a request, with the lock held: on the background thread if the lock
// is free, otherwise on the thread that releases the lock.
void Engine::serve_background() {
  if (!jobs_.take_over()) return;
  if (options().retention_time.count() != 0) space_.apply_retention();
  jobs_.post();
  jobs_.renew_timer();
}

Engine::~Engine() {
  static_cast<void>(close());
}

Result<void> Engine::close() {
  QueueLock lock(mutex_);
  jobs_.begin_stop();
  lock.unlock();
  if (packer_.pulse() != nullptr) packer_.pulse()->stop_calling(beat_call_);
  jobs_.stop();
  lock.lock();
  jobs_.take_over();
  if (appender_.is_closed() || !log_.is_open()) return {};
  appender_.close();
  packer_.close();
  Result<void> done = jobs_.sync_up_to(lock, log_->next_offset());
  lock.unlock();  // as in flush(): creating a cursor takes this lock
  if (auto flushed = cursors_.flush(); done) done = flushed;
  lock.lock();
  if (done) done = log_->close();
  jobs_.note_log();
  const auto durable = jobs_.take_due();
  const auto others = jobs_.take_all();
  lock.unlock();
  for (const auto& callback : durable) callback({});
  for (const auto& callback : others) callback(QueueAppender::closed_error());
  return done;
}

// The fast path comes first and stands alone here: adding a message to the open batch costs a few
// nanoseconds.
Result<Offset> Engine::enqueue(ByteView payload) {
  if (!quick_ || !packer_.takes_at_once(payload.size())) [[unlikely]]
    return enqueue_otherwise(payload);
  return shown(packer_.add(payload));
}

#ifdef LIGHTQ_RECORD_SUM_WIDE
LIGHTQ_AVX2_TARGET Result<Offset> Engine::enqueue_wide(ByteView payload) {
  if (!quick_ || !packer_.takes_at_once(payload.size())) [[unlikely]]
    return enqueue_otherwise(payload);
  return shown(packer_.add_wide(payload));
}
#endif

Result<Offset> Engine::woken(Offset offset) {
  feed_.readers().wake();
  return offset;
}

Result<Offset> Engine::enqueue_otherwise(ByteView payload) {
  jobs_.wake_if_put_off();
  if (quick_ && packer_.takes(payload.size())) return shown(packer_.add(payload));
  if (payload.size() > options().message_bytes_max) {
    return Error{ErrorCode::too_large,
                 "a message of " + std::to_string(payload.size()) + " bytes, above message_bytes_max of " +
                     std::to_string(options().message_bytes_max),
                 0};
  }
  if (groups_) return group_commit_.enqueue(payload);
  return log_.is_mapped() ? appender_.enqueue_packed(payload) : appender_.enqueue_written(payload);
}

Result<void> Engine::flush() {
  QueueLock lock(mutex_);
  packer_.close();
  if (auto synced = jobs_.sync_up_to(lock, log_->next_offset()); !synced) return synced;
  if (log_->sync().poisoned()) return log_->sync().sync_error();
  lock.unlock();
  return cursors_.flush();
}

Result<bool> Engine::wait_durable(Offset offset, std::chrono::milliseconds timeout) {
  QueueLock lock(mutex_);
  if (!jobs_.is_settled(offset) && options().flush.interval.count() == 0) {
    packer_.close();
    if (auto synced = jobs_.sync_up_to(lock, std::min(offset, log_->next_offset())); !synced)
      return synced.error();
  }
  jobs_.wait_durable(lock, offset, std::chrono::steady_clock::now() + bounded(timeout));
  if (offset <= log_->durable_offset()) return true;
  if (log_->sync().poisoned()) return log_->sync().sync_error();
  return false;
}

void Engine::on_durable(Offset offset, DurabilityWaits::Callback done) {
  QueueLock lock(mutex_);
  const bool failed = log_->sync().poisoned();
  const bool durable = offset <= durable_offset();
  if (!durable && !failed && !appender_.is_closed()) {
    jobs_.add_callback(offset, std::move(done));
    return;
  }
  const Result<void> why = failed ? log_->sync().sync_error() : QueueAppender::closed_error();
  lock.unlock();
  done(durable ? Result<void>{} : why);
}

Result<void> Engine::trim(Offset before) {
  QueueLock lock(mutex_);
  log_->drop_before(before);
  jobs_.note_log();
  jobs_.do_or_post(lock);
  return {};
}

void Engine::maintain() {
  QueueLock lock(mutex_);
  space_.drop_committed();
  space_.apply_retention();
  jobs_.do_or_post(lock);
}

Result<log::TableCursor*> Engine::take_cursor(std::string_view name, const Start& start) {
  return cursors_.take(name, [&] { return resolve(start); });
}

// The lock keeps commits of other cursors from dropping the messages to which this one returns.
Offset Engine::go_back(log::TableCursor& cursor, Offset offset) {
  const QueueLock lock(mutex_);
  const Offset kept = clamped(offset);
  cursor.commit(kept);
  return kept;
}

std::shared_ptr<log::SegmentNode> Engine::node_of(Offset offset) {
  const QueueLock lock(mutex_);
  return log_->segments().node_of(offset);
}

bool Engine::wait(Offset offset, std::chrono::milliseconds timeout) {
  return feed_.readers().wait(timeout, [&] { return offset < next_offset(); });
}

Result<Offset> Engine::offset_at_time(Timestamp time) {
  std::shared_ptr<log::SegmentNode> node;
  {
    const QueueLock lock(mutex_);
    const auto& segments = log_->segments().all();
    // The clock may have been set back, so a later segment may be older.
    const auto found = std::ranges::find_if(segments, [&](const auto& segment) {
      return !segment->empty() && time <= segment->times().newest();
    });
    // The time is after all complete batches, so only the batch that is being packed can match, if there is
    // one.
    if (found != segments.end()) {
      node = (*found)->node();
    } else if (!segments.empty()) {
      node = segments.back()->node();
    }
  }
  if (node == nullptr) return next_offset();
  return first_batch_at(*this, node, time);
}

QueueStats Engine::stats() const {
  const QueueLock lock(mutex_);
  QueueStats stats;
  stats.first_offset = first_offset();
  stats.next_offset = next_offset();
  stats.durable_offset = durable_offset();
  stats.stored_bytes = log_->stored_bytes();
  stats.segments = log_->segments().size();
  stats.mapped_bytes = views().mapped_bytes();
  stats.dropped_messages = space_.dropped_messages();
  if (registry_.table() == nullptr) return stats;
  for (const log::ListedCursor& cursor : registry_.table()->list()) {
    stats.cursors.push_back({cursor.name, cursor.committed, cursor.delivered});
  }
  return stats;
}

}  // namespace lightq::queue
