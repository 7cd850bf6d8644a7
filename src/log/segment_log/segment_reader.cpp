/// Reads a segment log by offset and by time. Layer: log.
#include "log/segment_log/segment_reader.hpp"

#include <algorithm>
#include <cerrno>
#include <string>

namespace lightq::log {

ReadResult SegmentReader::find(ReadPosition& place, bool header_alone) {
  if (place.offset < segments_.first_offset()) return {ReadOutcome::trimmed, {}, segments_.first_offset()};
  if (segments_.next_offset() <= place.offset) return {ReadOutcome::end, {}, {}};
  const Start start = start_from_hint(place).value_or(Start{segments_.segment_of(place.offset), 0});
  SegmentFile& segment = segments_.at(start.segment);
  if (segment.end_offset() <= place.offset)
    return read_behind_end(segment, segments_.at(start.segment + 1), place.offset);
  if (const auto opened = views_.open(segment); !opened) {
    if (may_come_back(opened.error())) return unavailable(place, opened.error());
    last_error_ = opened.error();
    return {ReadOutcome::damaged, {}, segment.end_offset()};
  }
  const Located located = segment.finder().locate(place.offset, start.position);
  if (located.unavailable) return unavailable(place, segment.finder().read_error());
  if (!located.found) return damaged(segment, located.damage);
  place.hint = ((segments_.first_number() + start.segment) << 32) | located.position;
  const BatchView batch = segment.batch_at(located.position);
  const bool encrypted = encrypted_ != nullptr || batch.is_encrypted();
  if (encrypted && !header_alone) return read_encrypted(segment, located.position);
  return {ReadOutcome::batch, batch, {}};
}

// Answers for an offset between the end of a segment and the beginning of the next one: the messages there
// were lost, or a repair has left a gap.
ReadResult SegmentReader::read_behind_end(const SegmentFile& segment, const SegmentFile& next,
                                          Offset offset) {
  const SegmentHeader& after = next.header();
  if (after.gap_begin.value != 0 && after.gap_begin <= offset)
    return {ReadOutcome::trimmed, {}, after.first_offset};
  const Offset readable = segment.end_offset() < after.gap_begin ? after.gap_begin : after.first_offset;
  return damaged(segment, {segment.end_position(), segment.end_position(), segment.end_offset(), readable});
}

// Fails for a batch in clear in an encrypted log, and for an encrypted batch in another log: this log did not
// write it.
ReadResult SegmentReader::read_encrypted(const SegmentFile& segment, std::uint64_t position) {
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

std::optional<SegmentReader::Start> SegmentReader::start_from_hint(const ReadPosition& place) const {
  const std::uint64_t position = place.hint & 0xFFFFFFFF;
  const auto index = segments_.index_of(place.hint >> 32);
  if (!index) return std::nullopt;
  const SegmentFile& segment = segments_.at(*index);
  if (place.offset < segment.first_offset()) return std::nullopt;
  if (segment.end_offset() <= place.offset) {
    const std::size_t after = *index + 1;
    const bool next = after < segments_.size() && segments_.at(after).first_offset() <= place.offset &&
                      place.offset < segments_.at(after).end_offset();
    return next ? std::optional(Start{after, 0}) : std::nullopt;
  }
  const bool inside = segment.is_mapped() && segment_header_bytes <= position &&
                      position + batch_layout::header_bytes <= segment.end_position();
  if (!inside || segment.batch_at(position).segment_epoch() != segment.header().epoch) return std::nullopt;
  const BatchView batch = segment.batch_at(position);
  // For offsets that are further away the index is faster than walking from the hint.
  if (place.offset < batch.base_offset() || batch.end_offset() < place.offset) return std::nullopt;
  return Start{*index, position};
}

FoundByTime SegmentReader::first_since(Timestamp time) {
  FoundByTime found{segments_.next_offset()};
  for (const auto& segment : segments_.all()) {
    ++found.segments_passed;
    if (segment->empty() || segment->times().newest() < time) continue;
    if (const auto opened = views_.open(*segment); !opened) {
      last_error_ = opened.error();
      found.offset = segment->first_offset();
      found.unavailable = may_come_back(opened.error());
      break;
    }
    if (const auto offset = segment->finder().first_since(time, found.batches_passed, found.unavailable)) {
      if (found.unavailable) last_error_ = segment->finder().read_error();
      found.offset = *offset;
      break;
    }
  }
  return found;
}

// Returns true if the error may be temporary. A missing file is damage, unless all of the log's files are
// missing. Then its directory is not there (renamed, or on a disk that is not mounted), and the files may be
// sound.
bool SegmentReader::may_come_back(const Error& error) const {
  if (is_unavailable(error)) return true;
  if (!is_missing(error) && error.system_error != ENOTDIR) return false;
  const auto names = storage_.list(options_.directory);
  return !names || std::none_of(names->begin(), names->end(), [this](const std::string& name) {
    const auto offset = segment_name_offset(name);
    return offset && std::ranges::any_of(segments_.all(), [&offset](const auto& segment) {
             return segment->first_offset() == *offset;
           });
  });
}

ReadResult SegmentReader::unavailable(const ReadPosition& place, const Error& error) {
  last_error_ = error;
  return {ReadOutcome::unavailable, {}, place.offset};
}

ReadResult SegmentReader::damaged(const SegmentFile& segment, const SegmentDamage& damage) {
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
