/// Appends messages and batches to a queue. Layer: queue.
#include "queue/queue_appender.hpp"

#include <algorithm>
#include <mutex>

#include "queue/clock.hpp"

namespace lightq::queue {

namespace {

// With one batch more, still less than a recovery may scan.
constexpr std::uint64_t unsynced_bytes_max = 48 * limits::MiB;

}  // namespace

QueueLock QueueAppender::lock_writer() {
  return log_.options().many_writers ? QueueLock(mutex_) : QueueLock(mutex_, std::defer_lock);
}

Result<Offset> QueueAppender::enqueue_written(ByteView payload) {
  QueueLock lock = lock_writer();
  // Packs only once there is space. While this writer waits for space, another one may use the builder.
  if (lock.owns_lock()) {
    const std::size_t bytes = batch_layout::header_bytes + record_bytes(payload.size());
    if (auto room = space_.make(lock, bytes, 1); !room) return room.error();
  }
  builder_.clear();
  builder_.add(payload);
  if (!lock.owns_lock()) lock.lock();
  return append_locked(lock, builder_.finish(), 1);
}

Result<Offset> QueueAppender::enqueue_packed(ByteView payload) {
  QueueLock lock(mutex_);
  if (payload.size() > packer_.packed_bytes_max()) return enqueue_large(lock, payload);
  if (packer_.takes(payload.size())) return show(packer_.add(payload));
  return enqueue_into_new_batch(lock, payload);
}

Result<Offset> QueueAppender::enqueue_into_new_batch(QueueLock& lock, ByteView payload) {
  if (closed_) return closed_error();
  packer_.close();
  after_append(lock);
  if (auto opened = open_batch(lock, payload.size()); !opened) return opened.error();
  return show(packer_.add(payload));
}

// Writes a large message as a batch of its own, which passes over its bytes only once.
Result<Offset> QueueAppender::enqueue_large(QueueLock& lock, ByteView payload) {
  if (closed_) return closed_error();
  const std::size_t bytes = batch_layout::header_bytes + record_bytes(payload.size());
  if (auto room = space_.make(lock, bytes, 1); !room) return room.error();
  const auto got = log_->room_in_place(bytes, bytes);
  if (got.outcome != log::AppendOutcome::appended) return space_.refused(lock, got.outcome, bytes);
  const Offset offset = log_->next_offset();
  log::make_batch_of_one(got.room.bytes, payload);
  stamp_batch(got.room.bytes, offset, coarse_now(), got.room.header.epoch, got.room.header.batch_mask);
  log_->append_in_place(got.room.bytes);
  jobs_.note_log();
  show(offset);
  after_append(lock);
  return offset;
}

Result<void> QueueAppender::open_batch(QueueLock& lock, std::size_t payload_bytes) {
  const std::size_t needed = batch_layout::header_bytes + record_bytes(payload_bytes);
  const std::size_t wanted = std::max(needed, limits::batch_bytes_target);
  if (auto room = space_.make(lock, needed, 1); !room) return room;
  const auto got = log_->room_in_place(needed, wanted);
  if (got.outcome != log::AppendOutcome::appended) return space_.refused(lock, got.outcome, needed);
  std::uint64_t records =
      std::min<std::uint64_t>(limits::batch_records_max, log_->appender().messages_left());
  const std::uint64_t capacity = log_.options().capacity_messages;
  if (capacity != 0) {
    const std::uint64_t kept = distance(log_->first_offset(), log_->next_offset());
    records = std::min(records, capacity - std::min(capacity - 1, kept));
  }
  jobs_.note_log();
  packer_.open(got.room, records);
  if (log_.options().background && rolls_seen_ != log_->rolls()) announce_new_segment();
  return {};
}

// A new segment should be renamed soon, because the next batch may take long to come. Waking a thread costs
// as much as all other work of a new segment. Within a stream, the wake is therefore left to the next
// message, or to the next beat, which follows in any case.
void QueueAppender::announce_new_segment() {
  if (!packer_.has_beat()) return jobs_.post();
  jobs_.put_off_wake();
  packer_.end_beat();
}

Result<Offset> QueueAppender::append(std::span<std::byte> batch) {
  QueueLock lock(mutex_);
  return append_locked(lock, batch, BatchView::trusted(batch.data()).record_count());
}

Result<Offset> QueueAppender::append_locked(QueueLock& lock, std::span<std::byte> batch,
                                            std::uint64_t records) {
  auto base = append_unsynced(lock, batch, records);
  if (!base || !log_.options().flush.each_append) return base;
  if (auto synced = jobs_.sync_up_to(lock, *base + records); !synced) return synced.error();
  return base;
}

Result<Offset> QueueAppender::append_unsynced(QueueLock& lock, std::span<std::byte> batch,
                                              std::uint64_t records) {
  if (closed_) return closed_error();
  if (log_.options().flush.each_append && log_->sync().poisoned()) return log_->sync().sync_error();
  if (auto room = space_.make(lock, batch.size(), records); !room) return room.error();
  const log::AppendResult result = log_->append(batch, coarse_now());
  if (result.outcome != log::AppendOutcome::appended)
    return space_.refused(lock, result.outcome, batch.size());
  jobs_.note_log();
  feed_.show(log_->next_offset());
  after_append(lock);
  return result.base;
}

// Does the work that the append has made due, here or on the background thread. Limits how much is not
// durable, because an opening after a power cut has to scan that.
void QueueAppender::after_append(QueueLock& lock) {
  if (rolls_seen_ != log_->rolls()) {
    rolls_seen_ = log_->rolls();
    space_.drop_committed();
    space_.apply_retention();
  }
  if (log_.options().background) {
    jobs_.forget_wake();  // the work is posted below
    jobs_.start_timer();
  }
  jobs_.do_or_post(lock);
  while (!log_.is_mapped() && !log_->sync().poisoned() &&
         log_->sync().unsynced_bytes() > unsynced_bytes_max) {
    if (auto synced = jobs_.sync_up_to(lock, log_->next_offset()); !synced) break;
  }
}

}  // namespace lightq::queue
