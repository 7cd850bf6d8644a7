/// A durable log: batches in segment files. docs/log_format.md specifies every byte. Layer: log.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "log/encrypted_batches.hpp"
#include "log/log.hpp"
#include "log/recovery.hpp"
#include "log/segment_file.hpp"
#include "log/segment_job.hpp"
#include "log/segment_pool.hpp"
#include "log/storage.hpp"

namespace lightq::log {

struct SegmentLogOptions {
  std::string directory;  ///< owned by this log alone; created at the first append
  std::uint64_t segment_bytes = limits::segment_bytes_default;
  /// File size of the first segment. Each later one is four times as large as the one before, up to 1 MiB,
  /// then twice as large, up to `segment_bytes`.
  std::uint64_t first_segment_bytes = 1 * limits::MiB;
  std::uint64_t segment_messages_max = 0;  ///< limit for one segment; 0: as many as fit
  std::uint64_t capacity_bytes = 0;        ///< limit for stored_bytes; 0: only the disk limits it
  std::uint64_t capacity_messages = 0;     ///< limit for the number of messages; 0: none
  std::uint64_t retention_bytes = 0;       ///< at least this many of the newest bytes are kept; 0: all
  std::int64_t retention_ms = 0;           ///< messages are kept at least this long; 0: without a limit
  std::uint64_t retention_messages = 0;    ///< at least this many of the newest messages are kept; 0: all
  std::int64_t flush_interval_ms = 100;    ///< 0: nothing is synced by time
  std::uint64_t disk_free_floor_bytes = 0;
  bool leaves_others_room = true;  ///< SpaceWanted::leaves_room of each new segment
  std::uint64_t flush_bytes = 0;   ///< a sync is due once this many bytes are not durable; 0: not by size
  /// Batches are stored into a mapping of the file instead of written. Faster, unless syncs are frequent.
  bool mapped_writes = false;
  /// With mapped_writes: a disk job maps the next segment's file and makes its pages present. The segment
  /// begins under the name of a prepared file, and the next job renames it.
  bool prefault = false;
  /// The time between two jobs that retire segments. Dropped segments wait for it, so that one job retires
  /// several. They wait less if other work is due, or if there are many of them (16, or as many as the pool
  /// keeps if that is fewer).
  std::int64_t retire_gather_us = 0;
  /// Provides views for readers on other threads, for which the log then keeps its chain of SegmentNodes.
  /// Null: there are no such readers. Lifetime: must outlive the log.
  SegmentViews* views = nullptr;
  /// Encrypts batches on disk; batches in clear are then not delivered. Null: no encryption. Not with
  /// mapped_writes or views. Lifetime: must outlive the log.
  const BatchCiphers* ciphers = nullptr;
  /// The id that the log should have. Files of a log with another id are not opened.
  ExpectedLog expected = {};
  /// Memory for decrypted batches, shared with other logs. Null: the log has its own. Lifetime: must outlive
  /// the log.
  DecryptedMemory* decrypted = nullptr;
};

/// Space for a batch at the end of the log, in the mapping through which the active segment is written.
struct RoomInPlace {
  std::span<std::byte> bytes;
  std::byte* page = nullptr;  ///< the segment's first page
  std::uint64_t position = 0;
  SegmentHeader header;
};

/// The log of a durable topic or embedded queue, in segment files.
///
/// A segment's life: its file is *prepared*, new or from the pool. The segment begins at an append and is
/// *active*. It is *full* when the next segment begins, and gets a *seal*. Retention, `make_room` and
/// `drop_before` *drop* the oldest segment: the log does not read it any more. A disk job *retires* dropped
/// segments: it moves their files to the pool, or removes them.
///
/// - `appended` means that pwrite returned: the batch is readable, and survives the end of this process.
/// - `durable_offset` is the end of the messages that an fdatasync has covered. If one fails, the log is
///   poisoned: durable_offset stays where it is until the log is opened again. Appends continue, and dropped
///   files from there on are kept.
/// - Nothing is on disk before the first append. Segments are dropped whole, oldest first.
///
/// Thread: one at a time, except that DiskJob::run may be on another.
class SegmentLog final : public Log {
 public:
  /// Opens the log in `options.directory` and recovers the messages of an earlier process. A directory that
  /// does not exist is an empty log. Lifetime: `storage` and `pool` must outlive the log. Errors:
  /// foreign_format, corrupt, io_error, each with the file; not_supported if a segment's key is missing;
  /// invalid_argument.
  static Result<std::unique_ptr<SegmentLog>> open(SegmentLogOptions options, Storage& storage,
                                                  SegmentPool& pool, Timestamp now);
  /// Writes nothing, because the operating system has everything that was appended. Waits for a running job.
  ~SegmentLog() override;

  AppendResult append(std::span<std::byte> batch, Timestamp now) override;
  ReadResult read(ReadPosition& place) override;
  ReadResult read_header(ReadPosition& place) override;
  FoundByTime first_since(Timestamp time) override;
  [[nodiscard]] Offset first_offset() const override;
  [[nodiscard]] Offset next_offset() const override { return next_; }
  [[nodiscard]] Offset durable_offset() const override { return durable_; }
  [[nodiscard]] std::uint64_t stored_bytes() const override { return stored_bytes_; }
  [[nodiscard]] std::uint64_t held_bytes() const override;
  void trim(Offset /*before*/) override {}
  Result<void> end_segment() override;
  /// Drops the oldest segment as long as the one after it begins at `before` or earlier. So a dropped segment
  /// contains nothing at or past `before`, and the last segment stays.
  void drop_before(Offset before) override;
  bool make_room(std::size_t bytes, Offset limit) override;
  /// See BatchLog::make_room; makes space for a batch of `messages` messages.
  bool make_room(std::size_t bytes, std::uint64_t messages, Offset limit);
  void maintain(Timestamp now) override;
  std::unique_ptr<DiskJob> take_disk_job(Timestamp now) override;
  void request_flush() override { flush_requested_ = next_; }
  [[nodiscard]] bool wants_disk_work() const override;
  Result<void> flush() override;
  Result<void> close() override;

  /// The result of room_in_place. Outcomes `full`, `no_space`, `failed`, `too_large` as for append.
  struct RoomResult {
    AppendOutcome outcome = AppendOutcome::failed;
    RoomInPlace room;
  };
  /// Returns space for a batch of at least `at_least` and at most `wanted` bytes; begins a new segment if
  /// necessary. Requires: `mapped_writes`. Until the next non-const call, nothing else may be written into
  /// that space.
  RoomResult room_in_place(std::size_t at_least, std::size_t wanted);
  /// Appends the batch that was written into that space. Requires: its base offset and time are stamped.
  void append_in_place(std::span<std::byte> batch);
  /// Returns how many more messages the active segment takes. If the next append begins a segment, returns
  /// how many messages that segment takes.
  [[nodiscard]] std::uint64_t messages_left() const;
  /// Keeps retention from dropping anything at or past `hold`.
  void hold(Offset hold) { hold_ = hold; }
  /// Keeps the files of dropped segments that contain something at or past `from`, because the next start may
  /// have to read them. By default none is kept. They are removed all the same if the disk is full, and the
  /// oldest are removed if all together have more than dropped_bytes_max() bytes.
  void keep_dropped_from(Offset from) { keep_dropped_from_ = from; }
  /// Returns the limit for keep_dropped_from: 128 MiB or two segments, whichever is more.
  [[nodiscard]] std::uint64_t dropped_bytes_max() const {
    return std::max<std::uint64_t>(128 * limits::MiB, 2 * options_.segment_bytes);
  }
  /// Removes all files of the pool, which wait to be recycled by the logs that dropped them. Called when a
  /// file stored beside this log found the disk full.
  void free_disk() { pool_.free_disk(); }
  /// Returns the bytes of dropped segments with files that still exist.
  [[nodiscard]] std::uint64_t dropped_bytes() const { return dropped_bytes_; }
  /// Returns one past the last message of dropped segments with files that still exist; 0 if there are none.
  [[nodiscard]] Offset dropped_end() const {
    return retired_.empty() ? Offset{} : retired_.back().end_offset;
  }
  /// Drops segments that retention does not need, but never the last one.
  void drop_unneeded(Timestamp now);
  /// Returns the node of the segment that contains `offset`. For an offset in a gap, returns the segment
  /// before it; past the end, the last segment; before the first one, the first. Null if there is no segment.
  /// Requires `views`.
  [[nodiscard]] std::shared_ptr<SegmentNode> node_of(Offset offset) const;
  [[nodiscard]] const std::deque<std::unique_ptr<SegmentFile>>& segments() const { return segments_; }
  /// Returns true if a batch of this size fits the capacity.
  [[nodiscard]] bool fits_capacity(std::size_t bytes, std::uint64_t messages) const;
  /// Returns how many segments were begun, with one added if the log was not empty when it was opened. Each
  /// changes the directory, so the number identifies the directory's state.
  [[nodiscard]] std::uint64_t rolls() const { return rolls_; }
  /// Returns true if a job was taken, and is neither finished nor destroyed yet.
  [[nodiscard]] bool job_is_out() const { return jobs_->is_out; }
  /// Returns true if take_disk_job should be called, because it would probably return a job.
  [[nodiscard]] bool disk_job_is_due(Timestamp now) const;
  /// Returns true if dropped segments wait only for others to be retired with them: they are due after
  /// retire_gather_us.
  [[nodiscard]] bool gathers_retired() const { return !retire_failed_ && !ready_to_retire().empty(); }
  /// Returns a job that makes everything appended so far durable, even if no sync is due; null while another
  /// is out.
  std::unique_ptr<DiskJob> take_flush_job(Timestamp now);
  /// Begins the first segment if there is none, and makes it durable: from then on the log has an identity.
  Result<void> settle();
  /// Returns the number of appended bytes that no sync has covered.
  [[nodiscard]] std::uint64_t unsynced_bytes() const;
  [[nodiscard]] const Error& last_error() const override { return last_error_; }
  [[nodiscard]] bool may_flush_again() const override { return !poisoned_; }
  /// Returns whether the last finished disk job could rename the active segment (PendingName) and open the
  /// directories to be synced. If not, it has synced and retired nothing, and a later job tries again.
  [[nodiscard]] const Result<void>& begun() const { return begun_; }
  /// Returns false for a while after a job failed to begin: no other job to sync may be taken yet.
  [[nodiscard]] bool may_begin(Timestamp now) const;

  /// Returns the findings of opening the log.
  [[nodiscard]] const RecoveryReport& recovery() const { return recovery_; }
  /// Returns the log's identity. It stays the same as long as the log's files exist, and differs after they
  /// were lost.
  [[nodiscard]] std::uint64_t incarnation() const { return incarnation_; }
  /// Returns true if a sync has failed: durable_offset does not advance until the log is opened again.
  [[nodiscard]] bool poisoned() const { return poisoned_; }
  /// Returns the error of that sync; last_error() may be that of a later append.
  [[nodiscard]] const Error& sync_error() const { return sync_error_; }
  /// Drops the oldest segment, even if the capacity is not reached, unless it contains something at or past
  /// `limit`. If it is the only segment, first begins another with space for `bytes`. Returns false if
  /// nothing could be dropped.
  bool drop_first(Offset limit, std::size_t bytes);
  /// Removes all files and the directory, for a topic that is deleted. Gives no file to the pool. Waits for a
  /// running job. Requires: only destruction follows.
  Result<void> destroy();

 private:
  friend class SegmentJob;
  SegmentLog(SegmentLogOptions options, Storage& storage, SegmentPool& pool, RecoveredSegments recovered);

  // Appending.
  [[nodiscard]] std::size_t bytes_on_disk(std::size_t batch_bytes) const {
    return batch_bytes + (encrypted_ == nullptr ? 0 : encrypted_layout::more_bytes);
  }
  [[nodiscard]] std::uint64_t key_id() const { return encrypted_ == nullptr ? 0 : encrypted_->key_id(); }
  [[nodiscard]] AppendOutcome outcome_of(const Error& error);
  [[nodiscard]] bool active_takes(std::size_t bytes, std::uint64_t messages) const;
  Result<void> make_writable(std::size_t bytes, std::uint64_t messages);
  Result<void> map_prepared(PreparedSegment& prepared);
  void make_room_to_map(std::uint64_t bytes);
  void publish(SegmentFile& segment, SegmentNode* before);
  [[nodiscard]] std::uint64_t next_segment_bytes(std::size_t batch_bytes) const;
  [[nodiscard]] NewBytes new_bytes() const {
    return options_.prefault ? NewBytes::written : NewBytes::reserved;
  }
  /// The size of a new segment.
  /// - as_needed: as the growth of the log and the batch require.
  /// - smallest: the minimum of the format, beyond all bounds of disk use, so that others can be dropped.
  enum class NewSegment { as_needed, smallest };
  Result<void> roll(std::size_t batch_bytes, NewSegment size = NewSegment::as_needed);
  Result<void> roll_to_drop(std::size_t batch_bytes);
  Result<void> begin_writing(SegmentFile& active, std::size_t bytes);
  Result<void> reserve(SegmentFile& active, std::size_t bytes);
  void stop_writing(SegmentFile& segment);
  [[nodiscard]] bool is_above_cap() const;
  void seal_for_this_boot(SegmentFile& segment);
  Result<PreparedSegment> take_prepared(std::size_t batch_bytes, NewSegment size);
  void note_wait(const Result<PreparedSegment>& made, SpaceBound bound);
  Result<void> make_directory();
  Result<void> give_name();

  // Reading.
  struct Start {
    std::size_t segment = 0;     // index in segments_
    std::uint64_t position = 0;  // of a batch to start at; 0: search
  };
  [[nodiscard]] std::optional<Start> start_from_hint(const ReadPosition& place) const;
  [[nodiscard]] std::size_t segment_of(Offset offset) const;
  [[nodiscard]] std::uint64_t hint_for(std::size_t segment, std::uint64_t position) const;
  Result<void> open_view(SegmentFile& segment);
  ReadResult find(ReadPosition& place, bool header_alone);
  ReadResult read_encrypted(const SegmentFile& segment, std::uint64_t position);
  ReadResult damaged(const SegmentFile& segment, const SegmentDamage& damage);
  ReadResult unavailable(const ReadPosition& place, const Error& error);
  [[nodiscard]] bool may_come_back(const Error& error) const;
  void release_views();

  // Dropping.
  [[nodiscard]] Offset end_of_oldest() const;
  void drop_oldest();
  [[nodiscard]] bool is_read(const RetiredSegment& segment, bool after_another) const;
  [[nodiscard]] RetiredSegment retired(SegmentFile& segment);
  [[nodiscard]] const RetiredSegment* last_with_identity() const;
  void apply_retention(Timestamp now);
  void date_segments(Timestamp now);
  [[nodiscard]] bool is_too_old(const SegmentFile& segment, Timestamp now) const;
  void release_idle_files(Timestamp now);
  void forget_view(const SegmentFile& segment);

  // Disk jobs.
  [[nodiscard]] bool sync_is_due(Timestamp now) const;
  [[nodiscard]] bool flush_is_due(Timestamp now) const;
  [[nodiscard]] bool anything_unsynced() const;
  [[nodiscard]] std::vector<SyncTarget> unsynced_files();
  [[nodiscard]] bool has_to_work(Timestamp now) const;
  [[nodiscard]] bool may_retire(Timestamp now) const;
  [[nodiscard]] bool retire_is_due(Timestamp now) const;
  [[nodiscard]] bool prepare_is_due(Timestamp now) const;
  [[nodiscard]] bool name_is_due(Timestamp now) const;
  /// Limits for the open files of one log.
  /// - unsynced_open_max: full segments that wait for a sync and keep their descriptors after a job.
  /// - unsynced_open_hard_max: the same, if no job has run for long; the writer then closes them.
  /// - retired_open_max: dropped segments that wait for a job.
  static constexpr std::uint64_t unsynced_open_max = 16;
  static constexpr std::uint64_t unsynced_open_hard_max = 2 * unsynced_open_max;
  static constexpr std::size_t retired_open_max = unsynced_open_max;
  void rest_full_segments();
  /// Returns true if at least `at_least` unsynced segments should give up their descriptors.
  [[nodiscard]] bool may_release_descriptors(std::uint64_t at_least) const;
  void add_releases(SegmentWork& work);
  void finish_releases(const SegmentWork& work, std::uint64_t released);
  [[nodiscard]] SegmentWork new_work() const;
  [[nodiscard]] SegmentWork work_to_sync();
  [[nodiscard]] SegmentWork work_to_remember() const;
  [[nodiscard]] bool is_remembered(const std::vector<RetiredSegment>& retire) const;
  void synced(const SegmentWork& work, const SegmentWorkDone& done);
  void poison(const Error& error);
  void settle_doubts();
  static void note_synced(SegmentFile& segment, const SyncTarget& target);
  [[nodiscard]] std::vector<RetiredSegment> ready_to_retire(bool all = false) const;
  void finish_job(const SegmentWork& work, SegmentWorkDone done);
  Result<void> retire_now();
  Result<void> keep_seal(SegmentFile& last);
  Result<void> sync_close(SegmentFile& last);

  const SegmentLogOptions options_;
  Storage& storage_;
  SegmentPool& pool_;
  const SegmentPool::Member member_{pool_};
  std::deque<std::unique_ptr<SegmentFile>> segments_;
  std::uint64_t front_number_ = 0;   // in hints and jobs, segments_[i] has the number front_number_ + i
  std::uint64_t released_ = 0;       // segments before this number have no descriptor
  std::vector<SegmentFile*> views_;  // mapped segments, least recently used first
  Offset next_;
  Offset durable_;
  Offset flush_requested_;  // everything before it should become durable immediately
  std::uint64_t stored_bytes_ = 0;
  std::uint64_t incarnation_ = 0;
  std::uint32_t batch_mask_ = 0;                 // of the files that it begins
  std::unique_ptr<EncryptedBatches> encrypted_;  // null: the log is not encrypted
  bool directory_made_ = false;
  bool parent_unsynced_ = false;    // the directory's own name is not on disk yet
  std::uint64_t rolls_ = 0;         // changes of the directory
  std::uint64_t synced_rolls_ = 0;  // the value of rolls_ that the last sync of the directory covered
  // Value of rolls_ when a file had to keep its descriptor.
  std::uint64_t release_refused_rolls_ = ~std::uint64_t{0};
  bool closed_ = false;                // a clean end of the log is on disk, and nothing has changed since
  bool maybe_closed_on_disk_ = false;  // the last segment's checkpoint on disk may be clean: nothing follows
  bool poisoned_ = false;
  Offset hold_{~std::uint64_t{0}};
  std::optional<PreparedSegment> prepared_;
  bool waits_for_space_ = false;  // for a new segment; reported once, when the wait begins
  // The pending rename of the active segment, if that was begun without a name; a job may have done it
  // meanwhile.
  std::shared_ptr<PendingName> name_;
  Result<void> begun_;
  std::optional<Offset> remembered_;  // the segment that begins here has its name and header on disk
  std::vector<std::shared_ptr<WritableMapping>> unmap_;  // for the next job to unmap
  std::vector<RetiredSegment> retired_;  // dropped segments with files that still exist; oldest first
  std::uint64_t dropped_bytes_ = 0;      // total of retired_
  Offset keep_dropped_from_{~std::uint64_t{0}};
  std::shared_ptr<SegmentJobState> jobs_;
  Timestamp last_sync_;
  Timestamp last_prepare_{-1'000'000};
  Timestamp last_begun_;
  Timestamp last_retire_;
  bool retire_failed_ = false;  // the last job could not retire all its segments
  Timestamp last_use_;
  bool used_ = false;  // since the last maintain
  RecoveryReport recovery_;
  Error last_error_;
  Error sync_error_;
};

}  // namespace lightq::log
