/// Limits the open descriptors of a log's full segments. Layer: log.
#pragma once

#include <cstdint>

#include "log/segment_log/dropped_segments.hpp"
#include "log/segment_log/segment_job.hpp"
#include "log/segment_log/segment_list.hpp"

namespace lightq::log {

/// Closes the descriptors of full segments that wait for a sync. Without a limit, a log that nobody syncs
/// would keep one for each of its segments, and a process has few.
///
/// Owns the number of the first segment that may still have its descriptor. SegmentJobs lets a job close
/// them; the roller closes them beyond a higher limit, if no job has run for long. Thread: the log's.
///
/// Invariant: segments before that number have no descriptor. Example: after segment 40 has begun, a job
/// closes the descriptors of the segments before number 25, so that 16 stay open. If no job runs, the writer
/// closes those before number 9, so that 32 stay open.
class SegmentDescriptors {
 public:
  /// Lifetime: `segments` must outlive this object.
  explicit SegmentDescriptors(const SegmentList& segments) : segments_(segments) {}

  /// Closes descriptors on the writer's thread, beyond the hard limit only: closing one costs the writer as
  /// much as all other work for a new segment.
  void release_beyond_hard_limit();
  /// Returns true if at least `at_least` unsynced segments should give up their descriptors. `rolls`: the
  /// state of the directory, see LogDirectory::rolls.
  [[nodiscard]] bool may_release(std::uint64_t at_least, std::uint64_t rolls) const;
  /// Adds the descriptors to close to `work`.
  void add_to(SegmentWork& work);
  /// Notes the result of `work`: `released` is the first segment that still has its descriptor.
  void note_released(const SegmentWork& work, std::uint64_t released, std::uint64_t rolls);

 private:
  static constexpr std::uint64_t open_max = DroppedSegments::unsynced_open_max;
  static constexpr std::uint64_t open_hard_max = 2 * open_max;

  const SegmentList& segments_;
  std::uint64_t released_ = 0;  // segments before this number have no descriptor
  // The state of the directory when a file had to keep its descriptor.
  std::uint64_t refused_at_rolls_ = ~std::uint64_t{0};
};

}  // namespace lightq::log
