/// Walks through one segment file, batch by batch. Layer: tools.
#include "log/tools/segment_walk.hpp"

#include <algorithm>

namespace lightq::log {

WalkRange whole_segment(const SurveyedSegment& segment) {
  WalkRange range;
  range.marks = segment.marks();
  range.end = segment.limit();
  range.first = segment.first_offset();
  if (segment.seal) range.end_offset = segment.seal->end_offset;
  return range;
}

SegmentWalk::SegmentWalk(File& file, const WalkRange& range)
    : range_(range), scanner_(file, range.marks, range.end), position_(range.begin), expected_(range.first) {}

SegmentWalk::Step SegmentWalk::next() {
  if (at_end_) return Step::end;
  if (range_.end_offset && range_.end <= position_) return finish();
  return read_batch() ? Step::batch : pass_damage();
}

void SegmentWalk::skip_to(Offset offset) {
  while (!at_end_) {
    const auto batch = scanner_.header_at(position_);
    if (!batch || !fits(*batch) || batch->base != expected_ || offset < batch->end) return;
    position_ = batch->end_position();
    expected_ = batch->end;
  }
}

BatchView SegmentWalk::view() {
  return BatchView::trusted(scanner_.bytes_at(batch_.position, batch_.total_bytes, limits::MiB).data());
}

std::optional<std::uint64_t> SegmentWalk::unreadable() const {
  return scanner_.unreadable(damage_.begin, std::max(damage_.end, damage_.begin + 1));
}

std::optional<NewerBatch> SegmentWalk::newer_in_damage() const {
  const auto& newer = scanner_.newer();
  const bool inside =
      newer && damage_.begin <= newer->position && newer->position < std::max(damage_.end, damage_.begin + 1);
  return inside ? newer : std::nullopt;
}

bool SegmentWalk::fits(const ScannedBatch& batch) const {
  return !range_.end_offset || batch.end <= *range_.end_offset;
}

bool SegmentWalk::read_batch() {
  for (int look = 0; look < 2; ++look) {
    const auto batch = scanner_.batch_at(position_);
    if (batch && batch->base == expected_ && fits(*batch)) {
      batch_ = *batch;
      position_ = batch->end_position();
      expected_ = batch->end;
      return true;
    }
    scanner_.forget();
  }
  return false;
}

SegmentWalk::Step SegmentWalk::pass_damage() {
  auto next = scanner_.batch_at(position_);
  const bool is_later = next && expected_ < next->base;  // sound, but messages are missing before it
  if (!is_later) next = scanner_.resume_after(position_, expected_);
  const bool goes_on = next && fits(*next);
  // Reads again: a writer appends in order, so once the next batch exists, the one missing before is
  // complete, too.
  scanner_.forget();
  if (goes_on && read_batch()) return Step::batch;
  if (goes_on) return damaged(next->position, next->base);
  return finish();
}

SegmentWalk::Step SegmentWalk::damaged(std::uint64_t end, Offset next) {
  damage_ = {position_, end, expected_, next};
  position_ = end;
  expected_ = next;
  return Step::damage;
}

// Ends the walk, because no sound batch follows. Bytes before a known end are damage, others are the tail.
SegmentWalk::Step SegmentWalk::finish() {
  at_end_ = true;
  if (range_.end_offset) {
    const bool whole = range_.end <= position_ && expected_ == *range_.end_offset;
    return whole ? Step::end : damaged(std::max(range_.end, position_), *range_.end_offset);
  }
  const std::uint64_t tail = std::min(position_ + batch_layout::header_bytes, range_.end);
  const bool newer = scanner_.newer() && position_ <= scanner_.newer()->position;
  if (newer || scanner_.unreadable(position_, std::max(tail, scanner_.claimed_end()))) {
    damage_ = {position_, range_.end, expected_, expected_};
    return Step::damage;
  }
  torn_bytes_ = measure_tail();
  return Step::end;
}

// Returns the length of the torn tail, as recovery would cut it. It has an append's header, complete or
// partial, and the bytes that should follow according to it.
std::uint64_t SegmentWalk::measure_tail() {
  const std::uint64_t claimed = std::min(scanner_.claimed_end(), range_.end);
  if (position_ < claimed) return claimed - position_;
  const ByteView header =
      scanner_.bytes_at(position_, batch_layout::header_bytes, batch_layout::header_bytes);
  if (header.size() < sizeof(std::uint32_t) ||
      load_little_endian<std::uint32_t>(header.data()) != batch_layout::magic_value) {
    return 0;
  }
  // A sound header of another epoch is a leftover from before the file was recycled.
  const auto fault =
      BatchView::check_stored_header({header.data(), range_.end - position_}, range_.marks.mask.value_or(0));
  return fault ? std::min<std::uint64_t>(batch_layout::header_bytes, range_.end - position_) : 0;
}

}  // namespace lightq::log
