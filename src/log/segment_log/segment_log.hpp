/// A durable log: batches in segment files. docs/log_format.md specifies every byte. Layer: log.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "log/log.hpp"
#include "log/segment/encrypted_batches.hpp"
#include "log/segment/recovery.hpp"
#include "log/segment/segment_pool.hpp"
#include "log/segment_log/close_mark.hpp"
#include "log/segment_log/dropped_segments.hpp"
#include "log/segment_log/idle_files.hpp"
#include "log/segment_log/log_directory.hpp"
#include "log/segment_log/next_segment.hpp"
#include "log/segment_log/read_views.hpp"
#include "log/segment_log/segment_appender.hpp"
#include "log/segment_log/segment_descriptors.hpp"
#include "log/segment_log/segment_jobs.hpp"
#include "log/segment_log/segment_list.hpp"
#include "log/segment_log/segment_log_options.hpp"
#include "log/segment_log/segment_reader.hpp"
#include "log/segment_log/segment_retention.hpp"
#include "log/segment_log/segment_roller.hpp"
#include "log/segment_log/segment_sync.hpp"
#include "log/segment_log/writer_mappings.hpp"
#include "log/storage/storage.hpp"

namespace lightq::log {

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
/// The log composes classes with one task each, and passes calls on to them: SegmentAppender writes batches,
/// SegmentRoller begins segments, SegmentReader reads, SegmentRetention drops, SegmentSync knows what is
/// durable, SegmentJobs composes the disk jobs. Each knows only parts that are declared before it here.
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
  ReadResult read_header(ReadPosition& place) override { return reader_.find(place, true); }
  FoundByTime first_since(Timestamp time) override { return reader_.first_since(time); }
  [[nodiscard]] Offset first_offset() const override { return segments_.first_offset(); }
  [[nodiscard]] Offset next_offset() const override { return segments_.next_offset(); }
  [[nodiscard]] Offset durable_offset() const override { return sync_.durable_offset(); }
  [[nodiscard]] std::uint64_t stored_bytes() const override { return segments_.stored_bytes(); }
  [[nodiscard]] std::uint64_t held_bytes() const override {
    return segments_.file_bytes() + next_.prepared_bytes();
  }
  void trim(Offset /*before*/) override {}
  [[nodiscard]] Offset last_part_begin() const override { return segments_.last_begin(); }
  Result<void> end_segment() override { return retention_.end_segment(); }
  /// Drops the oldest segment as long as the one after it begins at `before` or earlier. So a dropped segment
  /// contains nothing at or past `before`, and the last segment stays.
  void drop_before(Offset before) override { retention_.drop_before(before); }
  bool make_room(std::size_t bytes, Offset limit) override { return retention_.make_room(bytes, 1, limit); }
  bool drop_first(Offset limit, std::size_t bytes) override { return retention_.drop_first(limit, bytes); }
  void maintain(Timestamp now) override;
  std::unique_ptr<DiskJob> take_disk_job(Timestamp now) override { return jobs_.take(now); }
  [[nodiscard]] bool job_is_out() const override { return jobs_.is_out(); }
  void request_flush() override { sync_.request_flush(); }
  [[nodiscard]] bool wants_disk_work() const override { return jobs_.is_wanted(); }
  Result<void> flush() override { return sync_.flush(); }
  Result<void> close() override;
  [[nodiscard]] const Error& last_error() const override { return last_error_; }
  [[nodiscard]] bool may_flush_again() const override { return !sync_.poisoned(); }

  /// Returns space for a batch of at least `at_least` and at most `wanted` bytes; begins a new segment if
  /// necessary. Requires: `mapped_writes`. Until the next non-const call, nothing else may be written into
  /// that space.
  RoomResult room_in_place(std::size_t at_least, std::size_t wanted);
  /// Appends the batch that was written into that space. Requires: its base offset and time are stamped.
  void append_in_place(std::span<std::byte> batch) { appender_.append_in_place(batch); }
  /// Begins the first segment if there is none, and makes it durable: from then on the log has an identity.
  Result<void> settle();
  /// Removes all files and the directory, for a topic that is deleted. Gives no file to the pool. Waits for a
  /// running job. Requires: only destruction follows.
  Result<void> destroy();

  /// Returns the findings of opening the log.
  [[nodiscard]] const RecoveryReport& recovery() const { return recovery_; }
  /// Returns the log's identity. It stays the same as long as the log's files exist, and differs after they
  /// were lost.
  [[nodiscard]] std::uint64_t incarnation() const { return identity_.incarnation; }
  /// See LogDirectory::rolls.
  [[nodiscard]] std::uint64_t rolls() const { return directory_.rolls(); }

  // The parts of the log, for owners that need more than a log offers.
  [[nodiscard]] const SegmentList& segments() const { return segments_; }
  [[nodiscard]] const SegmentAppender& appender() const { return appender_; }
  [[nodiscard]] const SegmentSync& sync() const { return sync_; }
  [[nodiscard]] SegmentRetention& retention() { return retention_; }
  [[nodiscard]] DroppedSegments& dropped() { return dropped_; }
  [[nodiscard]] SegmentJobs& jobs() { return jobs_; }

 private:
  SegmentLog(SegmentLogOptions options, Storage& storage, SegmentPool& pool, RecoveredSegments recovered);

  SegmentLogOptions options_;  // SegmentRetention changes limits
  Storage& storage_;
  SegmentPool& pool_;
  const SegmentPool::Member member_{pool_};
  const LogIdentity identity_;
  const std::unique_ptr<EncryptedBatches> encrypted_;  // null: the log is not encrypted
  const RecoveryReport recovery_;
  Error last_error_;
  SegmentList segments_;
  LogDirectory directory_;
  ReadViews views_;
  WriterMappings mappings_;
  CloseMark close_mark_;
  DroppedSegments dropped_;
  SegmentDescriptors descriptors_;
  SegmentSync sync_;
  NextSegment next_;
  SegmentRoller roller_;
  SegmentAppender appender_;
  SegmentReader reader_;
  SegmentRetention retention_;
  SegmentJobs jobs_;
  IdleFiles idle_;
};

}  // namespace lightq::log
