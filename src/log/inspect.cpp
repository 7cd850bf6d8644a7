/// Reads a log from end to end without changing it. Layer: log.
#include "log/inspect.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "log/cursor_file.hpp"
#include "log/segment_walk.hpp"

namespace lightq::log {

namespace {

constexpr int cursor_looks = 3;  // somebody may be writing one of the two files

class Inspection {
 public:
  Inspection(const std::string& directory, Storage& storage, const InspectOptions& options,
             LogVisitor& visitor)
      : directory_(directory), storage_(storage), options_(options), visitor_(visitor) {}
  Result<InspectTotals> run();

 private:
  void load_cursors();
  void check_cursors();
  Result<void> read(const SurveyedSegment& segment, bool last, Offset next_first);
  Result<void> read_sound(const SurveyedSegment& segment);
  void walk(SegmentWalk& walk, SegmentSummary& summary);
  void read_lost(const SurveyedSegment& segment, bool last, Offset next_first);
  bool is_unfinished(const SurveyedSegment& segment, bool last);
  void check_continuity(const SurveyedSegment& segment);
  void report(Finding finding);
  void summarize(SegmentSummary& summary);

  const std::string& directory_;
  Storage& storage_;
  const InspectOptions& options_;
  LogVisitor& visitor_;
  InspectTotals totals_;
  std::optional<Offset> expected_;  // where the last segment ended
  std::string before_;              // its path
  bool wanted_ = true;              // by the visitor
  std::vector<NamedCursor> cursors_;
  std::vector<Finding> cursor_findings_;
};

Result<InspectTotals> Inspection::run() {
  if (options_.with_cursors) load_cursors();  // first: they must not be ahead of what is read then
  const auto survey = survey_log(directory_, storage_);
  if (!survey) return survey.error();
  const auto& segments = survey->segments;
  for (std::size_t i = 0; i < segments.size() && wanted_; ++i) {
    const bool last = i + 1 == segments.size();
    const Offset next_first = segments[last ? i : i + 1].first_offset();
    if (options_.to <= segments[i].first_offset()) break;
    if (!last && next_first <= options_.from) {
      expected_.reset();  // passed by
      continue;
    }
    if (const auto done = read(segments[i], last, next_first); !done) return done.error();
  }
  if (expected_) totals_.next_offset = *expected_;
  if (options_.with_cursors && wanted_) check_cursors();
  return totals_;
}

void Inspection::load_cursors() {
  CursorFile file(storage_, directory_);
  for (int look = 0; look < cursor_looks; ++look) {
    cursor_findings_.clear();
    auto loaded = file.load();
    if (loaded) {
      cursors_ = std::move(*loaded);
      if (!file.passed_over()) return;
      cursor_findings_.push_back(
          {Finding::Kind::torn, directory_ + "/cursors", 0, 0, {}, {}, file.passed_over()->text()});
    } else {
      cursor_findings_.push_back(
          {Finding::Kind::cursors, directory_ + "/cursors", 0, 0, {}, {}, loaded.error().text()});
    }
  }
}

void Inspection::check_cursors() {
  totals_.cursors = cursors_.size();
  for (Finding& finding : cursor_findings_) report(std::move(finding));
  for (const NamedCursor& cursor : cursors_) {
    if (!expected_ || cursor.offset <= *expected_) continue;
    report({Finding::Kind::ahead, directory_ + "/cursors", 0, 0, *expected_, cursor.offset, cursor.name});
  }
}

Result<void> Inspection::read(const SurveyedSegment& segment, bool last, Offset next_first) {
  ++totals_.segments;
  totals_.bytes += segment.size_bytes;
  wanted_ = visitor_.on_segment(segment);
  if (!wanted_) return {};
  const bool usable = segment.state == PageState::sound || segment.state == PageState::misnamed;
  if (usable) return read_sound(segment);
  read_lost(segment, last, next_first);
  return {};
}

Result<void> Inspection::read_sound(const SurveyedSegment& segment) {
  const auto file = storage_.open(segment.path, OpenMode::read_only);
  if (!file && !is_missing(file.error())) return file.error();
  SegmentSummary summary{.segment = segment, .end_offset = segment.first_offset()};
  if (!file) {
    summary.dropped = true;
    summarize(summary);
    return {};
  }
  check_continuity(segment);
  if (segment.state == PageState::misnamed) {
    ++summary.damages;
    report({Finding::Kind::misnamed, segment.path, 0, 0, {}, {}, segment_name(segment.first_offset())});
  }
  if (segment.seal_damaged) {
    ++summary.damages;
    report({Finding::Kind::seal,
            segment.path,
            segment_seal_position,
            segment_seal_position + segment_seal_bytes,
            {},
            {},
            ""});
  }
  if (!segment.seal && segment.size_bytes < segment.header->file_bytes) {
    ++summary.damages;
    report(
        {Finding::Kind::damaged, segment.path, segment.size_bytes, segment.header->file_bytes, {}, {}, ""});
  }
  SegmentWalk steps(**file, whole_segment(segment));
  if (segment.first_offset() < options_.from) steps.skip_to(options_.from);
  walk(steps, summary);
  summarize(summary);
  return {};
}

void Inspection::walk(SegmentWalk& walk, SegmentSummary& summary) {
  while (wanted_) {
    const auto step = walk.next();
    if (step == SegmentWalk::Step::end) break;
    if (step == SegmentWalk::Step::batch) {
      const ScannedBatch& batch = walk.batch();
      if (options_.to <= batch.base) break;
      if (expected_ && batch.base < *expected_) continue;  // an overlap, told already
      ++summary.batches;
      summary.messages += distance(batch.base, batch.end);
      wanted_ = visitor_.on_batch(batch, walk.view());
      continue;
    }
    // The file may have been retired and begun anew as another log's: then none of this is damage.
    summary.dropped = is_dropped(summary.segment, storage_);
    if (summary.dropped) return;
    ++summary.damages;
    const SegmentDamage& damage = walk.damage();
    const auto unreadable = walk.unreadable();
    report({unreadable ? Finding::Kind::unreadable : Finding::Kind::damaged, summary.segment.path,
            unreadable.value_or(damage.begin), damage.end, damage.first, damage.next, ""});
  }
  summary.end_offset = walk.end_offset();
  summary.end_position = walk.end_position();
  summary.torn_bytes = walk.torn_bytes();
  if (summary.torn_bytes == 0 || is_dropped(summary.segment, storage_)) return;
  report({Finding::Kind::torn, summary.segment.path, summary.end_position,
          summary.end_position + summary.torn_bytes, summary.end_offset, summary.end_offset, ""});
}

// Nothing in it can be told from what lay there before; a repair may know more.
void Inspection::read_lost(const SurveyedSegment& segment, bool last, Offset next_first) {
  SegmentSummary summary{.segment = segment, .end_offset = next_first};
  summary.dropped = is_dropped(segment, storage_);
  if (summary.dropped) return summarize(summary);
  if (is_unfinished(segment, last)) {
    summary.torn_bytes = segment.size_bytes;
    report({Finding::Kind::torn, segment.path, 0, segment.size_bytes, segment.name_offset,
            segment.name_offset, "never begun"});
    if (expected_) summary.end_offset = *expected_;
    return summarize(summary);
  }
  check_continuity(segment);
  summary.damages = 1;
  const auto kind = segment.state == PageState::foreign    ? Finding::Kind::foreign
                    : segment.state == PageState::stranger ? Finding::Kind::stranger
                                                           : Finding::Kind::header;
  const bool unreadable = segment.state == PageState::unreadable;
  report({kind, segment.path, 0, segment.size_bytes, segment.name_offset, summary.end_offset,
          unreadable ? "the disk cannot read it" : ""});
  summarize(summary);
}

bool Inspection::is_unfinished(const SurveyedSegment& segment, bool last) {
  if (!last || segment.state != PageState::blank) return false;
  const auto file = storage_.open(segment.path, OpenMode::read_only);
  if (!file) return false;
  SegmentScanner scanner(**file, 0, segment.size_bytes);
  return !scanner.batch_at(segment_header_bytes) &&
         !scanner.resume_after(segment_header_bytes, segment.name_offset);
}

// As in recovery: it begins where the one before it ended, or where its header says that a gap begins.
void Inspection::check_continuity(const SurveyedSegment& segment) {
  const Offset first = segment.first_offset();
  if (!expected_) {
    if (totals_.segments == 1) totals_.first_offset = first;
    return;
  }
  if (first < *expected_) {
    report({Finding::Kind::overlap, segment.path, 0, 0, first, *expected_, before_});
    return;
  }
  Offset missing_end = first;
  const Offset gap = segment.header ? segment.header->gap_begin : Offset{};
  if (gap.value != 0 && *expected_ <= gap && gap < first) {
    missing_end = gap;
    report({Finding::Kind::gap, segment.path, 0, 0, gap, first, ""});
  }
  if (*expected_ < missing_end) report({Finding::Kind::missing, before_, 0, 0, *expected_, missing_end, ""});
}

void Inspection::report(Finding finding) {
  const bool lost = finding.is_damage() && finding.kind != Finding::Kind::overlap;
  totals_.damages += finding.is_damage() ? 1 : 0;
  totals_.lost_messages += lost ? finding.messages() : 0;
  totals_.gap_messages += finding.kind == Finding::Kind::gap ? finding.messages() : 0;
  if (wanted_) wanted_ = visitor_.on_finding(finding);
}

void Inspection::summarize(SegmentSummary& summary) {
  totals_.batches += summary.batches;
  totals_.messages += summary.messages;
  totals_.torn_bytes += summary.torn_bytes;
  if (summary.dropped) {
    expected_.reset();
  } else {
    expected_ = std::max(expected_.value_or(Offset{}), summary.end_offset);
    before_ = summary.segment.path;
  }
  if (wanted_) wanted_ = visitor_.on_summary(summary);
}

std::string offsets_text(const Finding& finding) {
  if (finding.first == finding.next) return "";
  return "offsets " + std::to_string(finding.first.value) + " up to " + std::to_string(finding.next.value);
}

std::string positions_text(const Finding& finding) {
  return "from position " + std::to_string(finding.begin_position) + " to " +
         std::to_string(finding.end_position);
}

}  // namespace

std::string_view to_word(Finding::Kind kind) {
  constexpr std::array<std::string_view, 13> words = {
      "damaged", "unreadable", "header",  "foreign", "stranger", "misnamed", "overlap",
      "missing", "seal",       "cursors", "torn",    "ahead",    "gap"};
  return words.at(static_cast<std::size_t>(kind));
}

std::string Finding::text() const {
  const std::string offsets = offsets_text(*this);
  const std::string lost =
      (offsets.empty() ? "how many messages, nobody knows" : offsets) + " cannot be read";
  switch (kind) {
    case Kind::damaged: return file + " is damaged " + positions_text(*this) + ": " + lost;
    case Kind::unreadable: return file + " cannot be read by the disk " + positions_text(*this) + ": " + lost;
    case Kind::header:
      return file + ": the first page, positions 0 to 4096, is " +
             (detail.empty() ? "damaged" : "damaged (" + detail + ")") + ": " + lost;
    case Kind::foreign: return file + " is of another version of the format: " + lost;
    case Kind::stranger: return file + " belongs to another log: " + lost;
    case Kind::misnamed: return file + " should be called " + detail;
    case Kind::overlap: return file + " begins with " + offsets + ", which " + detail + " holds too";
    case Kind::missing: return "a file is missing after " + file + ": " + lost;
    case Kind::seal: return file + ": the seal, positions 64 to 128, is damaged; nothing is lost by it";
    case Kind::cursors: return "no cursors can be had: " + detail;
    case Kind::torn:
      if (!detail.empty()) return file + ": " + detail + "; what was written before counts";
      return file + ": an append was never completed, " + std::to_string(end_position - begin_position) +
             " bytes at position " + std::to_string(begin_position);
    case Kind::ahead:
      return "the cursor " + detail + " stands at " + std::to_string(next.value) +
             ", past the log's end at " + std::to_string(first.value) + ", and counts as that";
    case Kind::gap: return offsets + " are missing since a repair, before " + file;
  }
  return file;
}

Result<InspectTotals> inspect_log(const std::string& directory, Storage& storage,
                                  const InspectOptions& options, LogVisitor& visitor) {
  return Inspection(directory, storage, options, visitor).run();
}

}  // namespace lightq::log
