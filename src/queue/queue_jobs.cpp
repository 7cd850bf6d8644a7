/// Runs the disk jobs of a queue, and tells how much has become durable. Layer: queue.
#include "queue/queue_jobs.hpp"

#include <algorithm>
#include <utility>

#include "queue/clock.hpp"

namespace lightq::queue {

namespace {

constexpr std::chrono::milliseconds no_timer = std::chrono::hours(24);
constexpr std::chrono::milliseconds retention_timer{500};
constexpr std::chrono::milliseconds begin_again_timer{1000};
constexpr std::chrono::milliseconds retire_timer{4};  // the resolution of the coarse clock

}  // namespace

void QueueJobs::note_log() {
  if (log_.note()) room_.note_made();
  if (!log_->sync().poisoned() || failure_is_known_) return;
  // A failed sync is reported here, whichever call ran it: no later job would report it.
  failure_is_known_ = true;
  done_.increase();
  call_in_background();
}

void QueueJobs::call_in_background() {
  if (log_.options().background && !stopping_ && !durability_.empty()) background_.call(take_calls());
}

void QueueJobs::tell_failure(QueueLock& lock) {
  note_log();
  if (log_->sync().poisoned() && !log_.options().background) tell_durable(lock);
}

bool QueueJobs::flush_is_due() const {
  const std::uint64_t messages = log_.options().flush.messages;
  return messages != 0 && !log_->sync().poisoned() && log_->sync().may_begin(coarse_now()) &&
         distance(log_->durable_offset(), log_->next_offset()) >= messages;
}

std::unique_ptr<log::DiskJob> QueueJobs::take_due_job() {
  const Timestamp now = coarse_now();
  if (is_out_) return nullptr;
  if (flush_is_due()) return log_->jobs().take_flush(now);
  return log_->jobs().is_due(now) ? log_->take_disk_job(now) : nullptr;
}

void QueueJobs::do_or_post(QueueLock& lock) {
  if (log_.options().background) return post();
  while (auto job = take_due_job()) run(lock, std::move(job));
  tell_failure(lock);
}

void QueueJobs::post() {
  if (stopping_) return;
  auto job = take_due_job();
  if (job == nullptr) {
    if (!is_out_ && log_->jobs().gathers_retired()) set_timer();
    return;
  }
  is_out_ = true;
  background_.post(std::move(job));
}

void QueueJobs::start_timer() {
  if (log_.options().flush.interval.count() == 0 || timer_runs_) return;
  timer_runs_ = true;
  background_.wake();
}

void QueueJobs::start(std::function<void()> look_up) {
  background_.start(std::move(look_up));
  background_.wake();  // for work that is due after opening
}

bool QueueJobs::take_over() {
  if (auto job = background_.take_done()) finish(std::move(job));
  return !stopping_;
}

void QueueJobs::run(QueueLock& lock, std::unique_ptr<log::DiskJob> job) {
  is_out_ = true;
  lock.unlock();
  job->run();
  lock.lock();
  finish(std::move(job));
  tell_durable(lock);
  // Posts the work that became due meanwhile: the background thread could not post it while this job was out.
  if (log_.options().background) post();
}

void QueueJobs::finish(std::unique_ptr<log::DiskJob> job) {
  job->finish();
  job.reset();
  is_out_ = false;
  note_log();
  done_.increase();
  call_in_background();
}

// Returns the callbacks that are due: those for offsets that are now durable, or all after a failed sync.
std::vector<std::function<void()>> QueueJobs::take_calls() {
  const bool failed = log_->sync().poisoned();
  auto told = failed ? take_all() : take_due();
  const Result<void> result = failed ? Result<void>{log_->sync().sync_error()} : Result<void>{};
  std::vector<std::function<void()>> calls;
  for (auto& callback : told) calls.push_back([call = std::move(callback), result] { call(result); });
  return calls;
}

void QueueJobs::tell_durable(QueueLock& lock) {
  if (durability_.empty()) return;
  const auto calls = take_calls();
  lock.unlock();
  for (const auto& call : calls) call();
  lock.lock();
}

Result<void> QueueJobs::sync_up_to(QueueLock& lock, Offset offset) {
  while (log_->durable_offset() < offset) {
    if (log_->sync().poisoned()) return log_->sync().sync_error();
    if (is_out_) {
      wait_for_job(lock);
    } else {
      run(lock, log_->jobs().take_flush(coarse_now()));
      if (const auto begun = log_->sync().begun(); !begun) return begun;
    }
  }
  return {};
}

bool QueueJobs::is_settled(Offset offset) const {
  return offset <= log_->durable_offset() || log_->sync().poisoned();
}

void QueueJobs::wait_durable(QueueLock& lock, Offset offset, std::chrono::steady_clock::time_point until) {
  while (!is_settled(offset) && wait_without(lock, done_, until)) {
  }
}

void QueueJobs::renew_timer() {
  timer_runs_ = log_.options().flush.interval.count() != 0 && !log_->sync().poisoned() &&
                log_->durable_offset() < log_->next_offset();
  set_timer();
}

// Returns how long the background thread waits before it looks for work. The thread has a timer only while
// messages wait for a sync, for retention, or for their files to be retired, or while the last disk job could
// not begin.
std::chrono::milliseconds QueueJobs::next_timer() const {
  const QueueOptions& options = log_.options();
  std::chrono::milliseconds timer = no_timer;
  if (timer_runs_) timer = std::min(timer, options.flush.interval);
  if (!log_->sync().begun()) timer = std::min(timer, begin_again_timer);
  const bool ages = options.retention_time.count() != 0 && log_->stored_bytes() != 0;
  if (ages) timer = std::min(timer, std::min(retention_timer, options.retention_time));
  if (!is_out_ && log_->jobs().gathers_retired()) timer = std::min(timer, retire_timer);
  return std::max(timer, std::chrono::milliseconds{1});
}

}  // namespace lightq::queue
