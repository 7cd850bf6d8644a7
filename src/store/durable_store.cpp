/// Saves, flushes and removes a topic's files on the disk's thread. Layer: store.
#include "store/durable_store.hpp"

#include <chrono>
#include <new>
#include <utility>

#include "log/memory/write_behind_log.hpp"
#include "store/removal_job.hpp"

namespace lightq::broker {

namespace {

/// Writes a state on the disk's thread.
class SaveJob final : public log::DiskJob {
 public:
  explicit SaveJob(std::function<Result<void>()> write) : write_(std::move(write)) {}
  /// Also frees what is written, which may be large, on the disk's thread.
  void run() override {
    result_ = write_();
    write_ = nullptr;
  }
  void finish() override {}
  /// Returns the result of the write. Requires: `run` has returned.
  [[nodiscard]] const Result<void>& result() const { return result_; }

 private:
  std::function<Result<void>()> write_;
  Result<void> result_;
};

/// Returns the cursors in their stored form. Clients can make them large, so it fails if there is no memory
/// for them.
Result<log::EncodedCursors> encoded(const TopicStore::MakeCursors& cursors) {
  try {
    return log::CursorFile::encode(cursors());
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::limit_reached,
                 "there is not enough memory to save the state of the consumer groups"};
  }
}

/// Encodes cursors.
class EncodeJob final : public log::DiskJob {
 public:
  explicit EncodeJob(TopicStore::MakeCursors cursors) : cursors_(std::move(cursors)) {}
  /// Also frees the cursors.
  void run() override {
    const auto begun = std::chrono::steady_clock::now();
    result_ = encoded(cursors_);
    cursors_ = nullptr;
    took_ = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begun);
  }
  void finish() override {}
  /// Returns the encoded cursors. Requires: `run` has returned.
  [[nodiscard]] Result<log::EncodedCursors>& result() { return result_; }
  /// Returns how long `run` took. Requires: `run` has returned.
  [[nodiscard]] std::int64_t took_us() const { return took_.count(); }

 private:
  TopicStore::MakeCursors cursors_;
  Result<log::EncodedCursors> result_{log::EncodedCursors{}};
  std::chrono::microseconds took_{0};
};

}  // namespace

void StoreJobs::submit(std::unique_ptr<log::DiskJob> job, Done done) {
  ++out_;
  disk_.submit(std::move(job), posted(std::move(done)));
}

void StoreJobs::compute(std::unique_ptr<log::DiskJob> job, Done done) {
  ++out_;
  disk_.compute(std::move(job), posted(std::move(done)));
}

/// Returns a function that continues in a turn of the loop.
DiskThread::Done StoreJobs::posted(Done done) {
  return [this, done = std::move(done), &loop = loop_](std::unique_ptr<log::DiskJob> ran) {
    // A shared_ptr only because a std::function must be copyable.
    std::shared_ptr<log::DiskJob> shared = std::move(ran);
    loop.post_answer([this, done, shared] {
      shared->finish();
      --out_;
      done(*shared);
      if (out_ == 0 && when_idle_) when_idle_();
    });
  };
}

template <typename LogType>
void DurableStore<LogType>::save_consumers(MakeCursors cursors) {
  jobs_.compute(std::make_unique<EncodeJob>(std::move(cursors)), [this](log::DiskJob& job) {
    auto& ended = static_cast<EncodeJob&>(job);
    consumers_encoding_us_ = ended.took_us();
    if (!ended.result()) return saved(StoredState::consumers, ended.result().error());
    save(StoredState::consumers, [this, encoded = std::move(*ended.result())]() mutable {
      return files_.consumers->write(std::move(encoded));
    });
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
Result<void> DurableStore<LogType>::save_consumers_now(const MakeCursors& cursors) {
  const auto made = encoded(cursors);
  if (!made) return made.error();
  return write_now([&] { return files_.consumers->write(*made); });
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

/// Keeps files of dropped segments until the messages that were carried over from them are durable.
template <typename LogType>
void DurableStore<LogType>::keep_undurable() {
  if (carried_log_ != nullptr) segments_.dropped().keep_all_from(carried_log_->undurable_from());
}

template <typename LogType>
void DurableStore<LogType>::start_carried_work(Timestamp now) {
  if (carried_log_ == nullptr || carried_job_out_) return;
  auto job = carried_log_->take_disk_job(now);
  if (job == nullptr) return;
  carried_job_out_ = true;
  jobs_.submit(std::move(job), [this](log::DiskJob& /*job*/) {
    carried_job_out_ = false;
    events().on_durable();
  });
}

template <typename LogType>
void DurableStore<LogType>::start_work(Timestamp now) {
  start_carried_work(now);
  keep_undurable();
  if (log_job_out_) return;
  if (this->durable_offset() < flush_wanted_) this->log().request_flush();
  flush_wanted_ = {};
  auto job = this->log().take_disk_job(now);
  if (job == nullptr) return;
  log_job_out_ = true;
  const auto submitted = std::chrono::steady_clock::now();
  jobs_.submit(std::move(job), [this, submitted, before = this->durable_offset()](log::DiskJob& /*job*/) {
    log_job_out_ = false;
    if (before < this->durable_offset())
      events().on_flushed(std::chrono::duration_cast<std::chrono::microseconds>(
          std::chrono::steady_clock::now() - submitted));
    events().on_durable();
  });
}

template <typename LogType>
Result<void> DurableStore<LogType>::flush() {
  const auto carried = carried_log_ == nullptr ? Result<void>{} : carried_log_->flush();
  keep_undurable();
  const auto flushed = LogStore<LogType>::flush();
  return flushed ? carried : flushed;
}

template <typename LogType>
Result<void> DurableStore<LogType>::close() {
  const auto carried = carried_log_ == nullptr ? Result<void>{} : carried_log_->close();
  keep_undurable();
  const auto closed = LogStore<LogType>::close();
  return closed ? carried : closed;
}

template <typename LogType>
Result<void> DurableStore<LogType>::destroy() {
  if (carried_log_ != nullptr) {
    if (auto destroyed = carried_log_->destroy(); !destroyed) return destroyed;
  }
  if (auto destroyed = segments_.destroy(); !destroyed) return destroyed;
  return remove_directory(files_.directory);
}

template class DurableStore<log::SegmentLog>;
template class DurableStore<log::WriteBehindLog>;

}  // namespace lightq::broker
