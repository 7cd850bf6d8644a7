/// Begins the segments of a log. Layer: log.
#pragma once

#include <cstddef>
#include <string>

#include "log/segment_log/close_mark.hpp"
#include "log/segment_log/log_directory.hpp"
#include "log/segment_log/next_segment.hpp"
#include "log/segment_log/read_views.hpp"
#include "log/segment_log/segment_descriptors.hpp"
#include "log/segment_log/segment_list.hpp"
#include "log/segment_log/segment_log_options.hpp"
#include "log/segment_log/segment_sync.hpp"
#include "log/segment_log/writer_mappings.hpp"

namespace lightq::log {

/// The parts of a log that a new segment concerns. Lifetime: all must outlive the object that gets them.
struct RolledParts {
  const SegmentLogOptions& options;
  Storage& storage;
  SegmentList& segments;
  LogDirectory& directory;
  NextSegment& next;
  SegmentSync& sync;
  ReadViews& views;
  WriterMappings& mappings;
  SegmentDescriptors& descriptors;
  CloseMark& close_mark;
};

/// Begins a new active segment at the log's next offset, and ends the one before.
///
/// Owns nothing: the segments belong to the list. Called by the appender when a batch does not fit into the
/// active segment, by retention so that the last segment can be dropped, and by SegmentLog when the log needs
/// an identity. Thread: the log's.
///
/// Invariant: the list always has an active segment after a roll has succeeded, and is unchanged after one
/// has failed. Example: the active segment has the offsets 100 to 249. A roll begins a segment in the file
/// that is named after offset 250, and seals the segment of offset 100 for this boot. A second roll finds the
/// active segment empty and replaces it.
class SegmentRoller {
 public:
  explicit SegmentRoller(const RolledParts& parts) : parts_(parts) {}

  /// Begins a new segment with space for a batch of this size. Its header and name reach the disk with the
  /// next sync; until then nothing in the segment is durable either. Errors: no_space, io_error.
  Result<void> roll(std::size_t batch_bytes, NewSegment size = NewSegment::as_needed);
  /// Begins a segment so that those before it can be dropped. Without a batch to store, the dropped segments
  /// free more space than the new one takes. If a bound refuses the new segment then, tries the smallest one,
  /// which only a full disk refuses. Errors: no_space, io_error.
  Result<void> roll_to_drop(std::size_t batch_bytes);
  /// Links the segment behind its predecessor, where readers on other threads find it.
  void publish(SegmentFile& segment, SegmentNode* before);

 private:
  Result<void> put_in_place(PreparedSegment& prepared, const SegmentHeader& header, bool name_later);
  void seal_for_this_boot(SegmentFile& segment);
  [[nodiscard]] bool replaces_active() const {
    return !parts_.segments.empty() && parts_.segments.active().empty();
  }
  [[nodiscard]] std::string path_of_next() const;

  const RolledParts parts_;
};

}  // namespace lightq::log
