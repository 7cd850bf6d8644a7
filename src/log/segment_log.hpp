/// A durable log: batches in segment files. Layer: log. Byte by byte: docs/log_format.md.
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
  std::string directory;  ///< this log's own; made at the first append
  std::uint64_t segment_bytes = limits::segment_bytes_default;
  /// Size of the first segment's file. Later ones are four times the last one up to 1 MiB, then twice, up to
  /// `segment_bytes`.
  std::uint64_t first_segment_bytes = 1 * limits::MiB;
  std::uint64_t segment_messages_max = 0;  ///< of a segment; 0: as many as fit
  std::uint64_t capacity_bytes = 0;        ///< of stored_bytes; 0: no limit but the disk's
  std::uint64_t capacity_messages = 0;     ///< 0: no limit
  std::uint64_t retention_bytes = 0;       ///< at least so many of the newest are kept; 0: all
  std::int64_t retention_ms = 0;           ///< messages are kept at least so long; 0: for good
  std::uint64_t retention_messages = 0;    ///< at least so many of the newest are kept; 0: all
  std::int64_t flush_interval_ms = 100;    ///< 0: only flush() makes anything durable
  std::uint64_t disk_free_floor_bytes = 0;
  bool leaves_others_room = true;  ///< of what all logs may have of the disk: SpaceWanted::leaves_room
  std::uint64_t flush_bytes = 0;   ///< a sync is due when so many bytes are not durable; 0: not by size
  /// Batches are stored into a mapping of the file, not written: quicker, unless something syncs often.
  bool mapped_writes = false;
  /// Mapped: the next segment is mapped and made present by the disk job, and gets its name from the one
  /// after it was begun.
  bool prefault = false;
  /// Dropped segments wait so long after the last job for others that go with them, or until something else
  /// is to be done; unless they are many, or as many as the pool keeps.
  std::int64_t retire_gather_us = 0;
  /// Where readers on other threads get their views; their chain of segments is kept up then. Null: there are
  /// none. Must outlive the log.
  SegmentViews* views = nullptr;
  /// Batches are encrypted on the disk, and nothing that is not is given out. Null: they are not. Not with
  /// mapped_writes or views. Must outlive the log.
  const BatchCiphers* ciphers = nullptr;
  /// Whose the log is: files of another one are not opened.
  ExpectedLog expected = {};
  /// Where it keeps what it has decrypted, with other logs; outlives it. Null: in a memory of its own.
  DecryptedMemory* decrypted = nullptr;
};

/// Room for a batch at the end of the log, in the mapping that the active segment is written through.
struct RoomInPlace {
  std::span<std::byte> bytes;
  std::byte* page = nullptr;  ///< the segment's first page
  std::uint64_t position = 0;
  SegmentHeader header;
};

/// `appended` means that pwrite returned: the batch survives the end of this process, and is readable.
/// `durable_offset` is what an fdatasync has covered; one that fails stops it for good ("poisoned") until the
/// log is opened again, while appends go on; dropped files from there on are kept until then. Nothing is on
/// disk before the first append. Segments are dropped whole, oldest first. One thread, but for DiskJob::run.
class SegmentLog final : public Log {
 public:
  /// Opens the log in `options.directory`, recovering what an earlier process left; a directory that does not
  /// exist is an empty log. `storage` and `pool` must outlive it. Errors: foreign_format, corrupt, io_error,
  /// each naming the file; not_supported where a segment's key is not there; invalid_argument.
  static Result<std::unique_ptr<SegmentLog>> open(SegmentLogOptions options, Storage& storage,
                                                  SegmentPool& pool, Timestamp now);
  /// Writes nothing: what was appended is with the operating system. Waits for a job that is running.
  ~SegmentLog() override;

  AppendResult append(std::span<std::byte> batch, Timestamp now) override;
  ReadResult read(Place& place) override;
  ReadResult look(Place& place) override;
  FoundByTime first_since(Timestamp time) override;
  [[nodiscard]] Offset first_offset() const override;
  [[nodiscard]] Offset next_offset() const override { return next_; }
  [[nodiscard]] Offset durable_offset() const override { return durable_; }
  [[nodiscard]] std::uint64_t stored_bytes() const override { return stored_bytes_; }
  [[nodiscard]] std::uint64_t held_bytes() const override;
  void trim(Offset /*before*/) override {}
  Result<void> end_segment() override;
  /// Drops every segment but the last that holds nothing at or past `before`, and whose successor begins
  /// there at the latest.
  void drop_before(Offset before) override;
  bool make_room(std::size_t bytes, Offset limit) override;
  /// As make_room, for a batch of `messages`.
  bool make_room(std::size_t bytes, std::uint64_t messages, Offset limit);
  void maintain(Timestamp now) override;
  std::unique_ptr<DiskJob> take_disk_job(Timestamp now) override;
  void request_flush() override { flush_requested_ = next_; }
  [[nodiscard]] bool wants_disk_work() const override;
  Result<void> flush() override;
  Result<void> close() override;

  /// Room for a batch of at least `at_least` and at most `wanted` bytes, beginning a new segment if need be.
  /// Requires `mapped_writes`. Until the next call that is not const nothing else may be written there.
  /// `full`, `no_space`, `failed`, `too_large` as append.
  struct RoomResult {
    AppendOutcome outcome = AppendOutcome::failed;
    RoomInPlace room;
  };
  RoomResult room_in_place(std::size_t at_least, std::size_t wanted);
  /// Appends the batch that was made in that room; its base offset and time are stamped already.
  void append_in_place(std::span<std::byte> batch);
  /// How many messages the active segment still takes; before a roll: of the next.
  [[nodiscard]] std::uint64_t messages_left() const;
  /// Nothing at or past `hold` is dropped by retention.
  void hold(Offset hold) { hold_ = hold; }
  /// The files of dropped segments that hold something at or past `from` stay: the next start may have to
  /// read them. They go all the same where the disk is full, and the oldest of those that are more than
  /// dropped_bytes_max() together. By default none stays.
  void keep_dropped_from(Offset from) { keep_dropped_from_ = from; }
  /// At least 128 MiB, and two segments.
  [[nodiscard]] std::uint64_t dropped_bytes_max() const {
    return std::max<std::uint64_t>(128 * limits::MiB, 2 * options_.segment_bytes);
  }
  /// Removes the files that are kept to be written again, of all logs: what is saved beside this one found
  /// the disk full.
  void free_disk() { pool_.free_disk(); }
  /// Bytes of dropped segments whose files are there, and one past the last message in them; 0 without any.
  [[nodiscard]] std::uint64_t dropped_bytes() const { return dropped_bytes_; }
  [[nodiscard]] Offset dropped_end() const {
    return retired_.empty() ? Offset{} : retired_.back().end_offset;
  }
  /// Drops what retention does not need, but never the last segment.
  void drop_unneeded(Timestamp now);
  /// The segment that holds `offset`, or the one before it; the last for an offset past the end. Null if
  /// there is no segment. Requires `views`.
  [[nodiscard]] std::shared_ptr<SegmentNode> node_of(Offset offset) const;
  [[nodiscard]] const std::deque<std::unique_ptr<SegmentFile>>& segments() const { return segments_; }
  /// A batch of this size fits the capacity.
  [[nodiscard]] bool fits_capacity(std::size_t bytes, std::uint64_t messages) const;
  /// How many segments were begun.
  [[nodiscard]] std::uint64_t rolls() const { return rolls_; }
  /// A job was taken, and is neither finished nor destroyed yet.
  [[nodiscard]] bool job_is_out() const { return jobs_->is_out; }
  /// take_disk_job would give a job now, or at least has to be asked.
  [[nodiscard]] bool disk_job_is_due(Timestamp now) const;
  /// Dropped segments wait for nothing but others: they are due after retire_gather_us.
  [[nodiscard]] bool gathers_retired() const { return !retire_failed_ && !ready_to_retire().empty(); }
  /// A job that makes everything appended so far durable, whether or not that is due; null while one is out.
  std::unique_ptr<DiskJob> take_flush_job(Timestamp now);
  /// Begins the first segment if there is none, and makes it durable: from then on the log has an identity.
  Result<void> settle();
  /// Bytes appended that no sync has covered.
  [[nodiscard]] std::uint64_t unsynced_bytes() const;
  [[nodiscard]] const Error& last_error() const override { return last_error_; }
  [[nodiscard]] bool may_flush_again() const override { return !poisoned_; }
  /// Whether the last disk job that was finished could give the active segment its name (PendingName) and
  /// open the directories to be synced; if not, it has synced and retired nothing, and a later one tries
  /// again.
  [[nodiscard]] const Result<void>& begun() const { return begun_; }
  /// False for a while after a job could not: another one is not to be taken yet to sync.
  [[nodiscard]] bool may_begin(Timestamp now) const;

  /// What opening found.
  [[nodiscard]] const RecoveryReport& recovery() const { return recovery_; }
  /// The log's identity: the same as long as its files live, another one after they were lost.
  [[nodiscard]] std::uint64_t incarnation() const { return incarnation_; }
  /// A sync has failed: durable_offset stands still until the log is opened again.
  [[nodiscard]] bool poisoned() const { return poisoned_; }
  /// What that sync said; last_error() may be of an append since.
  [[nodiscard]] const Error& sync_error() const { return sync_error_; }
  /// Drops the oldest segment, whatever the capacity, if it holds nothing at or past `limit`; the only one
  /// after beginning another with room for `bytes`. False if nothing could be dropped.
  bool drop_first(Offset limit, std::size_t bytes);
  /// Hands all files to the pool and removes the directory, for a topic that is deleted. Only destruction may
  /// follow. Waits for a job that is running.
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
  /// How large a new segment is: as its log has come to need, or as small as the format allows, whatever the
  /// bounds of the disk's use, to let others go.
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
    std::uint64_t position = 0;  // of a batch to begin at; 0: search
  };
  [[nodiscard]] std::optional<Start> start_from_hint(const Place& place) const;
  [[nodiscard]] std::size_t segment_of(Offset offset) const;
  [[nodiscard]] std::uint64_t hint_for(std::size_t segment, std::uint64_t position) const;
  Result<void> open_view(SegmentFile& segment);
  ReadResult find(Place& place, bool header_alone);
  ReadResult read_encrypted(const SegmentFile& segment, std::uint64_t position);
  ReadResult damaged(const SegmentFile& segment, const SegmentDamage& damage);
  ReadResult unavailable(const Place& place, const Error& error);
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
  /// Of a log: full segments that wait for a sync and have a descriptor when a job has been done; where none
  /// has come for long; and dropped ones that wait for a job.
  static constexpr std::uint64_t unsynced_open_max = 16;
  static constexpr std::uint64_t unsynced_open_hard_max = 2 * unsynced_open_max;
  static constexpr std::size_t retired_open_max = unsynced_open_max;
  void rest_full_segments();
  /// So many segments that wait for a sync, at least, are to give up their descriptors.
  [[nodiscard]] bool may_rest(std::uint64_t at_least) const;
  void add_rest(SegmentWork& work);
  void finish_rest(const SegmentWork& work, std::uint64_t rested);
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
  std::uint64_t front_number_ = 0;   // segments_[i] is segment number front_number_ + i in hints and jobs
  std::uint64_t rested_ = 0;         // segments before this number have no descriptor
  std::vector<SegmentFile*> views_;  // mapped segments, least recently used first
  Offset next_;
  Offset durable_;
  Offset flush_requested_;  // everything before it is to become durable at once
  std::uint64_t stored_bytes_ = 0;
  std::uint64_t incarnation_ = 0;
  std::uint32_t batch_mask_ = 0;                 // of the files that it begins
  std::unique_ptr<EncryptedBatches> encrypted_;  // null: nothing is
  bool directory_made_ = false;
  bool parent_unsynced_ = false;                          // the directory's own name is not on disk yet
  std::uint64_t rolls_ = 0;                               // changes of the directory
  std::uint64_t synced_rolls_ = 0;                        // those that are on disk
  std::uint64_t rest_refused_rolls_ = ~std::uint64_t{0};  // when a file had to keep its descriptor
  bool closed_ = false;                // that is on disk for good, and nothing has changed since
  bool maybe_closed_on_disk_ = false;  // the last segment's checkpoint may say that nothing follows
  bool poisoned_ = false;
  Offset hold_{~std::uint64_t{0}};
  std::optional<PreparedSegment> prepared_;
  bool waits_for_space_ = false;       // for a new segment, which is told once, when it begins
  std::shared_ptr<PendingName> name_;  // the active segment's, if it was begun without; perhaps given by now
  Result<void> begun_;
  std::optional<Offset> remembered_;  // the segment that begins here has its name and header on disk
  std::vector<std::shared_ptr<WritableMapping>> unmap_;  // for the next job to let go of
  std::vector<RetiredSegment> retired_;                  // dropped, their files still there; oldest first
  std::uint64_t dropped_bytes_ = 0;                      // of retired_
  Offset keep_dropped_from_{~std::uint64_t{0}};
  std::shared_ptr<SegmentJobState> jobs_;
  Timestamp last_sync_;
  Timestamp last_prepare_{-1'000'000};
  Timestamp last_begun_;
  Timestamp last_retire_;
  bool retire_failed_ = false;  // the last time
  Timestamp last_use_;
  bool used_ = false;  // since the last maintain
  RecoveryReport recovery_;
  Error last_error_;
  Error sync_error_;
};

}  // namespace lightq::log
