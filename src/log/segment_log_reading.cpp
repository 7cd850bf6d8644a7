/// A durable log: reading. Layer: log.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string>

#include "log/segment_log.hpp"

namespace lightq::log {

namespace {

constexpr std::size_t views_max = 16;  // maximum number of segments mapped at the same time

}  // namespace

ReadResult SegmentLog::read(ReadPosition& place) {
  used_ = true;
  return find(place, false);
}

ReadResult SegmentLog::read_header(ReadPosition& place) {
  return find(place, true);
}

ReadResult SegmentLog::find(ReadPosition& place, bool header_alone) {
  if (place.offset < first_offset()) return {ReadOutcome::trimmed, {}, first_offset()};
  if (next_ <= place.offset) return {ReadOutcome::end, {}, {}};
  const Start start = start_from_hint(place).value_or(Start{segment_of(place.offset), 0});
  SegmentFile& segment = *segments_[start.segment];
  if (segment.end_offset() <= place.offset) {
    const SegmentHeader& after = segments_[start.segment + 1]->header();
    if (after.gap_begin.value != 0 && after.gap_begin <= place.offset)
      return {ReadOutcome::trimmed, {}, after.first_offset};
    const Offset next = segment.end_offset() < after.gap_begin ? after.gap_begin : after.first_offset;
    return damaged(segment, {segment.end_position(), segment.end_position(), segment.end_offset(), next});
  }
  if (const auto opened = open_view(segment); !opened) {
    if (may_come_back(opened.error())) return unavailable(place, opened.error());
    last_error_ = opened.error();
    return {ReadOutcome::damaged, {}, segment.end_offset()};
  }
  const Located located = segment.locate(place.offset, start.position);
  if (located.unavailable) return unavailable(place, segment.read_error());
  if (!located.found) return damaged(segment, located.damage);
  place.hint = hint_for(start.segment, located.position);
  const BatchView batch = segment.batch_at(located.position);
  const bool encrypted = encrypted_ != nullptr || batch.is_encrypted();
  if (encrypted && !header_alone) return read_encrypted(segment, located.position);
  return {ReadOutcome::batch, batch, {}};
}

// Fails for a batch in clear in an encrypted log, and for an encrypted batch in another log: this log did not
// write it.
ReadResult SegmentLog::read_encrypted(const SegmentFile& segment, std::uint64_t position) {
  const BatchView batch = segment.batch_at(position);
  const auto plain =
      encrypted_ == nullptr ? std::nullopt : encrypted_->decrypt(batch, segment.header().key_id);
  if (plain) return {ReadOutcome::batch, *plain, {}};
  last_error_ = {ErrorCode::corrupt,
                 segment.path() + ": the batch at position " + std::to_string(position) +
                     " was not encrypted there with the key of the log: offsets " +
                     std::to_string(batch.base_offset().value) + " up to " +
                     std::to_string(batch.end_offset().value) + " cannot be read",
                 0};
  return {ReadOutcome::damaged, {}, batch.end_offset()};
}

// Returns a hint: the segment's number in the upper half, the last batch's position in the lower.
std::uint64_t SegmentLog::hint_for(std::size_t segment, std::uint64_t position) const {
  return ((front_number_ + segment) << 32) | position;
}

std::optional<SegmentLog::Start> SegmentLog::start_from_hint(const ReadPosition& place) const {
  const std::uint64_t number = place.hint >> 32;
  const std::uint64_t position = place.hint & 0xFFFFFFFF;
  if (number < front_number_ || number - front_number_ >= segments_.size()) return std::nullopt;
  const std::size_t index = number - front_number_;
  const SegmentFile& segment = *segments_[index];
  if (place.offset < segment.first_offset()) return std::nullopt;
  if (segment.end_offset() <= place.offset) {
    const bool next = index + 1 < segments_.size() && segments_[index + 1]->first_offset() <= place.offset &&
                      place.offset < segments_[index + 1]->end_offset();
    return next ? std::optional(Start{index + 1, 0}) : std::nullopt;
  }
  const bool inside = segment.is_mapped() && segment_header_bytes <= position &&
                      position + batch_layout::header_bytes <= segment.end_position();
  if (!inside || segment.batch_at(position).segment_epoch() != segment.header().epoch) return std::nullopt;
  const BatchView batch = segment.batch_at(position);
  // For offsets that are further away the index is faster than walking from the hint.
  if (place.offset < batch.base_offset() || batch.end_offset() < place.offset) return std::nullopt;
  return Start{index, position};
}

// Returns the index of the last segment that begins at or before `offset`. Requires: `offset` is in
// [first_offset, next_offset).
std::size_t SegmentLog::segment_of(Offset offset) const {
  const auto after = std::upper_bound(segments_.begin(), segments_.end(), offset,
                                      [](Offset wanted, const std::unique_ptr<SegmentFile>& segment) {
                                        return wanted < segment->first_offset();
                                      });
  return static_cast<std::size_t>(after - segments_.begin()) - 1;
}

Result<void> SegmentLog::open_view(SegmentFile& segment) {
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
    release_views();
    opened = segment.open_for_reading(storage_);
  }
  if (opened) views_.push_back(&segment);
  return opened;
}

// Returns true if the error may be temporary. A missing file is damage, unless all of the log's files are
// missing. Then its directory is not there (renamed, or on a disk that is not mounted), and the files may be
// sound.
bool SegmentLog::may_come_back(const Error& error) const {
  if (is_unavailable(error)) return true;
  if (!is_missing(error) && error.system_error != ENOTDIR) return false;
  const auto names = storage_.list(options_.directory);
  return !names || std::none_of(names->begin(), names->end(), [this](const std::string& name) {
    const auto offset = segment_name_offset(name);
    return offset && std::any_of(segments_.begin(), segments_.end(), [&offset](const auto& segment) {
             return segment->first_offset() == *offset;
           });
  });
}

void SegmentLog::release_views() {
  for (SegmentFile* view : views_) view->release();
  views_.clear();
}

ReadResult SegmentLog::unavailable(const ReadPosition& place, const Error& error) {
  last_error_ = error;
  return {ReadOutcome::unavailable, {}, place.offset};
}

std::shared_ptr<SegmentNode> SegmentLog::node_of(Offset offset) const {
  if (segments_.empty()) return nullptr;
  return segments_[offset < first_offset() ? 0 : segment_of(offset)]->node();
}

void SegmentLog::forget_view(const SegmentFile& segment) {
  std::erase(views_, &segment);
}

ReadResult SegmentLog::damaged(const SegmentFile& segment, const SegmentDamage& damage) {
  const bool missing = damage.begin == damage.end && damage.begin == segment.end_position();
  last_error_ = {ErrorCode::corrupt,
                 (missing ? "a file is missing after " + segment.path()
                          : segment.path() + " is damaged from position " + std::to_string(damage.begin) +
                                " to " + std::to_string(damage.end)) +
                     ": offsets " + std::to_string(damage.first.value) + " up to " +
                     std::to_string(damage.next.value) + " cannot be read",
                 0};
  return {ReadOutcome::damaged, {}, damage.next};
}

}  // namespace lightq::log
