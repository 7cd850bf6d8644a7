/// A topic's storage in files: segments, and two small files for the state of consumers and producers.
/// Layer: store.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "log/carried/carried_log.hpp"
#include "log/saved_state/cursor_file.hpp"
#include "log/saved_state/slot_file.hpp"
#include "log/segment_log/segment_log.hpp"
#include "net/disk_thread.hpp"
#include "net/event_loop.hpp"
#include "store/log_store.hpp"

namespace lightq::broker {

/// The directory of a durable topic, and its files of saved state.
struct StateFiles {
  std::string directory;  ///< with all files of the topic
  std::unique_ptr<log::CursorFile> consumers;
  log::SlotFile producers;
};

/// Runs a store's jobs on the disk's thread, and calls back on the reactor's. Lifetime: `disk` and `loop`
/// outlive it; it outlives its jobs, see is_idle(). Thread: the reactor's.
class StoreJobs {
 public:
  using Done = std::function<void(log::DiskJob& job)>;

  StoreJobs(DiskThread& disk, EventLoop& loop) : disk_(disk), loop_(loop) {}

  /// Runs the job on the disk's thread. Then calls its `finish` and `done` in a turn of the loop.
  void submit(std::unique_ptr<log::DiskJob> job, Done done);
  /// Does the same for a job that touches no disk, beside the jobs of the disk's thread. See
  /// DiskThread::compute.
  void compute(std::unique_ptr<log::DiskJob> job, Done done);
  [[nodiscard]] bool is_idle() const { return out_ == 0; }
  /// Sets a function that is called when is_idle() becomes true.
  void when_idle(std::function<void()> call) { when_idle_ = std::move(call); }

 private:
  DiskThread::Done posted(Done done);

  DiskThread& disk_;
  EventLoop& loop_;
  int out_ = 0;
  std::function<void()> when_idle_;
};

/// Stores messages in segment files, directly or behind a ring. `LogType` is log::SegmentLog or
/// log::WriteBehindLog. Thread: the reactor's.
template <typename LogType>
class DurableStore : public LogStore<LogType> {
 public:
  using Cursors = TopicStore::Cursors;
  using MakeCursors = TopicStore::MakeCursors;

  /// `segments`: the part of `log` that is on disk. `carried`: may be null. Lifetime: `disk` and `loop`
  /// outlive this.
  DurableStore(std::unique_ptr<LogType> log, log::SegmentLog& segments, StateFiles files, DiskThread& disk,
               EventLoop& loop, std::unique_ptr<log::CarriedLog> carried)
      : LogStore<LogType>(std::move(log), std::move(carried)),
        carried_log_(static_cast<log::CarriedLog*>(this->carried())),
        segments_(segments),
        files_(std::move(files)),
        jobs_(disk, loop) {}

  void guard_drops(log::DropGuard* guard) final {
    keeping_.asked = guard;
    segments_.retention().guard(guard == nullptr ? nullptr : &keeping_);
  }
  void report_to(StoreEvents& events) final { events_ = &events; }
  [[nodiscard]] bool is_durable() const final { return true; }
  void save_consumers(MakeCursors cursors) final;
  [[nodiscard]] std::int64_t consumers_encoding_us() const final { return consumers_encoding_us_; }
  void save_producers(log::SlotBytes producers) final;
  Result<void> save_consumers_now(const MakeCursors& cursors) final;
  Result<void> save_producers_now(log::SlotBytes producers) final;
  void keep_dropped_from(Offset from) final { segments_.dropped().keep_from(from); }
  [[nodiscard]] DroppedMessages dropped() const final {
    const log::DroppedSegments& dropped = segments_.dropped();
    return {dropped.end(), dropped.bytes(), dropped.bytes_max()};
  }
  bool maintain(Timestamp now) override {
    this->log().maintain(now);
    maintain_carried(now);
    return false;
  }
  bool write_behind(Timestamp /*now*/) override { return false; }
  void set_limits(const log::LogLimits& limits) final {
    log::LogLimits of_segments = limits;
    if constexpr (requires { this->log().set_capacity(0); }) {
      this->log().set_capacity(limits.capacity_bytes);
      of_segments.capacity_bytes = 0;  // see TopicOpener
    }
    segments_.retention().set_limits(of_segments);
    if (carried_log_ != nullptr) carried_log_->set_bytes_max(limits.carried_bytes_max);
  }
  void start_work(Timestamp now) final;
  [[nodiscard]] bool wants_work() const override {
    return !jobs_.is_idle() || this->log().wants_disk_work() ||
           (carried_log_ != nullptr && carried_log_->wants_work());
  }
  Result<void> flush() final;
  Result<void> close() final;
  void request_flush(Offset end) final { flush_wanted_ = std::max(flush_wanted_, end); }
  [[nodiscard]] const Error* write_fault() const override { return nullptr; }
  [[nodiscard]] const Error* sync_fault() const final {
    return segments_.sync().poisoned() ? &segments_.sync().sync_error() : nullptr;
  }
  [[nodiscard]] bool is_idle() const final { return jobs_.is_idle(); }
  void when_idle(std::function<void()> call) final { jobs_.when_idle(std::move(call)); }
  Result<void> destroy() final;

 protected:
  [[nodiscard]] StoreEvents& events() { return *events_; }
  void maintain_carried(Timestamp now) {
    if (carried_log_ != nullptr) carried_log_->maintain(now);
  }

 private:
  /// Asks the guard of the store. Before the log drops a segment, keeps its file if messages of it were
  /// copied, because the same append may remove files of dropped segments when the disk is full.
  struct KeepingGuard final : log::DropGuard {
    explicit KeepingGuard(DurableStore& of) : store(of) {}
    Offset before_drop(OffsetRange range, Reason reason) override {
      const Offset end = asked->before_drop(range, reason);
      store.keep_undurable();
      return end;
    }
    DurableStore& store;
    log::DropGuard* asked = nullptr;
  };

  void keep_undurable();
  void start_carried_work(Timestamp now);
  void save(StoredState what, std::function<Result<void>()> write);
  void saved(StoredState what, const Result<void>& result);
  Result<void> write_now(const std::function<Result<void>()>& write);

  log::CarriedLog* const carried_log_;  // the base's carried(); null: none
  log::SegmentLog& segments_;
  KeepingGuard keeping_{*this};
  StateFiles files_;
  StoreJobs jobs_;
  StoreEvents* events_ = nullptr;
  bool log_job_out_ = false;
  bool carried_job_out_ = false;
  std::int64_t consumers_encoding_us_ = 0;
  Offset flush_wanted_;  // everything before it should be durable as soon as possible
};

/// Stores messages in segment files (`file`).
class FileStore final : public DurableStore<log::SegmentLog> {
 public:
  FileStore(std::unique_ptr<log::SegmentLog> log, StateFiles files, DiskThread& disk, EventLoop& loop,
            std::unique_ptr<log::CarriedLog> carried = nullptr)
      : FileStore(*log, std::move(log), std::move(files), disk, loop, std::move(carried)) {}

 private:
  FileStore(log::SegmentLog& segments, std::unique_ptr<log::SegmentLog>&& log, StateFiles files,
            DiskThread& disk, EventLoop& loop, std::unique_ptr<log::CarriedLog> carried)
      : DurableStore(std::move(log), segments, std::move(files), disk, loop, std::move(carried)) {}
};

}  // namespace lightq::broker
