/// Saves, flushes and removes a topic's files on the disk's thread. Layer: store.
#include "store/durable_store.hpp"

#include <utility>

#include "log/memory/write_behind_log.hpp"
#include "store/removal_job.hpp"

namespace lightq::broker {

namespace {

/// Writes a state on the disk's thread.
class SaveJob final : public log::DiskJob {
 public:
  explicit SaveJob(std::function<Result<void>()> write) : write_(std::move(write)) {}
  void run() override { result_ = write_(); }
  void finish() override {}
  /// Returns the result of the write. Requires: `run` has returned.
  [[nodiscard]] const Result<void>& result() const { return result_; }

 private:
  std::function<Result<void>()> write_;
  Result<void> result_;
};

}  // namespace

void StoreJobs::submit(std::unique_ptr<log::DiskJob> job, Done done) {
  ++out_;
  disk_.submit(std::move(job),
               [this, done = std::move(done), &loop = loop_](std::unique_ptr<log::DiskJob> ran) {
                 // A shared_ptr only because a std::function must be copyable.
                 std::shared_ptr<log::DiskJob> shared = std::move(ran);
                 loop.post_answer([this, done, shared] {
                   shared->finish();
                   --out_;
                   done(*shared);
                   if (out_ == 0 && when_idle_) when_idle_();
                 });
               });
}

template <typename LogType>
void DurableStore<LogType>::save_consumers(const Cursors& cursors) {
  save(StoredState::consumers, [this, encoded = log::CursorFile::encode(cursors)]() mutable {
    return files_.consumers->write(std::move(encoded));
  });
}

template <typename LogType>
void DurableStore<LogType>::save_producers(log::SlotBytes producers) {
  save(StoredState::producers, [this, encoded = std::move(producers)]() mutable {
    return files_.producers.write(std::move(encoded));
  });
}

template <typename LogType>
void DurableStore<LogType>::save(StoredState what, std::function<Result<void>()> write) {
  jobs_.submit(std::make_unique<SaveJob>(std::move(write)),
               [this, what](log::DiskJob& job) { saved(what, static_cast<SaveJob&>(job).result()); });
}

/// On a full disk, deletes files that are only kept for recycling, so that the next save finds space.
template <typename LogType>
void DurableStore<LogType>::saved(StoredState what, const Result<void>& result) {
  if (!result && result.error().code == ErrorCode::no_space) segments_.dropped().free_disk();
  events().on_saved(what, result);
}

template <typename LogType>
Result<void> DurableStore<LogType>::save_consumers_now(const Cursors& cursors) {
  return write_now([&] { return files_.consumers->write(log::CursorFile::encode(cursors)); });
}

template <typename LogType>
Result<void> DurableStore<LogType>::save_producers_now(log::SlotBytes producers) {
  return write_now([&] { return files_.producers.write(producers); });
}

/// Writes once more after it has freed space, if the disk is full.
template <typename LogType>
Result<void> DurableStore<LogType>::write_now(const std::function<Result<void>()>& write) {
  auto written = write();
  if (written || written.error().code != ErrorCode::no_space) return written;
  segments_.dropped().free_disk();
  return write();
}

template <typename LogType>
void DurableStore<LogType>::start_work(Timestamp now) {
  if (log_job_out_) return;
  if (this->durable_offset() < flush_wanted_) this->log().request_flush();
  flush_wanted_ = {};
  auto job = this->log().take_disk_job(now);
  if (job == nullptr) return;
  log_job_out_ = true;
  jobs_.submit(std::move(job), [this](log::DiskJob& /*job*/) {
    log_job_out_ = false;
    events().on_durable();
  });
}

template <typename LogType>
Result<void> DurableStore<LogType>::destroy() {
  if (auto destroyed = segments_.destroy(); !destroyed) return destroyed;
  return remove_directory(files_.directory);
}

template class DurableStore<log::SegmentLog>;
template class DurableStore<log::WriteBehindLog>;

}  // namespace lightq::broker
