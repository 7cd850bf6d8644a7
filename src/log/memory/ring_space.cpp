/// Allocates the memory of a ring. Layer: log.
#include "log/memory/ring_space.hpp"

#include <algorithm>
#include <cassert>

namespace lightq::log {

std::uint64_t RingSpace::take(std::uint64_t bytes) {
  const auto place = place_for(bytes);
  assert(place.has_value());
  if (extents_.empty() || physical_end(extents_.size() - 1) != *place) extents_.push_back({end_, *place});
  const std::uint64_t position = end_;
  end_ += bytes;
  return position;
}

void RingSpace::free_before(std::uint64_t position) {
  assert(begin_ <= position && position <= end_);
  begin_ = position;
  if (begin_ == end_) return extents_.clear();
  const auto next = std::find_if(extents_.begin() + 1, extents_.end(),
                                 [&](const Extent& extent) { return extent.position > begin_; });
  extents_.erase(extents_.begin(), next - 1);
  Extent& oldest = extents_.front();
  oldest.physical += begin_ - oldest.position;
  oldest.position = begin_;
}

std::uint64_t RingSpace::physical(std::uint64_t position) const {
  assert(begin_ <= position && position < end_);
  std::size_t extent = extents_.size() - 1;
  while (extents_[extent].position > position) --extent;
  return extents_[extent].physical + (position - extents_[extent].position);
}

std::uint64_t RingSpace::physical_end(std::size_t extent) const {
  const std::uint64_t end = extent + 1 < extents_.size() ? extents_[extent + 1].position : end_;
  return extents_[extent].physical + (end - extents_[extent].position);
}

std::optional<std::uint64_t> RingSpace::place_for(std::uint64_t bytes) const {
  if (extents_.empty()) return bytes <= capacity_ ? std::optional<std::uint64_t>(0) : std::nullopt;
  const std::uint64_t front =
      std::min_element(extents_.begin(), extents_.end(), [](const Extent& one, const Extent& other) {
        return one.physical < other.physical;
      })->physical;
  if (front >= reuse_from_ && front >= bytes + 2 * (end_ - begin_)) return 0;
  const std::uint64_t here = physical_end(extents_.size() - 1);
  if (fits_at(here, bytes)) return here;
  return extents_.size() < extents_max ? first_fit(bytes) : std::nullopt;
}

std::optional<std::uint64_t> RingSpace::first_fit(std::uint64_t bytes) const {
  std::optional<std::uint64_t> lowest;
  if (fits_at(0, bytes)) return 0;
  for (std::size_t extent = 0; extent < extents_.size(); ++extent) {
    const std::uint64_t behind = physical_end(extent);
    if ((!lowest || behind < *lowest) && fits_at(behind, bytes)) lowest = behind;
  }
  return lowest;
}

bool RingSpace::fits_at(std::uint64_t physical, std::uint64_t bytes) const {
  if (bytes > capacity_ - physical) return false;
  for (std::size_t extent = 0; extent < extents_.size(); ++extent) {
    if (extents_[extent].physical < physical + bytes && physical < physical_end(extent)) return false;
  }
  return true;
}

}  // namespace lightq::log
