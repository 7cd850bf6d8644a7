/// A durable log: finding a time. Layer: log.
#include "log/segment_log.hpp"

namespace lightq::log {

FoundByTime SegmentLog::first_since(Timestamp time) {
  FoundByTime found{next_};
  for (const auto& segment : segments_) {
    if (segment->empty() || segment->newest() < time) continue;
    if (const auto opened = open_view(*segment); !opened) {
      last_error_ = opened.error();
      found.offset = segment->first_offset();
      break;
    }
    if (const auto offset = segment->first_since(time, found.batches_passed)) {
      found.offset = *offset;
      break;
    }
  }
  return found;
}

}  // namespace lightq::log
