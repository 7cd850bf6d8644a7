/// A durable log: searching by time. Layer: log.
#include "log/segment_log.hpp"

namespace lightq::log {

FoundByTime SegmentLog::first_since(Timestamp time) {
  FoundByTime found{next_};
  for (const auto& segment : segments_) {
    ++found.segments_passed;
    if (segment->empty() || segment->newest() < time) continue;
    if (const auto opened = open_view(*segment); !opened) {
      last_error_ = opened.error();
      found.offset = segment->first_offset();
      found.unavailable = may_come_back(opened.error());
      break;
    }
    if (const auto offset = segment->first_since(time, found.batches_passed, found.unavailable)) {
      if (found.unavailable) last_error_ = segment->read_error();
      found.offset = *offset;
      break;
    }
  }
  return found;
}

}  // namespace lightq::log
