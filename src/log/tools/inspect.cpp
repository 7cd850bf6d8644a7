/// Reads a log from end to end without changing it. Layer: tools.
#include "log/tools/inspect.hpp"

#include <algorithm>
#include <memory>
#include <optional>

#include "log/format/segment_key.hpp"
#include "log/tools/cursor_survey.hpp"
#include "log/tools/index_survey.hpp"
#include "log/tools/producer_survey.hpp"
#include "log/tools/segment_walk.hpp"

namespace lightq::log {

namespace {

constexpr int looks_max = 16;  // a look is repeated if the log has dropped all surveyed segments meanwhile

class Inspection {
 public:
  Inspection(const std::string& directory, Storage& storage, const InspectOptions& options,
             LogVisitor& visitor)
      : directory_(directory), storage_(storage), options_(options), visitor_(visitor) {}
  Result<InspectTotals> run();

 private:
  Result<bool> look();
  void begin_again();
  void leave_out_what_went();
  void note_kinds(const std::vector<SurveyedSegment>& segments);
  void check_kind(SegmentSummary& summary);
  void load_cursors();
  void check_cursors(std::uint64_t incarnation);
  Result<void> check_producers();
  void check_index_of(const SegmentSummary& summary);
  Result<void> read(const SurveyedSegment& segment, bool last, Offset next_first);
  Result<void> read_sound(const SurveyedSegment& segment);
  void walk(SegmentWalk& walk, SegmentSummary& summary);
  Result<void> take_key_of(const SurveyedSegment& segment, File& file);
  std::optional<BatchView> clear(const BatchView& batch, const SurveyedSegment& segment);
  void take(const ScannedBatch& batch, const BatchView& stored, SegmentSummary& summary);
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
  bool has_begun_ = false;          // totals_.first_offset is known
  bool dropped_ = false;            // the segment read last was dropped by its log meanwhile
  std::optional<Offset> expected_;  // end of the last segment
  std::string before_;              // path of the last segment
  bool wanted_ = true;              // the visitor wants more
  bool has_clear_ = false;          // there are unencrypted segment files
  bool has_encrypted_ = false;      // there are encrypted segment files
  bool odd_are_clear_ = false;      // if the log has both kinds: the unencrypted ones are the fault
  std::vector<CursorSurvey> found_cursors_;
  std::unique_ptr<BatchCipher> cipher_;  // for cipher_incarnation_; null until a segment needs it
  std::uint64_t cipher_incarnation_ = 0;
  std::vector<std::byte> plain_;
};

Result<InspectTotals> Inspection::run() {
  for (int looks = 1; looks <= looks_max; ++looks) {
    const auto is_whole = look();
    if (!is_whole) return is_whole.error();
    if (*is_whole || !wanted_) return totals_;
    begin_again();
  }
  return Error{ErrorCode::busy, directory_ + " drops its segments faster than they can be read", 0};
}

// Returns false if the last segment was dropped before its end was read. All others are gone too then, and
// the end of the log is unknown.
Result<bool> Inspection::look() {
  if (options_.with_cursors) load_cursors();  // before the segments, so that no cursor is newer than them
  for (const CursorSurvey& cursors : found_cursors_) {
    if (cursors.unavailable) return *cursors.unavailable;
  }
  const auto survey = survey_log(directory_, storage_);
  if (!survey) return survey.error();
  const auto& segments = survey->segments;
  note_kinds(segments);
  for (std::size_t i = 0; i < segments.size() && wanted_; ++i) {
    const bool last = i + 1 == segments.size();
    const Offset next_first = segments[last ? i : i + 1].first_offset();
    if (options_.to <= segments[i].first_offset()) break;
    if (!last && next_first <= options_.from) {
      expected_.reset();  // skipped
      continue;
    }
    if (const auto done = read(segments[i], last, next_first); !done) return done.error();
    if (last && dropped_) return false;
  }
  if (expected_) totals_.next_offset = *expected_;
  if (options_.with_indexes && wanted_) {
    for (const Finding& stray : stray_indexes(directory_, *survey, storage_)) report(stray);
  }
  if (options_.with_cursors && wanted_) check_cursors(survey->incarnation);
  if (auto checked = check_producers(); !checked) return checked.error();
  return true;
}

void Inspection::begin_again() {
  totals_ = {};
  has_begun_ = dropped_ = false;
  expected_.reset();
  before_.clear();
  found_cursors_.clear();
  wanted_ = visitor_.on_restart();
}

// A log drops its oldest segments first, so all earlier ones are gone too. Their findings stay in the totals.
void Inspection::leave_out_what_went() {
  totals_.segments = 0;
  totals_.encrypted_batches = totals_.decrypted_batches = 0;
  totals_.bytes = totals_.batches = totals_.messages = totals_.gap_messages = 0;
  has_begun_ = false;
  expected_.reset();
}

// A caller with keys expects an encrypted log, so its unencrypted files are the fault. Without keys the kind
// with fewer files is.
void Inspection::note_kinds(const std::vector<SurveyedSegment>& segments) {
  std::size_t clear = 0;
  std::size_t encrypted = 0;
  for (const SurveyedSegment& segment : segments) {
    const bool usable = segment.state == PageState::sound || segment.state == PageState::misnamed;
    if (usable) ++(segment.header->key_id == 0 ? clear : encrypted);
  }
  has_clear_ = clear > 0;
  has_encrypted_ = encrypted > 0;
  odd_are_clear_ = options_.ciphers != nullptr || clear <= encrypted;
}

// Agrees with check_segment_encrypted and check_segment_key, which keep a broker from opening such a log: an
// unencrypted file without batches is no fault.
void Inspection::check_kind(SegmentSummary& summary) {
  const bool is_clear = summary.segment.header->key_id == 0;
  const bool is_odd = has_clear_ && has_encrypted_ && is_clear == odd_are_clear_;
  if (!is_odd || summary.dropped || (is_clear && summary.batches == 0)) return;
  ++summary.damages;
  report(
      {Finding::Kind::mixed,
       summary.segment.path,
       0,
       summary.segment.size_bytes,
       {},
       {},
       is_clear ? "is not encrypted, but other segments are" : "is encrypted, but other segments are not"});
}

void Inspection::load_cursors() {
  found_cursors_.push_back(survey_cursor_files(directory_, storage_));
  found_cursors_.push_back(survey_cursor_table(directory_, storage_, 0));
}

void Inspection::check_cursors(std::uint64_t incarnation) {
  if (incarnation != 0 && found_cursors_.back().incarnation != incarnation) {
    found_cursors_.back() = survey_cursor_table(directory_, storage_, incarnation);
  }
  for (const CursorSurvey& survey : found_cursors_) {
    totals_.cursors += survey.cursors.size();
    for (const Finding& finding : survey.findings) report(finding);
    for (const SurveyedCursor& cursor : survey.cursors) {
      const Offset end = std::max(cursor.committed, cursor.unfinished.next);
      if (!expected_ || end <= *expected_) continue;
      report({Finding::Kind::ahead, cursor.file, 0, 0, *expected_, end, cursor.name});
    }
  }
}

Result<void> Inspection::check_producers() {
  if (!options_.with_producers || !wanted_) return {};
  const ProducerSurvey survey = survey_producers(directory_, storage_);
  if (survey.unavailable) return *survey.unavailable;
  totals_.producers = survey.producers;
  for (const Finding& finding : survey.findings) report(finding);
  return {};
}

void Inspection::check_index_of(const SegmentSummary& summary) {
  const bool is_whole = options_.from.value == 0 && options_.to.value == ~std::uint64_t{0};
  if (!options_.with_indexes || !is_whole || summary.dropped || !wanted_) return;
  const SurveyedSegment& segment = summary.segment;
  const auto wrong = check_index(segment, segment.seal ? segment.seal->end_offset : summary.end_offset,
                                 segment.seal ? segment.seal->end_position : summary.end_position, storage_);
  if (wrong && !is_dropped(segment, storage_)) report(*wrong);
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
  const auto file = open_surveyed(segment, storage_);
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
  if (auto keyed = take_key_of(segment, **file); !keyed) return keyed;
  walk(steps, summary);
  check_kind(summary);
  check_index_of(summary);
  summarize(summary);
  return {};
}

Result<void> Inspection::take_key_of(const SurveyedSegment& segment, File& file) {
  if (options_.ciphers == nullptr || segment.header->key_id == 0) return {};
  if (cipher_ == nullptr || cipher_incarnation_ != segment.header->incarnation) {
    cipher_incarnation_ = segment.header->incarnation;
    cipher_ = options_.ciphers->of(cipher_incarnation_);
  }
  return check_segment_key({segment.path, file, *segment.header, segment.limit()}, cipher_.get());
}

// Returns the decrypted batch, or the stored one if there is no key. Returns nothing if the batch was not
// encrypted for this place.
std::optional<BatchView> Inspection::clear(const BatchView& batch, const SurveyedSegment& segment) {
  const std::uint64_t key_id = segment.header->key_id;
  if (batch.is_encrypted() != (key_id != 0)) return std::nullopt;
  if (key_id == 0 || options_.ciphers == nullptr) return batch;
  plain_.resize(batch.total_bytes() - encrypted_layout::more_bytes);
  if (!cipher_->decrypt(batch, key_id, plain_) || BatchView::check(plain_)) return std::nullopt;
  return BatchView::trusted(plain_.data());
}

void Inspection::take(const ScannedBatch& batch, const BatchView& stored, SegmentSummary& summary) {
  const auto view = clear(stored, summary.segment);
  if (!view) {
    ++summary.damages;
    return report({Finding::Kind::forged, summary.segment.path, batch.position, batch.end_position(),
                   batch.base, batch.end, ""});
  }
  ++summary.batches;
  summary.messages += distance(batch.base, batch.end);
  totals_.encrypted_batches += stored.is_encrypted() ? 1 : 0;
  totals_.decrypted_batches += stored.is_encrypted() && !view->is_encrypted() ? 1 : 0;
  wanted_ = visitor_.on_batch(batch, *view);
}

void Inspection::walk(SegmentWalk& walk, SegmentSummary& summary) {
  while (wanted_) {
    const auto step = walk.next();
    if (step == SegmentWalk::Step::end) break;
    if (step == SegmentWalk::Step::batch) {
      const ScannedBatch& batch = walk.batch();
      if (options_.to <= batch.base) break;
      if (expected_ && batch.base < *expected_) continue;  // overlap, already reported
      take(batch, walk.view(), summary);
      continue;
    }
    // The log may have dropped the file and recycled it meanwhile: then none of this is damage.
    summary.dropped = is_dropped(summary.segment, storage_);
    if (summary.dropped) return;
    ++summary.damages;
    const SegmentDamage& damage = walk.damage();
    if (const auto newer = walk.newer_in_damage()) {
      report({Finding::Kind::foreign, summary.segment.path, damage.begin, damage.end, damage.first,
              damage.next, newer->error(summary.segment.path).message});
      continue;
    }
    const auto unreadable = walk.unreadable();
    report({unreadable ? Finding::Kind::unreadable : Finding::Kind::damaged, summary.segment.path,
            unreadable.value_or(damage.begin), damage.end, damage.first, damage.next, ""});
  }
  summary.end_offset = walk.end_offset();
  summary.end_position = walk.end_position();
  // Without a seal, the walk may have read batches that the log wrote after it had recycled the file.
  summary.dropped = !summary.segment.seal && is_dropped(summary.segment, storage_);
  summary.torn_bytes = summary.dropped ? 0 : walk.torn_bytes();
  if (summary.torn_bytes == 0) return;
  report({Finding::Kind::torn, summary.segment.path, summary.end_position,
          summary.end_position + summary.torn_bytes, summary.end_offset, summary.end_offset, ""});
}

// In such a file nothing distinguishes this log's bytes from earlier ones. A repair may find out more.
void Inspection::read_lost(const SurveyedSegment& segment, bool last, Offset next_first) {
  SegmentSummary summary{.segment = segment, .end_offset = next_first};
  summary.dropped = is_dropped(segment, storage_);
  if (summary.dropped) return summarize(summary);
  if (is_unfinished(segment, last)) {
    summary.torn_bytes = segment.size_bytes;
    report({Finding::Kind::torn, segment.path, 0, segment.size_bytes, segment.name_offset,
            segment.name_offset, "no batch was ever written to it"});
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
          unreadable ? "the disk cannot read it" : segment.unknown});
  summarize(summary);
}

bool Inspection::is_unfinished(const SurveyedSegment& segment, bool last) {
  if (!last || segment.state != PageState::blank) return false;
  const auto file = storage_.open(segment.path, OpenMode::read_only);
  if (!file) return false;
  SegmentScanner scanner(**file, segment.marks(), segment.size_bytes);
  const auto first = scanner.batch_at(segment_header_bytes);  // perhaps of the file's earlier use
  if (first && segment.name_offset <= first->base) return false;
  return !scanner.resume_after(segment_header_bytes, segment.name_offset);
}

// Same rule as in recovery: a segment begins where the previous one ended, or behind the gap that its header
// states.
void Inspection::check_continuity(const SurveyedSegment& segment) {
  const Offset first = segment.first_offset();
  if (!expected_) {
    if (!has_begun_) totals_.first_offset = first;
    has_begun_ = true;
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
  dropped_ = summary.dropped;
  if (summary.dropped) {
    leave_out_what_went();
  } else {
    expected_ = std::max(expected_.value_or(Offset{}), summary.end_offset);
    before_ = summary.segment.path;
  }
  if (wanted_) wanted_ = visitor_.on_summary(summary);
}

}  // namespace

Result<InspectTotals> inspect_log(const std::string& directory, Storage& storage,
                                  const InspectOptions& options, LogVisitor& visitor) {
  return Inspection(directory, storage, options, visitor).run();
}

}  // namespace lightq::log
