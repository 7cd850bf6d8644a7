/// The mappings through which a log writes its segments. Layer: log.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "log/segment/segment_file.hpp"
#include "log/segment/segment_pool.hpp"
#include "log/segment_log/segment_log_options.hpp"

namespace lightq::log {

/// Maps segments for writing, and keeps the mapped bytes under the cap of SegmentViews. Does nothing for a
/// log without `mapped_writes`.
///
/// Owns the mappings that wait for a disk job to unmap them, because that may take a while; the others belong
/// to the segments. The roller maps new segments and ends writing to full ones, retention ends writing to
/// dropped ones, and SegmentJobs takes the mappings for its job. Thread: the log's.
///
/// Invariant: nothing waits for a job while more is mapped than the cap permits.
class WriterMappings {
 public:
  /// Lifetime: `options` and `pool` must outlive this object.
  WriterMappings(const SegmentLogOptions& options, SegmentPool& pool) : options_(options), pool_(pool) {}

  /// Maps a prepared file that is not mapped yet. `active`: the segment that will be full, or null; it is
  /// unmapped if the cap leaves no space otherwise. Errors: io_error.
  Result<void> map(PreparedSegment& prepared, SegmentFile* active);
  /// Ends writing through the segment's mapping. A job will unmap it.
  void stop_writing(SegmentFile& segment);
  /// Returns true if a full segment of this size may stay mapped, so that its readers need no mapping.
  [[nodiscard]] bool may_keep(std::uint64_t bytes) const {
    return options_.views != nullptr && options_.views->may_keep(bytes);
  }
  [[nodiscard]] bool empty() const { return unmap_.empty(); }
  /// Returns the mappings for a job to unmap.
  std::vector<std::shared_ptr<WritableMapping>> take() { return std::exchange(unmap_, {}); }

 private:
  void make_room(std::uint64_t bytes, SegmentFile* active);

  const SegmentLogOptions& options_;
  SegmentPool& pool_;
  std::vector<std::shared_ptr<WritableMapping>> unmap_;  // for the next job to unmap
};

}  // namespace lightq::log
