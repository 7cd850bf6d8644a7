/// Decides which files of dropped segments may be retired, and when. Layer: log.
#include "log/segment_log/dropped_segments.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include <lightq/base/limits.hpp>

#include "log/elapsed.hpp"

namespace lightq::log {

namespace {

constexpr std::int64_t retire_again_us = 1'000'000;  // wait after a failed attempt to retire
// Limit for one job, because the writer may be waiting for the next one.
constexpr std::size_t retired_at_once_max = 64;
constexpr std::size_t retired_gathered_max = 16;  // this many dropped segments wait for no more
constexpr std::size_t still_read_max = 2;  // dropped segments that may wait for their readers to finish

}  // namespace

void DroppedSegments::add(RetiredSegment segment) {
  bytes_ += segment.bytes;
  files_.push_back(std::move(segment));
}

std::uint64_t DroppedSegments::bytes_max() const {
  return std::max<std::uint64_t>(128 * limits::MiB, 2 * options_.segment_bytes);
}

bool DroppedSegments::may_retire(Timestamp now) const {
  return !files_.empty() && (!failed_ || has_passed(last_try_, retire_again_us, now));
}

// Each job has a fixed cost, even if it does little: threads wake each other, and a directory is synced. So
// segments are gathered, but no more than the pool has space for.
bool DroppedSegments::are_due(Timestamp now) const {
  const std::size_t room = pool_.files_max();
  const std::size_t many = room == 0 ? retired_gathered_max : std::min(room, retired_gathered_max);
  return may_retire(now) && (files_.size() >= many || has_passed(last_try_, options_.retire_gather_us, now));
}

// Returns the dropped file that alone identifies the log, because all later ones have lost their headers;
// else null. It stays until another segment has begun.
const RetiredSegment* DroppedSegments::last_with_identity() const {
  const bool known =
      std::ranges::any_of(segments_.all(), [](const auto& segment) { return segment->header().epoch != 0; });
  if (known || segments_.empty()) return nullptr;
  const auto last = std::find_if(files_.rbegin(), files_.rend(),
                                 [](const RetiredSegment& segment) { return segment.has_header; });
  return last != files_.rend() ? &*last : nullptr;
}

// Returns true if a reader on another thread reads the segment, or can still reach it from the segment
// before. `after_another`: the same job retires the segment before, and its reference does not count. All
// other readers ask the log for the segment, on its thread.
bool DroppedSegments::is_read(const RetiredSegment& segment, bool after_another) const {
  if (segment.node == nullptr) return false;
  options_.views->forget(*segment.node);
  const bool read = segment.node.use_count() > (after_another ? 2 : 1);
  std::atomic_thread_fence(std::memory_order_acquire);
  return read;
}

// A few segments that still have readers wait, so that they can be recycled.
std::vector<RetiredSegment> DroppedSegments::ready(std::optional<Offset> stuck_at, Reason reason) const {
  const bool all = reason == Reason::disk_is_full;
  std::vector<RetiredSegment> found;
  const RetiredSegment* const identity = last_with_identity();
  bool read = false;
  std::uint64_t left_bytes = bytes_;
  for (const RetiredSegment& segment : files_) {
    if (keep_all_from_ < segment.end_offset) break;
    if (!all && keep_from_ < segment.end_offset && left_bytes <= bytes_max()) break;
    left_bytes -= segment.bytes;
    if (&segment == identity || (!all && found.size() == retired_at_once_max)) break;
    if (stuck_at && *stuck_at <= segment.end_offset) break;
    read = read || is_read(segment, !found.empty());
    if (read && !all && files_.size() - found.size() <= still_read_max) break;
    found.push_back(segment);
    found.back().node = nullptr;
    found.back().is_read = read;
  }
  return found;
}

void DroppedSegments::note_retired(const SegmentWork& work, std::size_t retired) {
  for (std::size_t i = 0; i < retired; ++i) bytes_ -= files_[i].bytes;
  files_.erase(files_.begin(), files_.begin() + static_cast<std::ptrdiff_t>(retired));
  if (!work.retire.empty()) failed_ = retired < work.retire.size();
}

}  // namespace lightq::log
