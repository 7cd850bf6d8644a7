/// Knows how much of a log is on disk, and composes the work that makes the rest durable. Layer: log.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "log/segment/segment_pool.hpp"
#include "log/segment_log/dropped_segments.hpp"
#include "log/segment_log/log_directory.hpp"
#include "log/segment_log/segment_job.hpp"
#include "log/segment_log/segment_list.hpp"
#include "log/segment_log/segment_log_options.hpp"
#include "log/storage/storage.hpp"

namespace lightq::log {

/// Knows which messages an fdatasync has covered, composes the work to sync the others, and takes over its
/// results. Also syncs immediately, for callers that wait.
///
/// Owns durable_offset, the requests for a flush, the error of a failed sync, and the lock that keeps two
/// threads from syncing the same files. Called by SegmentJobs, by SegmentLog, and by NextSegment, which
/// retires files when the disk is full. Thread: the log's, except for the work itself.
///
/// Invariants: everything before durable_offset is on disk, together with the names and headers of its
/// segments. If a sync fails, the log is poisoned: durable_offset stays where it is until the log is opened
/// again, because the system may treat the unwritten pages as clean. Example: 0 to 99 are synced, and 100 to
/// 149 are appended. A job is taken, and 150 to 169 are appended while it runs. After the job durable_offset
/// is 150; if it fails, durable_offset is 100 for good.
class SegmentSync {
 public:
  /// `durable`: everything before it was found on disk. Lifetime: all must outlive this object.
  SegmentSync(const SegmentLogOptions& options, Storage& storage, SegmentPool& pool,
              const SegmentList& segments, LogDirectory& directory, DroppedSegments& dropped,
              Error& last_error, Offset durable)
      : options_(options),
        storage_(storage),
        pool_(pool),
        segments_(segments),
        directory_(directory),
        dropped_(dropped),
        last_error_(last_error),
        durable_(durable) {}

  [[nodiscard]] Offset durable_offset() const { return durable_; }
  /// Returns the number of appended bytes that no sync has covered.
  [[nodiscard]] std::uint64_t unsynced_bytes() const;
  /// Returns true if a sync has failed: durable_offset does not advance until the log is opened again.
  [[nodiscard]] bool poisoned() const { return poisoned_; }
  /// Returns the error of that sync; BatchLog::last_error may be that of a later append.
  [[nodiscard]] const Error& sync_error() const { return sync_error_; }
  /// Returns durable_offset if the log is poisoned; else nothing.
  [[nodiscard]] std::optional<Offset> stuck_at() const {
    return poisoned_ ? std::optional(durable_) : std::nullopt;
  }
  /// Returns whether the last finished disk job could rename the active segment (PendingName) and open the
  /// directories to be synced. If not, it has synced and retired nothing, and a later job tries again.
  [[nodiscard]] const Result<void>& begun() const { return begun_; }
  /// Returns false for a while after a job failed to begin: no other job to sync may be taken yet.
  [[nodiscard]] bool may_begin(Timestamp now) const;
  /// Returns true if the active segment should be renamed by a job.
  [[nodiscard]] bool name_is_due(Timestamp now) const;
  /// Returns true if a sync is due by time, by size, or because of a request.
  [[nodiscard]] bool is_due(Timestamp now) const;
  /// Returns true if a sync is or will be due without further appends.
  [[nodiscard]] bool is_wanted() const;

  /// See Log::request_flush.
  void request_flush() { flush_requested_ = segments_.next_offset(); }
  /// Lets the interval of syncs begin at `now`.
  void note_opened(Timestamp now) { last_sync_ = now; }
  /// The active segment was begun without a name, which a job should give it now.
  void note_unnamed() { last_begun_ = {}; }
  /// A job was taken, which gives the pending name.
  void note_taken(Timestamp now) { last_begun_ = now; }

  /// Returns work that makes everything appended so far durable. The interval begins again at `now`.
  SegmentWork begin(Timestamp now);
  /// Returns the least work after which `retire` may be removed: nothing, or work that records the next
  /// offset. Otherwise a power cut could turn the log back, and its offsets would be assigned twice. `work`:
  /// the work so far.
  SegmentWork before_retiring(const std::vector<RetiredSegment>& retire, SegmentWork work, Timestamp now);
  /// Takes over the results of work that `begin`, `before_retiring` or LogDirectory::new_work has begun.
  void finish(const SegmentWork& work, const SegmentWorkDone& done);

  /// Makes everything appended durable before it returns.
  Result<void> flush();
  /// Makes the name and the header of the active segment durable before it returns. Requires: its file is
  /// open.
  Result<void> remember();
  /// Syncs, and retires all dropped segments that may be retired, because the disk is full. Requires: some
  /// were dropped, and no job is out, as it would use the same files.
  Result<void> retire_now();
  /// Writes all data again that an earlier process could not sync, and left in the system's memory.
  void settle_doubts();

  /// Shared with the log's job. Lock it to use the files of the log as a job does.
  [[nodiscard]] const std::shared_ptr<SegmentJobState>& job_state() const { return jobs_; }

 private:
  [[nodiscard]] bool anything_unsynced() const;
  [[nodiscard]] bool has_flush_bytes() const;
  [[nodiscard]] std::vector<SyncTarget> unsynced_files();
  [[nodiscard]] SegmentWork work_to_sync();
  [[nodiscard]] SegmentWork work_to_remember() const;
  [[nodiscard]] bool is_remembered(const std::vector<RetiredSegment>& retire) const;
  void note_synced(const SegmentWork& work, const SegmentWorkDone& done);
  static void note_synced(SegmentFile& segment, const SyncTarget& target);
  void poison(const Error& error);

  const SegmentLogOptions& options_;
  Storage& storage_;
  SegmentPool& pool_;
  const SegmentList& segments_;
  LogDirectory& directory_;
  DroppedSegments& dropped_;
  Error& last_error_;
  Offset durable_;
  Offset flush_requested_;            // everything before it should become durable immediately
  std::optional<Offset> remembered_;  // the segment that begins here has its name and header on disk
  bool poisoned_ = false;
  Error sync_error_;
  Result<void> begun_;
  Timestamp last_sync_;
  Timestamp last_begun_;
  const std::shared_ptr<SegmentJobState> jobs_ = std::make_shared<SegmentJobState>();
};

}  // namespace lightq::log
