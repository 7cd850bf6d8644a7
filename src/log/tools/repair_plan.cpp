/// Finds the sound messages of a damaged log and plans its repair. Layer: tools.
#include "log/tools/repair_plan.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

namespace lightq::log {

namespace {

/// The offsets that the files read so far have supplied.
class Covered {
 public:
  [[nodiscard]] bool touches(Offset first, Offset next) const {
    const auto after = ranges_.lower_bound(next);
    return after != ranges_.begin() && first < std::prev(after)->second;
  }
  void add(Offset first, Offset next) { ranges_[first] = next; }

 private:
  std::map<Offset, Offset> ranges_;  // of pieces, which never overlap
};

/// Returns the order in which files are read. If two files have the same messages, the better file is read
/// first.
int rank(PageState state) {
  return state == PageState::sound ? 0 : state == PageState::misnamed ? 1 : 2;
}

class Planner {
 public:
  Planner(const std::string& directory, Storage& storage, bool trust_batches)
      : directory_(directory), storage_(storage), trust_batches_(trust_batches) {}
  Result<RepairPlan> run();

 private:
  Result<void> read(PlannedSegment& planned, const SurveyedSegment* after);
  void walk(File& file, const WalkRange& range, PlannedSegment& planned);
  static std::uint32_t first_mask(File& file, const WalkRange& range);
  void walk_headless(File& file, const SurveyedSegment* after, PlannedSegment& planned);
  Offset reserved_end(File& file, const SurveyedSegment& source);
  void state_gaps();
  void state_gap(PlannedSegment& planned, SoundPiece& piece);
  void judge_empty(PlannedSegment& planned);
  void lose(Offset first, Offset next, Offset stated_from);

  const std::string& directory_;
  Storage& storage_;
  const bool trust_batches_;
  RepairPlan plan_;
  Covered covered_;
  bool sound_ = true;  // whether the last walk found no damage
  Offset walk_end_;
  std::optional<Error> newer_;  // for the first batch that a newer version wrote
};

Result<RepairPlan> Planner::run() {
  const auto survey = survey_log(directory_, storage_);
  if (!survey) return survey.error();
  const auto& sources = survey->segments;
  plan_.incarnation = survey->incarnation;
  plan_.segments.resize(sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].state == PageState::foreign)
      return Error{ErrorCode::foreign_format, sources[i].unknown, 0};
    plan_.segments[i].source = sources[i];
  }
  for (int turn = 0; turn <= rank(PageState::damaged); ++turn) {
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (rank(sources[i].state) != turn) continue;
      const auto* after = i + 1 == sources.size() ? nullptr : &sources[i + 1];
      if (const auto done = read(plan_.segments[i], after); !done) return done.error();
    }
  }
  if (newer_) return *newer_;
  state_gaps();
  return std::move(plan_);
}

Result<void> Planner::read(PlannedSegment& planned, const SurveyedSegment* after) {
  const SurveyedSegment& source = planned.source;
  planned.epoch = source.epoch;
  planned.batch_mask = source.batch_mask.value_or(0);
  const auto file = open_surveyed(source, storage_);
  if (!file) return file.error();
  const bool has_header = source.state == PageState::sound || source.state == PageState::misnamed;
  Offset end = source.name_offset;
  if (source.state == PageState::stranger) {
    sound_ = false;
  } else if (has_header || source.seal) {
    WalkRange range = whole_segment(source);
    if (!range.marks.mask) range.marks.mask = planned.batch_mask = first_mask(**file, range);
    walk(**file, range, planned);
    const bool cut_short = has_header && !source.seal && source.size_bytes < source.header->file_bytes;
    sound_ = sound_ && source.state == PageState::sound && !source.seal_damaged && !cut_short;
    end = walk_end_;
  } else {
    walk_headless(**file, after, planned);
    end = after != nullptr ? after->first_offset() : reserved_end(**file, source);
    const bool never_begun =
        after == nullptr && source.state == PageState::blank && end == source.name_offset;
    sound_ = never_begun;  // the next open removes the file
  }
  plan_.next = std::max(plan_.next, end);
  planned.keep = sound_;
  for (const SoundPiece& piece : planned.pieces) covered_.add(piece.first, piece.next);
  return {};
}

void Planner::walk(File& file, const WalkRange& range, PlannedSegment& planned) {
  SegmentWalk walk(file, range);
  planned.encrypted = planned.source.header && planned.source.header->key_id != 0;
  sound_ = true;
  for (auto step = walk.next(); step != SegmentWalk::Step::end; step = walk.next()) {
    const ScannedBatch& batch = walk.batch();
    if (const auto newer = walk.newer_in_damage(); newer && !newer_)
      newer_ = newer->error(planned.source.path);
    // Messages that another file has already supplied are skipped.
    if (step == SegmentWalk::Step::damage || covered_.touches(batch.base, batch.end)) {
      sound_ = false;
      continue;
    }
    auto& pieces = planned.pieces;
    if (pieces.empty() && !planned.source.header) planned.encrypted = walk.view().is_encrypted();
    if (walk.view().is_encrypted() != planned.encrypted) {  // something else put it there
      sound_ = false;
      continue;
    }
    const bool follows =
        !pieces.empty() && pieces.back().end == batch.position && pieces.back().next == batch.base;
    if (!follows) pieces.push_back({batch.base, batch.base, batch.position, batch.position, {}, {}});
    pieces.back().next = batch.end;
    pieces.back().end = batch.end_position();
    pieces.back().newest = std::max(pieces.back().newest, batch.time);
  }
  walk_end_ = walk.end_offset();
}

// If the mask is lost with the header, the first batch supplies it. Batches with another mask are not sound.
std::uint32_t Planner::first_mask(File& file, const WalkRange& range) {
  SegmentScanner scanner(file, range.marks, range.end);
  auto first = scanner.batch_at(segment_header_bytes);
  if (!first) first = scanner.resume_after(segment_header_bytes, range.first);
  return first ? first->mask : 0;
}

// The epoch is lost with the header; the first batch supplies one. It certainly belongs to this use of the
// file if the batches continue up to the beginning of the next file.
void Planner::walk_headless(File& file, const SurveyedSegment* after, PlannedSegment& planned) {
  const SurveyedSegment& source = planned.source;
  SegmentScanner scanner(file, source.marks(), source.size_bytes);
  auto first = scanner.batch_at(segment_header_bytes);
  if (!first && trust_batches_) first = scanner.resume_after(segment_header_bytes, source.name_offset);
  if (!first || first->base < source.name_offset) return;
  if (first->base != source.name_offset && !trust_batches_) return;
  planned.epoch = first->epoch;
  planned.batch_mask = first->mask;
  const BatchMarks marks{{first->epoch, first->epoch}, first->mask};
  walk(file, {marks, first->position, source.size_bytes, first->base, {}}, planned);
  const bool shown = after != nullptr && walk_end_ == after->first_offset();
  const bool beyond = after != nullptr && after->first_offset() < walk_end_;
  if (beyond || (!shown && !trust_batches_)) planned.pieces.clear();
}

// Returns the end of the offsets that a last file without a header reserves, by the same rule as recovery.
Offset Planner::reserved_end(File& file, const SurveyedSegment& source) {
  SegmentScanner scanner(file, source.marks(), source.size_bytes);
  auto batch = scanner.batch_at(segment_header_bytes);
  if (!batch || batch->base < source.name_offset)
    batch = scanner.resume_after(segment_header_bytes, source.name_offset);
  if (!batch && source.state == PageState::blank) return source.name_offset;  // never begun
  Offset end = end_of_reserved(source.name_offset);
  for (; batch; batch = scanner.resume_after(batch->position, batch->end)) end = std::max(end, batch->end);
  return end;
}

void Planner::state_gaps() {
  std::vector<std::pair<PlannedSegment*, SoundPiece*>> all;
  for (PlannedSegment& planned : plan_.segments) {
    for (SoundPiece& piece : planned.pieces) all.emplace_back(&planned, &piece);
  }
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.second->first < b.second->first; });
  for (const auto& [planned, piece] : all) state_gap(*planned, *piece);
  plan_.next = std::max(plan_.next, plan_.end);
  for (PlannedSegment& planned : plan_.segments) {
    if (planned.pieces.empty()) judge_empty(planned);
  }
  if (plan_.has_pieces && plan_.end < plan_.next)
    lose(plan_.end, plan_.next, plan_.end_is_kept ? plan_.end : Offset{});
}

void Planner::state_gap(PlannedSegment& planned, SoundPiece& piece) {
  const bool is_first = &piece == planned.pieces.data();
  const Offset stated = planned.source.header && is_first ? planned.source.header->gap_begin : Offset{};
  if (plan_.has_pieces && plan_.end < piece.first) {
    piece.gap_begin = plan_.end;
    lose(plan_.end, piece.first, stated);
  }
  const bool gap_agrees = piece.gap_begin == stated || piece.gap_begin.value == 0;
  if (!gap_agrees || (is_first && piece.first != planned.source.first_offset())) planned.keep = false;
  plan_.has_pieces = true;
  plan_.end = piece.next;
  plan_.messages += distance(piece.first, piece.next);
}

// A file without messages is useful only at the end, where it records the next offset.
void Planner::judge_empty(PlannedSegment& planned) {
  const Offset first = planned.source.first_offset();
  const bool is_end = first == plan_.next && &planned == &plan_.segments.back();
  const bool gap_agrees = !plan_.has_pieces || plan_.end == first ||
                          (planned.source.header && planned.source.header->gap_begin == plan_.end);
  planned.keep = planned.keep && is_end && gap_agrees;
  plan_.end_is_kept = planned.keep && planned.source.header;
}

void Planner::lose(Offset first, Offset next, Offset stated_from) {
  if (stated_from.value != 0 && first <= stated_from && stated_from < next) next = stated_from;
  if (first < next) plan_.lost.push_back({first, next});
}

}  // namespace

bool RepairPlan::all_kept() const {
  return (end_is_kept || !needs_end_segment()) &&
         std::all_of(segments.begin(), segments.end(),
                     [](const PlannedSegment& segment) { return segment.keep; });
}

Result<RepairPlan> plan_repair(const std::string& directory, Storage& storage, bool trust_batches) {
  return Planner(directory, storage, trust_batches).run();
}

}  // namespace lightq::log
