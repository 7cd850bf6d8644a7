/// Makes space in a queue. Layer: queue.
#include "queue/queue_space.hpp"

#include <string>

#include "queue/clock.hpp"

namespace lightq::queue {

void QueueSpace::drop_committed() {
  if (!log_.options().drop_committed) return;
  if (const auto committed = cursors_.committed_by_all()) log_->drop_before(*committed);
  jobs_.note_log();
}

void QueueSpace::apply_retention() {
  if (log_.options().many_writers) packer_.close();
  if (log_.options().retain_uncommitted)
    log_->retention().hold(cursors_.committed_by_all().value_or(Offset{~std::uint64_t{0}}));
  if (packer_.is_open()) {
    log_->retention().drop_unneeded(coarse_now());
  } else {
    log_->maintain(coarse_now());
  }
  jobs_.note_log();
}

Result<void> QueueSpace::make(QueueLock& lock, std::size_t bytes, std::uint64_t records) {
  // A batch that can never fit must not cause other messages to be dropped.
  const QueueOptions& options = log_.options();
  const bool hopeless = (options.capacity_bytes != 0 && bytes > options.capacity_bytes) ||
                        (options.capacity_messages != 0 && records > options.capacity_messages);
  if (hopeless) return refused(lock, log::AppendOutcome::full, bytes);
  for (;;) {
    packer_.close();
    if (log_->appender().fits_capacity(bytes, records)) return {};
    if (make_from_committed(bytes, records)) continue;
    if (auto made = make_by_policy(lock, bytes, records); !made) return made;
  }
}

// Drops as many messages that all cursors have committed as necessary. If that is not enough, the overflow
// policy decides.
bool QueueSpace::make_from_committed(std::size_t bytes, std::uint64_t records) {
  packer_.close();
  const auto committed = cursors_.committed_by_all();
  const bool made =
      log_.options().drop_committed && committed && log_->retention().make_room(bytes, records, *committed);
  jobs_.note_log();
  return made || log_->appender().fits_capacity(bytes, records);
}

Result<void> QueueSpace::make_by_policy(QueueLock& lock, std::size_t bytes, std::uint64_t records) {
  switch (log_.options().overflow) {
    case Overflow::reject: break;
    case Overflow::drop_oldest: {
      const Offset before = log_->first_offset();
      const bool made = log_->retention().make_room(bytes, records, log_->next_offset());
      dropped_messages_ += distance(before, log_->first_offset());
      jobs_.note_log();
      if (made) return {};
      return refused(lock, log::AppendOutcome::failed, bytes);
    }
    case Overflow::block: return wait(lock, bytes, records);
  }
  return refused(lock, log::AppendOutcome::full, bytes);
}

Result<void> QueueSpace::wait(QueueLock& lock, std::size_t bytes, std::uint64_t records) {
  room_.begin();  // a commit that did not see this is seen below
  const auto until = std::chrono::steady_clock::now() + bounded(log_.options().block_timeout);
  bool came = make_from_committed(bytes, records);
  for (bool told = true; !came && told;) {
    told = room_.wait(lock, until);
    came = make_from_committed(bytes, records);
  }
  room_.end();
  if (came) return {};
  jobs_.tell_failure(lock);
  return Error{ErrorCode::timeout,
               log_.directory() + " is full, and no cursor has released space within " +
                   std::to_string(log_.options().block_timeout.count()) + " ms",
               0};
}

Error QueueSpace::refused(QueueLock& lock, log::AppendOutcome outcome, std::size_t bytes) {
  Error error = error_of(outcome, bytes);
  jobs_.tell_failure(lock);
  return error;
}

Error QueueSpace::error_of(log::AppendOutcome outcome, std::size_t bytes) const {
  switch (outcome) {
    case log::AppendOutcome::full:
      return {ErrorCode::limit_reached,
              log_.directory() + " is full: " + std::to_string(log_->stored_bytes()) + " bytes are stored, " +
                  std::to_string(bytes) + " more would exceed its capacity",
              0};
    case log::AppendOutcome::too_large:
      return {ErrorCode::too_large,
              "a batch of " + std::to_string(bytes) + " bytes is larger than the queue can store", 0};
    default: return log_->last_error();
  }
}

}  // namespace lightq::queue
