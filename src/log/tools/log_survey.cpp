/// Surveys the segment files in a log's directory. Layer: tools.
#include "log/tools/log_survey.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <lightq/base/bytes.hpp>
#include <lightq/base/crc32c.hpp>

#include "log/format/segment_listing.hpp"
#include "log/format/unnamed_segment.hpp"

namespace lightq::log {

namespace {

constexpr int listings_max = 16;  // a listing fails if the log meanwhile dropped all its files

// Positions of fields; see docs/log_format.md, "Segment file".
constexpr std::size_t at_header_crc = 60;
constexpr std::size_t seal_at_epoch = segment_seal_position + 4;
constexpr std::size_t seal_at_incarnation = segment_seal_position + 32;

bool is_zero(ByteView bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

/// Returns epoch and incarnation from the seal, for a page with a lost header; nothing if the seal is not
/// sound.
std::optional<SegmentHeader> header_by_seal(const SegmentPage& page) {
  SegmentHeader header;
  header.epoch = load_little_endian<std::uint32_t>(page.data() + seal_at_epoch);
  header.incarnation = load_little_endian<std::uint64_t>(page.data() + seal_at_incarnation);
  if (header.epoch == 0 || !decode_any_seal(page, header)) return std::nullopt;
  return header;
}

PageState state_of(HeaderFault fault, const SegmentPage& page, std::uint64_t size_bytes) {
  if (fault == HeaderFault::blank) return PageState::blank;
  // The page of another format version has a valid checksum; a magic number with a flipped bit has not.
  const std::uint32_t stored = load_little_endian<std::uint32_t>(page.data() + at_header_crc);
  const bool checked = stored == crc32c({page.data(), at_header_crc});
  const bool foreign = fault == HeaderFault::foreign && checked && segment_seal_position <= size_bytes;
  return foreign ? PageState::foreign : PageState::damaged;
}

void judge_page(SurveyedSegment& segment, const SegmentPage& page, BootId boot) {
  const DecodedHeader decoded = decode_segment_header(page);
  segment.state = decoded.header ? PageState::sound : state_of(decoded.fault, page, segment.size_bytes);
  if (segment.state == PageState::foreign) segment.unknown = foreign_segment(segment.path, page).message;
  if (segment.size_bytes < segment_seal_position && segment.state == PageState::sound)
    segment.state = PageState::damaged;
  if (segment.state == PageState::sound) {
    segment.header = decoded.header;
    if (segment.header->first_offset == offset_not_yet_known)
      segment.header->first_offset = segment.name_offset;
    if (segment.header->first_offset != segment.name_offset) segment.state = PageState::misnamed;
  }
  const auto known = segment.header ? segment.header : header_by_seal(page);
  if (!known) return;
  segment.epoch = known->epoch;
  segment.incarnation = known->incarnation;
  if (segment.header) segment.batch_mask = known->batch_mask;
  segment.seal = decode_segment_seal(page, *known, boot);
  segment.seal_damaged =
      !decode_any_seal(page, *known) && !is_zero({page.data() + segment_seal_position, segment_seal_bytes});
  if (segment.seal && segment.seal->end_offset < segment.first_offset()) segment.seal.reset();
}

Result<SurveyedSegment> survey_segment(const std::string& path, Offset name_offset, Storage& storage) {
  SurveyedSegment segment;
  segment.path = path;
  segment.name_offset = name_offset;
  const auto file = storage.open(path, OpenMode::read_only);
  if (!file) return file.error();
  const auto size = (*file)->size_bytes();
  if (!size) return size.error();
  segment.size_bytes = *size;
  for (int look = 0; look < 2; ++look) {  // a second time because a seal may be half written
    SegmentPage page{};
    if (!read_all(**file, page, 0)) {
      segment.state = PageState::unreadable;
      return segment;
    }
    judge_page(segment, page, {storage.boot_id()});
    if (segment.state == PageState::sound && !segment.seal_damaged) break;
  }
  return segment;
}

/// Returns the incarnation of most pages; among equals that of the first page.
std::uint64_t incarnation_of(const std::vector<SurveyedSegment>& segments) {
  std::map<std::uint64_t, std::size_t> votes;
  std::uint64_t best = 0;
  for (const SurveyedSegment& segment : segments) {
    if (segment.incarnation != 0) votes[segment.incarnation] += segment.header ? 2 : 1;
  }
  for (const SurveyedSegment& segment : segments) {
    if (segment.incarnation != 0 && (best == 0 || votes[best] < votes[segment.incarnation]))
      best = segment.incarnation;
  }
  return best;
}

// Same rule as in recovery: after a power cut, the last files may have lost the headers of their new use and
// show those of the earlier one. Requires: the segments are sorted by name.
void forget_earlier_lives(LogSurvey& survey) {
  for (auto last = survey.segments.rbegin(); last != survey.segments.rend(); ++last) {
    const bool is_old = last->state == PageState::misnamed && last->incarnation == survey.incarnation &&
                        last->header->first_offset < survey.segments.front().name_offset;
    if (!is_old && last->state != PageState::blank) return;
    last->state = PageState::blank;
    last->header.reset();
    last->seal.reset();
    last->seal_damaged = false;
    last->earlier_epoch = std::exchange(last->epoch, 0);
  }
}

void put_in_order(LogSurvey& survey) {
  survey.incarnation = incarnation_of(survey.segments);
  forget_earlier_lives(survey);
  for (SurveyedSegment& segment : survey.segments) {
    if (segment.incarnation == survey.incarnation) continue;
    segment.seal.reset();
    segment.epoch = 0;
    segment.batch_mask.reset();
    if (!segment.header) continue;
    segment.state = PageState::stranger;
    segment.header->first_offset = segment.name_offset;  // from its name; its header is another log's
  }
  std::sort(survey.segments.begin(), survey.segments.end(),
            [](const SurveyedSegment& a, const SurveyedSegment& b) {
              return std::pair(a.first_offset(), a.name_offset) < std::pair(b.first_offset(), b.name_offset);
            });
}

// Surveys the newest segment, which has no name yet: a process ended before it named the file, or has not
// done so yet. Until it has a name, the file is `next.prepared`.
Result<SurveyedSegment> survey_newest(const std::string& directory, Offset offset, Storage& storage) {
  const std::string named = directory + "/" + segment_name(offset);
  auto segment = survey_segment(directory + "/" + next_prepared_name, offset, storage);
  if (!may_exist(named, storage)) return segment;
  return survey_segment(named, offset, storage);
}

}  // namespace

std::uint64_t SurveyedSegment::limit() const {
  std::uint64_t limit = size_bytes;
  if (header) limit = std::min(limit, header->file_bytes);
  if (seal) limit = std::min(limit, seal->end_position);
  return std::max<std::uint64_t>(limit, segment_header_bytes);
}

// The log drops its oldest segments first: if the last one still exists, only segments at the front are
// missing.
Result<LogSurvey> survey_log(const std::string& directory, Storage& storage) {
  for (int listing = 0; listing < listings_max; ++listing) {
    const auto listed = list_segments(directory, storage);
    if (!listed) return listed.error();
    LogSurvey survey;
    bool has_last = true;
    for (const Offset offset : listed->offsets) {
      auto segment = offset == listed->unnamed
                         ? survey_newest(directory, offset, storage)
                         : survey_segment(directory + "/" + segment_name(offset), offset, storage);
      has_last = segment.ok();
      if (segment)
        survey.segments.push_back(std::move(*segment));
      else if (!is_missing(segment.error()))
        return segment.error();
    }
    if (!has_last) continue;
    put_in_order(survey);
    return survey;
  }
  return Error{ErrorCode::busy, directory + " drops its segments faster than they can be examined", 0};
}

Result<std::unique_ptr<File>> open_surveyed(const SurveyedSegment& segment, Storage& storage) {
  auto file = storage.open(segment.path, OpenMode::read_only);
  const bool unnamed = segment.path != segment.named_path();
  if (!unnamed || (!file && !is_missing(file.error()))) return file;
  SegmentPage page{};
  if (file && read_all(**file, page, 0)) {
    const auto header = decode_segment_header(page).header;
    if (header && header->epoch == segment.epoch) return file;
  }
  return storage.open(segment.named_path(), OpenMode::read_only);
}

bool is_dropped(const SurveyedSegment& segment, Storage& storage) {
  const auto now = survey_segment(segment.path, segment.name_offset, storage);
  const bool unnamed = segment.path != segment.named_path();
  const bool is_it = now && now->header && now->epoch == segment.epoch;
  if (unnamed && !is_it) {
    SurveyedSegment named = segment;
    named.path = segment.named_path();
    return is_dropped(named, storage);
  }
  if (!now) return is_missing(now.error());
  return segment.header && now->header && now->header->epoch != segment.header->epoch;
}

}  // namespace lightq::log
