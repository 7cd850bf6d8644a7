/// Maps the segments of a log for reading. Layer: log.
#include "log/segment_log/read_views.hpp"

#include <algorithm>
#include <cstddef>

namespace lightq::log {

namespace {

constexpr std::size_t views_max = 16;  // maximum number of segments mapped at the same time

}  // namespace

Result<void> ReadViews::open(SegmentFile& segment) {
  if (segment.is_mapped()) {
    if (views_.back() == &segment) return {};
    const auto at = std::find(views_.begin(), views_.end(), &segment);
    std::rotate(at, at + 1, views_.end());
    return {};
  }
  if (views_.size() >= views_max) {
    views_.front()->release();
    views_.erase(views_.begin());
  }
  auto opened = segment.open_for_reading(storage_);
  // Perhaps this log's own views use up the descriptors or the memory.
  if (!opened && !views_.empty() && is_unavailable(opened.error())) {
    release();
    opened = segment.open_for_reading(storage_);
  }
  if (opened) views_.push_back(&segment);
  return opened;
}

void ReadViews::release() {
  for (SegmentFile* view : views_) view->release();
  views_.clear();
}

}  // namespace lightq::log
