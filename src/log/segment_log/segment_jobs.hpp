/// Composes the disk jobs of a segment log. Layer: log.
#pragma once

#include <memory>

#include "log/log.hpp"
#include "log/segment_log/dropped_segments.hpp"
#include "log/segment_log/log_directory.hpp"
#include "log/segment_log/next_segment.hpp"
#include "log/segment_log/segment_descriptors.hpp"
#include "log/segment_log/segment_job.hpp"
#include "log/segment_log/segment_sync.hpp"
#include "log/segment_log/writer_mappings.hpp"

namespace lightq::log {

/// The parts of a log that have work for a disk thread. Lifetime: all must outlive the object that gets them.
struct PartsWithWork {
  const LogDirectory& directory;
  DroppedSegments& dropped;
  SegmentSync& sync;
  NextSegment& next;
  SegmentDescriptors& descriptors;
  WriterMappings& mappings;
};

/// Collects the work that is due into one job for a disk thread, and distributes the job's results: syncs to
/// SegmentSync, retired files to DroppedSegments, the prepared file to NextSegment, closed descriptors to
/// SegmentDescriptors.
///
/// Owns nothing: the lock and the mark of an unfinished job belong to SegmentSync. Called by SegmentLog for
/// the owner of the log, and by a SegmentJob that is finished. Thread: the log's.
///
/// Invariant: at most one job is out.
class SegmentJobs {
 public:
  SegmentJobs(const PartsWithWork& parts, Storage& storage, SegmentPool& pool)
      : parts_(parts), storage_(storage), pool_(pool) {}

  /// Returns true if a job was taken, and is neither finished nor destroyed yet.
  [[nodiscard]] bool is_out() const { return parts_.sync.job_state()->is_out; }
  /// Returns true if `take` should be called, because it would probably return a job.
  [[nodiscard]] bool is_due(Timestamp now) const;
  /// Returns true if `take` may return a job now or later without further appends.
  [[nodiscard]] bool is_wanted() const;
  /// Returns true if dropped segments wait only for others to be retired with them: they are due after
  /// retire_gather_us.
  [[nodiscard]] bool gathers_retired() const { return parts_.dropped.gathers(parts_.sync.stuck_at()); }
  /// Returns a job with all work that is due; null if there is none, or while another is out.
  std::unique_ptr<DiskJob> take(Timestamp now);
  /// Returns a job that makes everything appended so far durable, even if no sync is due; null while another
  /// is out.
  std::unique_ptr<DiskJob> take_flush(Timestamp now);

 private:
  friend class SegmentJob;
  /// Takes over the results of a job.
  void finish(const SegmentWork& work, SegmentWorkDone done);
  [[nodiscard]] bool has_other_work(Timestamp now) const;

  const PartsWithWork parts_;
  Storage& storage_;
  SegmentPool& pool_;
};

}  // namespace lightq::log
