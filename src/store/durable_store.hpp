/// A topic's storage in files: segments, and two small files for the state of consumers and producers.
/// Layer: store.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

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

  /// `segments`: the part of `log` that is on disk. Lifetime: `disk` and `loop` outlive this.
  DurableStore(std::unique_ptr<LogType> log, log::SegmentLog& segments, StateFiles files, DiskThread& disk,
               EventLoop& loop)
      : LogStore<LogType>(std::move(log)), segments_(segments), files_(std::move(files)), jobs_(disk, loop) {}

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
    return false;
  }
  bool write_behind(Timestamp /*now*/) override { return false; }
  void start_work(Timestamp now) final;
  [[nodiscard]] bool wants_work() const override { return !jobs_.is_idle() || this->log().wants_disk_work(); }
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

 private:
  void save(StoredState what, std::function<Result<void>()> write);
  void saved(StoredState what, const Result<void>& result);
  Result<void> write_now(const std::function<Result<void>()>& write);

  log::SegmentLog& segments_;
  StateFiles files_;
  StoreJobs jobs_;
  StoreEvents* events_ = nullptr;
  bool log_job_out_ = false;
  std::int64_t consumers_encoding_us_ = 0;
  Offset flush_wanted_;  // everything before it should be durable as soon as possible
};

/// Stores messages in segment files (`file`).
class FileStore final : public DurableStore<log::SegmentLog> {
 public:
  FileStore(std::unique_ptr<log::SegmentLog> log, StateFiles files, DiskThread& disk, EventLoop& loop)
      : FileStore(*log, std::move(log), std::move(files), disk, loop) {}

 private:
  FileStore(log::SegmentLog& segments, std::unique_ptr<log::SegmentLog>&& log, StateFiles files,
            DiskThread& disk, EventLoop& loop)
      : DurableStore(std::move(log), segments, std::move(files), disk, loop) {}
};

}  // namespace lightq::broker
