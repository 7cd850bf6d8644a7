/// An open embedded queue: its log, the batch that is being packed, its cursors, and its maintenance. Layer:
/// queue.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <lightq/queue.hpp>

#include "log/cursor_table.hpp"
#include "log/directory_lock.hpp"
#include "log/open_batch.hpp"
#include "log/segment_log.hpp"
#include "queue/coarse_clock.hpp"
#include "queue/disk_thread.hpp"
#include "queue/durability.hpp"
#include "queue/hand_off_mutex.hpp"
#include "queue/held_storage.hpp"
#include "queue/segment_source.hpp"
#include "queue/waiters.hpp"

namespace lightq::queue {

class AppendGroup;

/// The engine behind lightq::Queue. It owns the log, its pool, the cursor table and the background thread.
///
/// Locks: `mutex_` guards the log and all members that are not documented otherwise. It is never locked while
/// a disk job runs (DiskJob::run) or a callback is called.
/// - The writer's fast path adds a message to the open batch. It locks only with `many_writers`, because the
///   open batch belongs to the writer. The batch is begun and completed under the lock.
/// - Readers lock to begin, to seek, and to find a segment after a drop.
/// - The background thread never waits for the lock. A thread that has it takes finished jobs from the
///   background thread, and posts the next.
class Engine final : private HasHeldStorage, public SegmentSource {
 public:
  static Result<std::unique_ptr<Engine>> open(const std::string& directory, const QueueOptions& options,
                                              log::Storage& storage);
  /// Opens a queue in a directory that the caller has locked.
  static Result<std::unique_ptr<Engine>> open(const std::string& directory, const QueueOptions& options,
                                              log::Storage& storage, log::DirectoryLock lock);
  ~Engine() override;
  Result<void> close();
  /// Closes the descriptors of the directory's lock, and does nothing else; the parent still has the lock.
  /// Called instead of the destructor in a child process.
  void abandon() { held_.abandon(); }

  // Appending: engine_append.cpp.
  Result<Offset> enqueue(ByteView payload);
#ifdef LIGHTQ_RECORD_SUM_WIDE
  /// See enqueue. Requires: RecordSum::may_be_wide is true for the message.
  LIGHTQ_AVX2_TARGET Result<Offset> enqueue_wide(ByteView payload);
#endif
  Result<Offset> append(std::span<std::byte> batch);

  // Durability: engine_upkeep.cpp.
  Result<void> flush();
  [[nodiscard]] Offset durable_offset() const { return {durable_.load(std::memory_order_acquire)}; }
  Result<bool> wait_durable(Offset offset, std::chrono::milliseconds timeout);
  void on_durable(Offset offset, DurabilityWaits::Callback done);
  Result<void> trim(Offset before);
  void maintain();

  // Cursors: engine_cursors.cpp.
  /// Returns the cursor with this name, created if there is none. It belongs to the caller until `give_back`.
  Result<log::TableCursor*> take_cursor(std::string_view name, const Start& start);
  void give_back(const log::TableCursor& cursor);
  Result<void> remove_cursor(std::string_view name);
  /// Commits `offset`, or the nearest offset that is kept, while no messages are dropped. Returns the
  /// committed offset.
  Offset go_back(log::TableCursor& cursor, Offset offset);
  /// Notes that `cursor` has committed. Returns the offset from which on the cursor should call this again.
  Offset committed(const log::TableCursor& cursor);
  /// Returns true if a writer waits for commits; then each commit has to be noted.
  [[nodiscard]] bool room_is_wanted() const {
    fence_.light();
    return room_wanted_.load(std::memory_order_relaxed) != 0;
  }

  [[nodiscard]] QueueStats stats() const;
  [[nodiscard]] const QueueRecovery& recovery() const { return recovery_; }
  [[nodiscard]] const QueueOptions& options() const { return options_; }

  // Implementation of SegmentSource.
  std::shared_ptr<log::SegmentNode> node_of(Offset offset) override;
  [[nodiscard]] Offset first_offset() const override { return {first_.load(std::memory_order_acquire)}; }
  bool wait(Offset offset, std::chrono::milliseconds timeout) override;

 private:
  using Lock = std::unique_lock<HandOffMutex>;
  Engine(std::string directory, const QueueOptions& options, log::Storage& storage, log::DirectoryLock lock);
  Result<void> open_log();
  Result<void> open_cursors();

  // Appending. Requires: the lock is held.
  [[nodiscard]] Lock lock_writer() {
    return options_.many_writers ? Lock(mutex_) : Lock(mutex_, std::defer_lock);
  }
  Result<Offset> enqueue_otherwise(ByteView payload);
  Result<Offset> enqueue_written(ByteView payload);
  Result<Offset> enqueue_mapped(ByteView payload);
  /// Returns true if the open batch takes one more message: it has space, and the pulse shows that its time
  /// is still right.
  [[nodiscard]] bool goes_on_at_once(std::size_t payload_bytes) const {
    return has_room_for(payload_bytes) && beat_->load(std::memory_order_relaxed) == batch_beat_;
  }
  /// Returns true if the open batch takes one more message: it has space, and the clock shows that its time
  /// is still right.
  [[nodiscard]] bool goes_on(std::size_t payload_bytes) { return has_room_for(payload_bytes) && is_young(); }
  [[nodiscard]] bool has_room_for(std::size_t payload_bytes) const {
    return open_.fits(payload_bytes) && payload_bytes <= packed_bytes_max_;
  }
  [[nodiscard]] bool is_young();
  void note_beat();
  [[nodiscard]] bool has_beat() const { return beat_->load(std::memory_order_relaxed) != CoarseClock::still; }
  void put_off_wake();
  void wake_if_put_off();
  Result<Offset> add_to_open_batch(ByteView payload) {
    const Offset offset = open_.next_offset();
    open_.add(payload);
    return shown(offset);
  }
  /// Publishes the message at `offset` to readers, and wakes them if necessary.
  Result<Offset> shown(Offset offset) {
    publish(offset + 1);
    if (readers_.may_wait()) [[unlikely]]
      return woken(offset);
    return offset;
  }
  Result<Offset> woken(Offset offset);
  /// Publishes everything before `next` to readers, and wakes them if necessary.
  void show(Offset next) {
    publish(next);
    readers_.wake_if_waiting();
  }
  Result<Offset> enqueue_into_new_batch(Lock& lock, ByteView payload);
  Result<Offset> enqueue_large(Lock& lock, ByteView payload);
  Result<void> open_batch(Lock& lock, std::size_t payload_bytes);
  void close_batch();
  Result<Offset> append_locked(Lock& lock, std::span<std::byte> batch, std::uint64_t records);
  Result<Offset> append_unsynced(Lock& lock, std::span<std::byte> batch, std::uint64_t records);
  Result<void> make_room(Lock& lock, std::size_t bytes, std::uint64_t records);
  Result<void> close_and_make_room(Lock& lock, std::size_t bytes, std::uint64_t records);
  [[nodiscard]] bool make_room_from_committed(std::size_t bytes, std::uint64_t records);
  Result<void> wait_for_room(Lock& lock, std::size_t bytes, std::uint64_t records);
  void after_append(Lock& lock);
  [[nodiscard]] Error error_of(log::AppendOutcome outcome, std::size_t bytes) const;
  [[nodiscard]] Error refused(Lock& lock, log::AppendOutcome outcome, std::size_t bytes);
  static Error closed_error() { return {ErrorCode::closed, "the queue was closed", 0}; }

  // Group commit, for many writers that wait for the disk: engine_group_commit.cpp.
  Result<Offset> enqueue_in_group(ByteView payload);
  void lead(Lock& lock, AppendGroup& group);
  void gather(Lock& lock, const AppendGroup& group) const;
  static void lock_soon(Lock& lock);
  void append_each(Lock& lock, AppendGroup& group);

  // Maintenance. Requires: the lock is held.
  void note_log();
  void drop_committed();
  void apply_retention();
  [[nodiscard]] std::optional<Offset> committed_by_all() const;
  [[nodiscard]] bool flush_is_due() const;
  [[nodiscard]] bool work_is_due(Timestamp now) const;
  [[nodiscard]] std::unique_ptr<log::DiskJob> take_due_job();
  void do_due_work(Lock& lock);
  void post_due_work();
  void serve_background();
  void run_job(Lock& lock, std::unique_ptr<log::DiskJob> job);
  void finish_job(std::unique_ptr<log::DiskJob> job);
  using Deadline = std::chrono::steady_clock::time_point;
  static bool wait_without(Lock& lock, const WaitedCount& count, Deadline until);
  void wait_for_job(Lock& lock);
  Result<void> sync_up_to(Lock& lock, Offset offset);
  [[nodiscard]] std::vector<std::function<void()>> take_durable();
  void tell_durable(Lock& lock);
  void tell_failure(Lock& lock);
  [[nodiscard]] Result<log::TableCursor*> find_or_create(std::string_view name, const Start& start);
  [[nodiscard]] Result<log::TableCursor*> create_cursor(log::CursorTable& table, std::string_view name,
                                                        const Start& start);
  [[nodiscard]] std::chrono::milliseconds next_timer() const;
  Result<log::CursorTable*> cursor_table();
  Result<Offset> offset_at_time(Timestamp time) override;
  Result<Offset> offset_of_cursor(const std::string& name) override;

  const std::string directory_;
  const QueueOptions options_;
  const bool mapped_;
  const bool quick_;                    // only one thread writes to the open batch
  const bool groups_;                   // writers that wait for the disk append together
  const std::size_t packed_bytes_max_;  // larger messages get a batch of their own
  const log::BootId boot_;
  log::SegmentPool pool_;
  std::unique_ptr<log::SegmentLog> log_;
  std::unique_ptr<log::CursorTable> cursors_;
  QueueRecovery recovery_;

  mutable HandOffMutex mutex_{[this] { serve_background(); }};
  WaitedCount room_made_;  // increased for writers that wait for space
  WaitedCount jobs_done_;  // increased for threads that wait for a sync, or for the end of a job
  bool job_is_out_ = false;
  bool stopping_ = false;          // no more jobs are posted
  bool failure_is_known_ = false;  // a sync has failed, and all threads that wait for one were woken
  bool timer_runs_ = false;        // the background thread knows that some messages are not durable
  std::uint64_t rolls_seen_ = 0;
  std::atomic<int> room_wanted_{0};
  const AsymmetricFence fence_;  // between a commit and reading room_wanted_
  std::vector<log::TableCursor*> all_cursors_;
  bool cursor_is_damaged_ = false;  // a cursor that is not in all_cursors_
  // Cursors not in all_cursors_ yet; while there are any, no messages are dropped.
  std::uint32_t cursors_being_made_ = 0;
  bool closed_ = false;
  std::uint64_t dropped_messages_ = 0;
  std::set<std::string, std::less<>> taken_;  // names of open cursors
  DurabilityWaits durability_;
  std::shared_ptr<AppendGroup> group_;          // the group that messages can join; null: none
  std::uint32_t last_group_ = 0;                // the number of messages in the last group
  std::chrono::nanoseconds last_group_took_{};  // time from its append until it was durable
  BatchBuilder builder_;                        // with many_writers guarded by the lock; else the writer's

  log::OpenBatch open_;
  const std::shared_ptr<CoarseClock> pulse_;       // null unless `quick_` and there is a background thread
  const std::atomic<std::uint32_t>* const beat_;   // the pulse's beat, or a constant one
  static constexpr std::uint32_t no_beat_yet = 1;  // odd, because beats are always even
  std::uint32_t batch_beat_ = no_beat_yet;  // the beat at which the open batch was last found to be recent
  // A new segment has made work due, for which the background thread should wake. The next message wakes it,
  // or a beat.
  std::atomic<bool> wake_is_put_off_{false};
  std::uint64_t beat_call_ = 0;  // id of the call to wake_if_put_off
  std::atomic<std::uint64_t> first_{0};
  std::atomic<std::uint64_t> durable_{0};
  Waiters readers_;
  DiskThread background_;  // the last member, because its thread uses all others
};

}  // namespace lightq::queue
