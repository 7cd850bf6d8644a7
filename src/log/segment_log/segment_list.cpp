/// Finds segments in a log's list of them. Layer: log.
#include "log/segment_log/segment_list.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace lightq::log {

SegmentList::SegmentList(Segments segments) : segments_(std::move(segments)) {
  for (const auto& segment : segments_) stored_bytes_ += segment->stored_bytes();
  if (!segments_.empty()) next_ = segments_.back()->end_offset();
}

std::uint64_t SegmentList::file_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& segment : segments_) bytes += segment->header().file_bytes;
  return bytes;
}

std::size_t SegmentList::segment_of(Offset offset) const {
  const auto after = std::upper_bound(segments_.begin(), segments_.end(), offset,
                                      [](Offset wanted, const std::unique_ptr<SegmentFile>& segment) {
                                        return wanted < segment->first_offset();
                                      });
  return static_cast<std::size_t>(after - segments_.begin()) - 1;
}

std::shared_ptr<SegmentNode> SegmentList::node_of(Offset offset) const {
  if (segments_.empty()) return nullptr;
  return segments_[offset < first_offset() ? 0 : segment_of(offset)]->node();
}

void SegmentList::remove_replaced() {
  assert(!segments_.empty() && segments_.back()->empty());
  segments_.pop_back();
}

std::unique_ptr<SegmentFile> SegmentList::take_oldest() {
  assert(!segments_.empty());
  std::unique_ptr<SegmentFile> taken = std::move(segments_.front());
  segments_.pop_front();
  ++first_number_;
  stored_bytes_ -= taken->stored_bytes();
  return taken;
}

}  // namespace lightq::log
