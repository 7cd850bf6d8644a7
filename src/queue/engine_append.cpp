/// An open queue: appending. Layer: queue.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <span>

#include "log/elapsed.hpp"
#include "queue/clock.hpp"
#include "queue/engine.hpp"

namespace lightq::queue {

namespace {

constexpr std::int64_t batch_open_max_us = 10'000;  // keeps each message's time right to about 10 ms
// Records in a batch; with fewer, reading the clock costs little.
constexpr std::uint32_t beat_from_records = 32;
// With one batch more, still less than a recovery may scan.
constexpr std::uint64_t unsynced_bytes_max = 48 * limits::MiB;

}  // namespace

// The fast path comes first and stands alone here: adding a message to the open batch costs a few
// nanoseconds.
Result<Offset> Engine::enqueue(ByteView payload) {
  if (!quick_ || !goes_on_at_once(payload.size())) [[unlikely]]
    return enqueue_otherwise(payload);
  return add_to_open_batch(payload);
}

#ifdef LIGHTQ_RECORD_SUM_WIDE
LIGHTQ_AVX2_TARGET Result<Offset> Engine::enqueue_wide(ByteView payload) {
  if (!quick_ || !goes_on_at_once(payload.size())) [[unlikely]]
    return enqueue_otherwise(payload);
  const Offset offset = open_.next_offset();
  open_.add_wide(payload);
  return shown(offset);
}
#endif

Result<Offset> Engine::woken(Offset offset) {
  readers_.wake();
  return offset;
}

Result<Offset> Engine::enqueue_otherwise(ByteView payload) {
  wake_if_put_off();
  if (quick_ && goes_on(payload.size())) return add_to_open_batch(payload);
  if (payload.size() > options_.message_bytes_max) {
    return Error{ErrorCode::too_large,
                 "a message of " + std::to_string(payload.size()) + " bytes, above message_bytes_max of " +
                     std::to_string(options_.message_bytes_max),
                 0};
  }
  if (groups_) return enqueue_in_group(payload);
  return mapped_ ? enqueue_mapped(payload) : enqueue_written(payload);
}

Result<Offset> Engine::enqueue_written(ByteView payload) {
  Lock lock = lock_writer();
  // Packs only once there is space. While this writer waits for space, another one may use the builder.
  if (lock.owns_lock()) {
    const std::size_t bytes = batch_layout::header_bytes + record_bytes(payload.size());
    if (auto room = close_and_make_room(lock, bytes, 1); !room) return room.error();
  }
  builder_.clear();
  builder_.add(payload);
  if (!lock.owns_lock()) lock.lock();
  return append_locked(lock, builder_.finish(), 1);
}

Result<Offset> Engine::enqueue_mapped(ByteView payload) {
  Lock lock(mutex_);
  if (payload.size() > packed_bytes_max_) return enqueue_large(lock, payload);
  return goes_on(payload.size()) ? add_to_open_batch(payload) : enqueue_into_new_batch(lock, payload);
}

bool Engine::is_young() {
  if (log::has_passed(open_.opened(), batch_open_max_us, coarse_now())) return false;
  note_beat();
  return true;
}

// Notes that until the next beat the open batch is recent, without reading the clock.
void Engine::note_beat() {
  const std::uint32_t beat = beat_->load(std::memory_order_relaxed);
  batch_beat_ = beat == CoarseClock::still ? no_beat_yet : beat;
}

Result<Offset> Engine::enqueue_into_new_batch(Lock& lock, ByteView payload) {
  if (closed_) return closed_error();
  close_batch();
  after_append(lock);
  if (auto opened = open_batch(lock, payload.size()); !opened) return opened.error();
  return add_to_open_batch(payload);
}

// Writes a large message as a batch of its own, which passes over its bytes only once.
Result<Offset> Engine::enqueue_large(Lock& lock, ByteView payload) {
  if (closed_) return closed_error();
  const std::size_t bytes = batch_layout::header_bytes + record_bytes(payload.size());
  if (auto room = close_and_make_room(lock, bytes, 1); !room) return room.error();
  const auto got = log_->room_in_place(bytes, bytes);
  if (got.outcome != log::AppendOutcome::appended) return refused(lock, got.outcome, bytes);
  const Offset offset = log_->next_offset();
  log::make_batch_of_one(got.room.bytes, payload);
  stamp_batch(got.room.bytes, offset, coarse_now(), got.room.header.epoch, got.room.header.batch_mask);
  log_->append_in_place(got.room.bytes);
  note_log();
  show(offset + 1);
  after_append(lock);
  return offset;
}

Result<void> Engine::open_batch(Lock& lock, std::size_t payload_bytes) {
  const std::size_t needed = batch_layout::header_bytes + record_bytes(payload_bytes);
  const std::size_t wanted = std::max(needed, limits::batch_bytes_target);
  if (auto room = close_and_make_room(lock, needed, 1); !room) return room;
  const auto got = log_->room_in_place(needed, wanted);
  if (got.outcome != log::AppendOutcome::appended) return refused(lock, got.outcome, needed);
  std::uint64_t records = std::min<std::uint64_t>(limits::batch_records_max, log_->messages_left());
  if (options_.capacity_messages != 0) {
    const std::uint64_t kept = distance(log_->first_offset(), log_->next_offset());
    records = std::min(records, options_.capacity_messages - std::min(options_.capacity_messages - 1, kept));
  }
  note_log();
  open_.begin(got.room.bytes, got.room.page, got.room.position, got.room.header, boot_, log_->next_offset(),
              coarse_now(), static_cast<std::uint32_t>(std::max<std::uint64_t>(records, 1)));
  note_beat();
  // A new segment should be renamed soon, because the next batch may take long to come. Waking a thread costs
  // as much as all other work of a new segment. Within a stream, the wake is therefore left to the next
  // message.
  if (options_.background && rolls_seen_ != log_->rolls()) {
    if (has_beat()) {
      put_off_wake();
    } else {
      post_due_work();
    }
  }
  return {};
}

// Leaves the wake to the next message, or to the next beat, which follows in any case.
void Engine::put_off_wake() {
  wake_is_put_off_.store(true, std::memory_order_relaxed);
  batch_beat_ = no_beat_yet;
  pulse_->keep_beating();
}

// Called by the writer and by the pulse's thread, which must not wait for the disk.
void Engine::wake_if_put_off() {
  if (wake_is_put_off_.load(std::memory_order_relaxed) && wake_is_put_off_.exchange(false))
    background_.wake();
}

void Engine::close_batch() {
  if (!open_.is_open()) return;
  if (pulse_ != nullptr && open_.count() >= beat_from_records) pulse_->keep_beating();
  log_->append_in_place(open_.finish());
}

Result<Offset> Engine::append(std::span<std::byte> batch) {
  Lock lock(mutex_);
  return append_locked(lock, batch, BatchView::trusted(batch.data()).record_count());
}

Result<Offset> Engine::append_locked(Lock& lock, std::span<std::byte> batch, std::uint64_t records) {
  auto base = append_unsynced(lock, batch, records);
  if (!base || !options_.flush.each_append) return base;
  if (auto synced = sync_up_to(lock, *base + records); !synced) return synced.error();
  return base;
}

Result<Offset> Engine::append_unsynced(Lock& lock, std::span<std::byte> batch, std::uint64_t records) {
  if (closed_) return closed_error();
  if (options_.flush.each_append && log_->poisoned()) return log_->sync_error();
  if (auto room = close_and_make_room(lock, batch.size(), records); !room) return room.error();
  const log::AppendResult result = log_->append(batch, coarse_now());
  if (result.outcome != log::AppendOutcome::appended) return refused(lock, result.outcome, batch.size());
  note_log();
  show(log_->next_offset());
  after_append(lock);
  return result.base;
}

// Closes the open batch and makes space. On success no batch is open. While this waits for space, the lock
// may be released, and another writer may open a batch.
Result<void> Engine::close_and_make_room(Lock& lock, std::size_t bytes, std::uint64_t records) {
  // A batch that can never fit must not cause other messages to be dropped.
  const bool hopeless = (options_.capacity_bytes != 0 && bytes > options_.capacity_bytes) ||
                        (options_.capacity_messages != 0 && records > options_.capacity_messages);
  if (hopeless) return refused(lock, log::AppendOutcome::full, bytes);
  for (;;) {
    close_batch();
    if (log_->fits_capacity(bytes, records)) return {};
    if (auto made = make_room(lock, bytes, records); !made) return made;
  }
}

// Drops as many messages that all cursors have committed as necessary. If that is not enough, the overflow
// policy decides.
bool Engine::make_room_from_committed(std::size_t bytes, std::uint64_t records) {
  close_batch();
  const auto committed = committed_by_all();
  const bool made = options_.drop_committed && committed && log_->make_room(bytes, records, *committed);
  note_log();
  return made || log_->fits_capacity(bytes, records);
}

Result<void> Engine::make_room(Lock& lock, std::size_t bytes, std::uint64_t records) {
  if (make_room_from_committed(bytes, records)) return {};
  switch (options_.overflow) {
    case Overflow::reject: break;
    case Overflow::drop_oldest: {
      const Offset before = log_->first_offset();
      const bool made = log_->make_room(bytes, records, log_->next_offset());
      dropped_messages_ += distance(before, log_->first_offset());
      note_log();
      if (made) return {};
      return refused(lock, log::AppendOutcome::failed, bytes);
    }
    case Overflow::block: return wait_for_room(lock, bytes, records);
  }
  return refused(lock, log::AppendOutcome::full, bytes);
}

Result<void> Engine::wait_for_room(Lock& lock, std::size_t bytes, std::uint64_t records) {
  room_wanted_.fetch_add(1);
  fence_.heavy();  // a commit that did not see the new room_wanted_ is seen below
  const Deadline until = std::chrono::steady_clock::now() + bounded(options_.block_timeout);
  bool came = make_room_from_committed(bytes, records);
  for (bool told = true; !came && told;) {
    told = wait_without(lock, room_made_, until);
    came = make_room_from_committed(bytes, records);
  }
  room_wanted_.fetch_sub(1);
  if (came) return {};
  tell_failure(lock);
  return Error{ErrorCode::timeout,
               directory_ + " is full, and no cursor has released space within " +
                   std::to_string(options_.block_timeout.count()) + " ms",
               0};
}

// Does the work that the append has made due, here or on the background thread. Limits how much is not
// durable, because an opening after a power cut has to scan that.
void Engine::after_append(Lock& lock) {
  if (rolls_seen_ != log_->rolls()) {
    rolls_seen_ = log_->rolls();
    drop_committed();
    apply_retention();
  }
  if (options_.background) {
    wake_is_put_off_.store(false, std::memory_order_relaxed);  // the work is posted below
    const bool timer_starts = options_.flush.interval.count() != 0 && !timer_runs_;
    if (timer_starts) {
      timer_runs_ = true;
      background_.wake();
    }
    post_due_work();
  } else {
    do_due_work(lock);
  }
  while (!mapped_ && !log_->poisoned() && log_->unsynced_bytes() > unsynced_bytes_max) {
    if (auto synced = sync_up_to(lock, log_->next_offset()); !synced) break;
  }
}

// Also reports a failed sync, which may be the reason why the append was refused.
Error Engine::refused(Lock& lock, log::AppendOutcome outcome, std::size_t bytes) {
  Error error = error_of(outcome, bytes);
  tell_failure(lock);
  return error;
}

Error Engine::error_of(log::AppendOutcome outcome, std::size_t bytes) const {
  switch (outcome) {
    case log::AppendOutcome::full:
      return {ErrorCode::limit_reached,
              directory_ + " is full: " + std::to_string(log_->stored_bytes()) + " bytes are stored, " +
                  std::to_string(bytes) + " more would exceed its capacity",
              0};
    case log::AppendOutcome::too_large:
      return {ErrorCode::too_large,
              "a batch of " + std::to_string(bytes) + " bytes is larger than the queue can store", 0};
    default: return log_->last_error();
  }
}

}  // namespace lightq::queue
