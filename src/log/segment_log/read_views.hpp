/// The segments of a log that are mapped for reading on its own thread. Layer: log.
#pragma once

#include <vector>

#include "log/segment/segment_file.hpp"
#include "log/storage/storage.hpp"

namespace lightq::log {

/// Maps segments for reading, at most 16 at a time, and unmaps the one that was read longest ago.
///
/// Owns the order of use; the mappings belong to the segments. Called by the reader; the roller and retention
/// let it forget segments that leave the log. Thread: the log's.
///
/// Invariant: it knows exactly the segments that are mapped for reading.
class ReadViews {
 public:
  /// Lifetime: `storage` must outlive this object.
  explicit ReadViews(Storage& storage) : storage_(storage) {}

  /// Maps the segment unless it is mapped. If descriptors or memory run out, unmaps all others and tries
  /// again. Errors: io_error.
  Result<void> open(SegmentFile& segment);
  /// Forgets a segment that is about to be destroyed.
  void forget(const SegmentFile& segment) { std::erase(views_, &segment); }
  /// Unmaps all segments.
  void release();
  /// Forgets all segments, which are about to be destroyed.
  void forget_all() { views_.clear(); }

 private:
  Storage& storage_;
  std::vector<SegmentFile*> views_;  // mapped segments, least recently used first
};

}  // namespace lightq::log
