/// Closes descriptors of a log's full segments. Layer: log.
#include "log/segment_log/segment_descriptors.hpp"

#include <algorithm>
#include <cstddef>

namespace lightq::log {

namespace {

constexpr std::size_t released_at_once_max = 64;  // limit for one job

}  // namespace

void SegmentDescriptors::release_beyond_hard_limit() {
  released_ = std::max(released_, segments_.first_number());
  while (released_ + open_hard_max < segments_.end_number()) {
    if (!segments_.at(released_ - segments_.first_number()).release_descriptor())
      return;  // a job is using it: try again later
    ++released_;
  }
}

// After a file had to keep its descriptor, asks again only once another segment has begun.
bool SegmentDescriptors::may_release(std::uint64_t at_least, std::uint64_t rolls) const {
  const std::uint64_t from = std::max(released_, segments_.first_number());
  return refused_at_rolls_ != rolls && from + open_max + at_least <= segments_.end_number();
}

void SegmentDescriptors::add_to(SegmentWork& work) {
  released_ = std::max(released_, segments_.first_number());
  const std::uint64_t end = segments_.end_number() - open_max;
  for (work.released = released_; work.released < end && work.releases.size() < released_at_once_max;
       ++work.released) {
    const SegmentFile& segment = segments_.at(work.released - segments_.first_number());
    if (segment.needs_descriptor_for_sync())
      work.releases.push_back({work.released, segment.file(), segment.path()});
  }
  if (work.releases.empty()) released_ = work.released;
}

void SegmentDescriptors::note_released(const SegmentWork& work, std::uint64_t released, std::uint64_t rolls) {
  if (work.releases.empty()) return;
  if (released < work.released) refused_at_rolls_ = rolls;
  released_ = std::max(released_, released);
}

}  // namespace lightq::log
