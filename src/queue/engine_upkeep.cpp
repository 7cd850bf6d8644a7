/// An open queue: syncing, dropping, and the background thread. Layer: queue.
#include <algorithm>

#include "queue/clock.hpp"
#include "queue/engine.hpp"

namespace lightq::queue {

namespace {

constexpr std::chrono::milliseconds no_timer = std::chrono::hours(24);
constexpr std::chrono::milliseconds retention_timer{500};
constexpr std::chrono::milliseconds begin_again_timer{1000};
constexpr std::chrono::milliseconds retire_timer{4};  // the resolution of the coarse clock

}  // namespace

// Publishes the log's state that other threads read without the lock, and wakes writers if there is more
// space.
void Engine::note_log() {
  const Offset before = first_offset();
  first_.store(log_->first_offset().value, std::memory_order_release);
  if (before < log_->first_offset() && room_is_wanted()) room_made_.increase();
  durable_.store(log_->durable_offset().value, std::memory_order_release);
  if (!log_->poisoned() || failure_is_known_) return;
  // A failed sync is reported here, whichever call ran it: no later job would report it.
  failure_is_known_ = true;
  jobs_done_.increase();
  if (options_.background && !stopping_ && !durability_.empty()) background_.call(take_durable());
}

std::optional<Offset> Engine::committed_by_all() const {
  std::optional<Offset> least;
  // A damaged cursor, or one being made, has no known position, so nothing may be dropped.
  if (cursor_is_damaged_ || cursors_being_made_ != 0) least = Offset{0};
  for (const log::TableCursor* cursor : all_cursors_) {
    least = std::min(least.value_or(cursor->committed()), cursor->committed());
  }
  return least;
}

void Engine::drop_committed() {
  if (!options_.drop_committed) return;
  if (const auto committed = committed_by_all()) log_->drop_before(*committed);
  note_log();
}

// An open batch lies in the last segment, which therefore must stay.
void Engine::apply_retention() {
  if (options_.many_writers) close_batch();
  if (options_.retain_uncommitted) log_->hold(committed_by_all().value_or(Offset{~std::uint64_t{0}}));
  if (open_.is_open()) {
    log_->drop_unneeded(coarse_now());
  } else {
    log_->maintain(coarse_now());
  }
  note_log();
}

bool Engine::flush_is_due() const {
  return options_.flush.messages != 0 && !log_->poisoned() && log_->may_begin(coarse_now()) &&
         distance(log_->durable_offset(), log_->next_offset()) >= options_.flush.messages;
}

bool Engine::work_is_due(Timestamp now) const {
  return !job_is_out_ && (flush_is_due() || log_->disk_job_is_due(now));
}

std::unique_ptr<log::DiskJob> Engine::take_due_job() {
  const Timestamp now = coarse_now();
  if (!work_is_due(now)) return nullptr;
  return flush_is_due() ? log_->take_flush_job(now) : log_->take_disk_job(now);
}

void Engine::do_due_work(Lock& lock) {
  while (auto job = take_due_job()) run_job(lock, std::move(job));
  tell_failure(lock);
}

void Engine::post_due_work() {
  if (stopping_) return;
  auto job = take_due_job();
  if (job == nullptr) {
    if (!job_is_out_ && log_->gathers_retired()) background_.set_timer(next_timer());
    return;
  }
  job_is_out_ = true;
  background_.post(std::move(job));
}

// HandOffMutex calls this function after a request, with the lock held: on the background thread if the lock
// is free, otherwise on the thread that releases the lock.
void Engine::serve_background() {
  if (auto job = background_.take_done()) finish_job(std::move(job));
  if (stopping_) return;
  if (options_.retention_time.count() != 0) apply_retention();
  post_due_work();
  timer_runs_ = options_.flush.interval.count() != 0 && !log_->poisoned() &&
                log_->durable_offset() < log_->next_offset();
  background_.set_timer(next_timer());
}

void Engine::run_job(Lock& lock, std::unique_ptr<log::DiskJob> job) {
  job_is_out_ = true;
  lock.unlock();
  job->run();
  lock.lock();
  finish_job(std::move(job));
  tell_durable(lock);
  // Posts the work that became due meanwhile: the background thread could not post it while this job was out.
  if (options_.background) post_due_work();
}

void Engine::finish_job(std::unique_ptr<log::DiskJob> job) {
  job->finish();
  job.reset();
  job_is_out_ = false;
  note_log();
  jobs_done_.increase();
  if (options_.background && !stopping_ && !durability_.empty()) background_.call(take_durable());
}

// Returns the callbacks that are due: those for offsets that are now durable, or all after a failed sync.
std::vector<std::function<void()>> Engine::take_durable() {
  const bool failed = log_->poisoned();
  auto told = failed ? durability_.take_all() : durability_.take(durable_offset());
  const Result<void> result = failed ? Result<void>{log_->sync_error()} : Result<void>{};
  std::vector<std::function<void()>> calls;
  for (auto& callback : told) calls.push_back([call = std::move(callback), result] { call(result); });
  return calls;
}

void Engine::tell_durable(Lock& lock) {
  if (durability_.empty()) return;
  const auto calls = take_durable();
  lock.unlock();
  for (const auto& call : calls) call();
  lock.lock();
}

// Reports a failed sync that was not part of a job. It happened while a file was removed to make space, or
// the first cursor was created.
void Engine::tell_failure(Lock& lock) {
  note_log();
  if (log_->poisoned() && !options_.background) tell_durable(lock);
}

// Releases the lock until `count` has grown. Returns false if it has not grown by `until`.
bool Engine::wait_without(Lock& lock, const WaitedCount& count, Deadline until) {
  const std::uint32_t seen = count.value();
  lock.unlock();
  const bool came = count.wait_while(seen, until);
  lock.lock();
  return came;
}

// Waits until the job that is out is finished.
void Engine::wait_for_job(Lock& lock) {
  const std::uint32_t seen = jobs_done_.value();
  lock.unlock();
  jobs_done_.wait_while(seen);
  lock.lock();
}

// One waiting thread syncs for all. Messages that other threads append meanwhile are part of the next sync.
Result<void> Engine::sync_up_to(Lock& lock, Offset offset) {
  while (log_->durable_offset() < offset) {
    if (log_->poisoned()) return log_->sync_error();
    if (job_is_out_) {
      wait_for_job(lock);
    } else {
      run_job(lock, log_->take_flush_job(coarse_now()));
      if (const auto begun = log_->begun(); !begun) return begun;
    }
  }
  return {};
}

Result<void> Engine::flush() {
  Lock lock(mutex_);
  close_batch();
  if (auto synced = sync_up_to(lock, log_->next_offset()); !synced) return synced;
  if (log_->poisoned()) return log_->sync_error();
  log::CursorTable* const cursors = cursors_.get();
  lock.unlock();
  return cursors != nullptr ? cursors->flush() : Result<void>{};
}

Result<bool> Engine::wait_durable(Offset offset, std::chrono::milliseconds timeout) {
  Lock lock(mutex_);
  const auto settled = [&] { return offset <= log_->durable_offset() || log_->poisoned(); };
  if (!settled() && options_.flush.interval.count() == 0) {
    close_batch();
    if (auto synced = sync_up_to(lock, std::min(offset, log_->next_offset())); !synced) return synced.error();
  }
  const Deadline until = std::chrono::steady_clock::now() + bounded(timeout);
  while (!settled() && wait_without(lock, jobs_done_, until)) {
  }
  if (offset <= log_->durable_offset()) return true;
  if (log_->poisoned()) return log_->sync_error();
  return false;
}

void Engine::on_durable(Offset offset, DurabilityWaits::Callback done) {
  Lock lock(mutex_);
  if (durable_offset() < offset && !log_->poisoned() && !closed_) {
    durability_.add(offset, std::move(done));
    return;
  }
  const bool durable = offset <= durable_offset();
  const Result<void> failed = log_->poisoned() ? log_->sync_error() : closed_error();
  const Result<void> result = durable ? Result<void>{} : failed;
  lock.unlock();
  done(result);
}

Result<void> Engine::trim(Offset before) {
  Lock lock(mutex_);
  log_->drop_before(before);
  note_log();
  if (options_.background) {
    post_due_work();
  } else {
    do_due_work(lock);
  }
  return {};
}

void Engine::maintain() {
  Lock lock(mutex_);
  drop_committed();
  apply_retention();
  if (options_.background) {
    post_due_work();
  } else {
    do_due_work(lock);
  }
}

// Returns how long the background thread waits before it looks for work. The thread has a timer only while
// messages wait for a sync, for retention, or for their files to be retired, or while the last disk job could
// not begin.
std::chrono::milliseconds Engine::next_timer() const {
  std::chrono::milliseconds timer = no_timer;
  if (timer_runs_) timer = std::min(timer, options_.flush.interval);
  if (!log_->begun()) timer = std::min(timer, begin_again_timer);
  const bool ages = options_.retention_time.count() != 0 && log_->stored_bytes() != 0;
  if (ages) timer = std::min(timer, std::min(retention_timer, options_.retention_time));
  if (!job_is_out_ && log_->gathers_retired()) timer = std::min(timer, retire_timer);
  return std::max(timer, std::chrono::milliseconds{1});
}

}  // namespace lightq::queue
