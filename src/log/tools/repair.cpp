/// Repairs a damaged log, in place or into a copy. Layer: tools.
#include "log/tools/repair.hpp"

#include <algorithm>
#include <utility>

#include "log/format/restored_mark.hpp"
#include "log/format/segment_index_file.hpp"
#include "log/format/segment_listing.hpp"
#include "log/format/unnamed_segment.hpp"
#include "log/saved_state/cursor_table.hpp"
#include "log/segment/recovery.hpp"
#include "log/tools/cursor_survey.hpp"
#include "log/tools/index_survey.hpp"
#include "log/tools/producer_survey.hpp"
#include "log/tools/segment_copy.hpp"

namespace lightq::log {

namespace {

/// A file that was written, and its final name.
struct NewFile {
  std::string path;
  std::string final_name;
};

class Repair {
 public:
  Repair(const std::string& directory, Storage& storage) : directory_(directory), storage_(storage) {}
  Result<RepairReport> write_to(const std::string& output, const RepairOptions& options);
  Result<RepairReport> replace(const RepairOptions& options);

 private:
  Result<void> plan(const RepairOptions& options);
  [[nodiscard]] Result<void> check_identity() const;
  Result<void> load_cursors();
  Result<void> load_table();
  Result<void> check_producers();
  void clamp_cursors();
  void judge_indexes();
  [[nodiscard]] bool needs_end() const;
  Result<void> write_pieces(const PlannedSegment& planned, const std::string& to, const std::string& suffix);
  Result<void> write_end(const std::string& to, const std::string& suffix);
  Result<void> fill(const std::string& to);
  Result<void> write_cursors(const std::string& to);
  Result<void> write_table(const std::string& path);
  Result<std::string> make_room_for_old_files();
  Result<void> give_second_names();
  Result<void> put_in_place();
  Result<void> replace_cursors();
  Result<void> replace_table();
  void drop_new_files();

  const std::string& directory_;
  Storage& storage_;
  RepairPlan plan_;
  RepairReport report_;
  std::vector<NewFile> made_;
  std::vector<NamedCursor> cursors_;
  bool cursors_need_writing_ = false;
  CursorSurvey found_table_;
  bool table_needs_writing_ = false;
  std::vector<NewCursor> table_;            // content of the new table
  std::vector<std::string> bad_indexes_;    // file names
  std::vector<std::string> bad_producers_;  // file names
};

Result<void> Repair::plan(const RepairOptions& options) {
  // Reads the cursors before the log, so that no cursor is newer than the log that is read.
  if (auto loaded = load_cursors(); !loaded) return loaded;
  found_table_ = survey_cursor_table(directory_, storage_, 0);
  if (found_table_.unavailable) return *found_table_.unavailable;
  if (auto checked = check_producers(); !checked) return checked;
  auto planned = plan_repair(directory_, storage_, options.trust_batches);
  if (!planned) return planned.error();
  plan_ = std::move(*planned);
  if (auto loaded = load_table(); !loaded) return loaded;
  if (auto possible = check_identity(); !possible) return possible;
  while (plan_.incarnation == 0) plan_.incarnation = storage_.random();
  report_.segments_read = plan_.segments.size();
  report_.messages = plan_.messages;
  report_.lost = plan_.lost;
  report_.next_offset = plan_.next;
  report_.first_offset = plan_.next;
  for (const PlannedSegment& segment : plan_.segments) {
    if (!segment.pieces.empty())
      report_.first_offset = std::min(report_.first_offset, segment.pieces.front().first);
  }
  clamp_cursors();
  return {};
}

// A log's key is derived from its identity, so encrypted batches need the original one.
Result<void> Repair::check_identity() const {
  const bool encrypted = std::any_of(plan_.segments.begin(), plan_.segments.end(),
                                     [](const PlannedSegment& segment) { return segment.encrypted; });
  if (plan_.incarnation != 0 || !encrypted) return {};
  return Error{
      ErrorCode::corrupt,
      "no file in " + directory_ +
          " contains the id of the log any more, and without it a repaired log could not be decrypted",
      0};
}

void Repair::clamp_cursors() {
  for (NamedCursor& cursor : cursors_) {
    if (!cursor.cut_at(plan_.next)) continue;
    report_.clamped_cursors.push_back(cursor.name);
    cursors_need_writing_ = true;
  }
  for (NewCursor& cursor : table_) {
    if (cursor.committed <= plan_.next) continue;
    cursor.committed = plan_.next;
    report_.clamped_cursors.push_back(cursor.name);
    table_needs_writing_ = true;
  }
}

// Gives up cursors that a broken disk cannot return, but not those that this process cannot open at the
// moment.
Result<void> Repair::load_cursors() {
  CursorFile file(storage_, directory_);
  auto loaded = file.load(UnreadableSlot::is_damaged);
  const bool refuses =
      !loaded && (is_shortage(loaded.error()) || loaded.error().code == ErrorCode::foreign_format);
  if (refuses) return loaded.error();
  cursors_need_writing_ = !loaded || file.passed_over();
  if (!loaded) {
    report_.cursors_lost = loaded.error().text();
    return {};
  }
  cursors_ = std::move(*loaded);
  report_.cursors = cursors_.size();
  return {};
}

// Loads the cursor table of an embedded queue. The incarnation binds a table to its log: if the table names
// another one, it is read again for cursors of this log.
Result<void> Repair::load_table() {
  if (!found_table_.exists) return {};
  if (found_table_.foreign) return Error{ErrorCode::foreign_format, found_table_.findings.back().detail, 0};
  if (plan_.incarnation == 0) plan_.incarnation = found_table_.incarnation;
  if (plan_.incarnation != found_table_.incarnation && plan_.incarnation != 0) {
    found_table_ = survey_cursor_table(directory_, storage_, plan_.incarnation);
    if (found_table_.unavailable) return *found_table_.unavailable;
  }
  table_needs_writing_ = !found_table_.sound();
  for (const Finding& finding : found_table_.findings) {
    if (finding.is_damage()) report_.lost_cursors.push_back(finding.text());
  }
  for (SurveyedCursor& cursor : found_table_.cursors) {
    table_.push_back({std::move(cursor.name), cursor.committed});
  }
  report_.cursors += table_.size();
  return {};
}

// A copy has no producer files. In place, sound ones stay: a start compares them with the content of the log.
Result<void> Repair::check_producers() {
  ProducerSurvey survey = survey_producers(directory_, storage_);
  if (survey.unavailable) return *survey.unavailable;
  if (survey.newer) return *survey.newer;
  if (survey.lost) report_.producers_lost = survey.lost->text();
  bad_producers_ = std::move(survey.unsound);
  return {};
}

// A cursor table is bound to the log's incarnation, which a log without any segment would not keep.
bool Repair::needs_end() const {
  return plan_.needs_end_segment() || (found_table_.exists && !plan_.has_pieces);
}

// The index files of segments that are rewritten are useless too.
void Repair::judge_indexes() {
  LogSurvey survey;
  for (const PlannedSegment& planned : plan_.segments) {
    const SurveyedSegment& segment = planned.source;
    survey.segments.push_back(segment);
    const Offset end = planned.pieces.empty() ? segment.first_offset() : planned.pieces.back().next;
    const std::uint64_t end_position =
        planned.pieces.empty() ? segment_header_bytes : planned.pieces.back().end;
    const std::string name = segment_index_name(segment.name_offset);
    if (may_exist(directory_ + "/" + name, storage_) &&
        (!planned.keep || check_index(segment, end, end_position, storage_))) {
      bad_indexes_.push_back(name);
    }
  }
  for (const Finding& stray : stray_indexes(directory_, survey, storage_)) {
    bad_indexes_.push_back(stray.file.substr(stray.file.find_last_of('/') + 1));
  }
  report_.indexes_dropped = bad_indexes_.size();
}

Result<void> Repair::write_pieces(const PlannedSegment& planned, const std::string& to,
                                  const std::string& suffix) {
  if (planned.pieces.empty()) return {};
  const auto from = open_surveyed(planned.source, storage_);
  if (!from) return from.error();
  for (const SoundPiece& piece : planned.pieces) {
    const std::string name = segment_name(piece.first);
    SegmentCopy copy{.path = to + "/" + name + suffix, .begin = piece.begin, .end = piece.end};
    copy.header = {planned.epoch,   piece.first,      plan_.incarnation, 0,
                   piece.gap_begin, planned.key_id(), planned.batch_mask};
    copy.end_offset = piece.next;
    copy.newest = piece.newest;
    if (auto written = write_sealed_segment(**from, copy, storage_); !written) return written;
    made_.push_back({copy.path, name});
  }
  return {};
}

Result<void> Repair::write_end(const std::string& to, const std::string& suffix) {
  const std::string name = segment_name(plan_.next);
  SegmentCopy copy{.path = to + "/" + name + suffix, .end_offset = plan_.next};
  const auto epoch = static_cast<std::uint32_t>(storage_.random());
  copy.header = {epoch == 0 ? 1 : epoch, plan_.next, plan_.incarnation, 0,
                 plan_.has_pieces ? plan_.end : Offset{}};
  if (auto written = write_empty_segment(copy, storage_); !written) return written;
  made_.push_back({copy.path, name});
  return {};
}

Result<void> Repair::write_cursors(const std::string& to) {
  if (cursors_.empty()) return {};
  CursorFile file(storage_, to);
  return file.write(CursorFile::encode(cursors_));
}

Result<void> Repair::write_table(const std::string& path) {
  const auto bytes = encode_cursor_table(plan_.incarnation, table_);
  const auto file = storage_.open(path, OpenMode::create);
  if (!file) return file.error();
  auto done = (*file)->allocate(bytes.size());
  if (done) done = write_all(**file, bytes, 0);
  if (done) done = (*file)->sync();
  return done;
}

Result<void> Repair::fill(const std::string& to) {
  if (auto made = storage_.make_directory(to); !made) return made;
  for (const PlannedSegment& segment : plan_.segments) {
    if (auto written = write_pieces(segment, to, ""); !written) return written;
  }
  if (needs_end()) {
    if (auto written = write_end(to, ""); !written) return written;
  }
  if (auto written = write_cursors(to); !written) return written;
  if (found_table_.exists) {
    if (auto written = write_table(to + "/" + std::string(CursorTable::file_name)); !written) return written;
  }
  return mark_restored(to, storage_);
}

Result<RepairReport> Repair::write_to(const std::string& output, const RepairOptions& options) {
  if (auto planned = plan(options); !planned) return planned.error();
  report_.producers_lost.clear();  // a copy has no producer files
  const std::string unfinished = output + ".unfinished-" + std::to_string(storage_.random());
  Result<void> done = fill(unfinished);
  if (done) done = storage_.rename(unfinished, output);
  if (!done) {
    remove_files(unfinished, storage_);
    return done.error();
  }
  if (const auto synced = storage_.sync_directory(parent_of(output)); !synced) return synced.error();
  report_.segments_written = made_.size();
  return std::move(report_);
}

void Repair::drop_new_files() {
  for (const NewFile& file : made_) static_cast<void>(storage_.unlink(file.path));
}

Result<RepairReport> Repair::replace(const RepairOptions& options) {
  const auto names = list_named_segments(directory_, storage_);
  if (!names) return names.error();
  const auto unnamed = unnamed_segment(directory_, *names, storage_);
  if (!unnamed) return unnamed.error();
  if (*unnamed) {  // plan first, so that a log that cannot be repaired stays unchanged
    if (auto possible = Repair(directory_, storage_).plan(options); !possible) return possible.error();
    if (auto named = name_unnamed_segment(directory_, *names, storage_); !named) return named.error();
  }
  if (auto planned = plan(options); !planned) return planned.error();
  report_.segments_kept = static_cast<std::size_t>(
      std::count_if(plan_.segments.begin(), plan_.segments.end(), [](const auto& it) { return it.keep; }));
  judge_indexes();
  const bool all_sound =
      !cursors_need_writing_ && !table_needs_writing_ && bad_indexes_.empty() && bad_producers_.empty();
  const bool has_end = plan_.end_is_kept || !needs_end();
  if (plan_.all_kept() && has_end && all_sound) return std::move(report_);
  Result<void> done;
  for (const PlannedSegment& segment : plan_.segments) {
    if (done && !segment.keep) done = write_pieces(segment, directory_, prepared_suffix);
  }
  if (done && !has_end) done = write_end(directory_, prepared_suffix);
  if (done) done = give_second_names();
  if (done) done = mark_restored(directory_, storage_);  // the log may have lost its end
  if (!done) {
    drop_new_files();
    return done.error();
  }
  if (done = put_in_place(); !done) return done.error();
  report_.segments_written = made_.size();
  return std::move(report_);
}

Result<std::string> Repair::make_room_for_old_files() {
  for (int number = 1;; ++number) {
    std::string path = directory_ + "/" + damaged_prefix + std::to_string(number);
    const auto there = list_if_there(path, storage_);
    if (!there) return there.error();
    if (!there->empty()) continue;
    if (auto made = storage_.make_directory(path); !made) return made.error();
    return path;
  }
}

// The old files keep their names until the new files replace them, so no message disappears in between.
Result<void> Repair::give_second_names() {
  std::vector<std::string> names;
  for (const PlannedSegment& segment : plan_.segments) {
    if (!segment.keep) names.push_back(segment.source.name());
  }
  names.insert(names.end(), bad_indexes_.begin(), bad_indexes_.end());
  names.insert(names.end(), bad_producers_.begin(), bad_producers_.end());
  if (cursors_need_writing_) names.insert(names.end(), {"cursors.0", "cursors.1"});
  if (table_needs_writing_) names.emplace_back(CursorTable::file_name);
  const auto room = make_room_for_old_files();
  if (!room) return room.error();
  report_.moved_to = *room;
  for (const std::string& name : names) {
    const auto linked = storage_.link(directory_ + "/" + name, *room + "/" + name);
    const bool no_such_file = !linked && is_missing(linked.error()) && !segment_name_offset(name);
    if (!linked && !no_such_file) return linked;
  }
  if (auto synced = storage_.sync_directory(*room); !synced) return synced;
  return storage_.sync_directory(directory_);
}

// Replaces the last file first. If the repair is interrupted, messages may exist in two files, which a second
// repair can sort out. With the other order they could be missing, which it could not.
Result<void> Repair::put_in_place() {
  for (const auto* names : {&bad_indexes_, &bad_producers_}) {
    for (const std::string& name : *names) {
      const auto removed = storage_.unlink(directory_ + "/" + name);
      if (!removed && !is_missing(removed.error())) return removed;
    }
  }
  std::sort(made_.begin(), made_.end(),
            [](const NewFile& a, const NewFile& b) { return b.final_name < a.final_name; });
  for (const NewFile& file : made_) {
    const std::string path = directory_ + "/" + file.final_name;
    if (auto renamed = storage_.rename(file.path, path); !renamed) return renamed;
  }
  for (const PlannedSegment& segment : plan_.segments) {
    const std::string name = segment.source.name();
    const bool replaced =
        std::any_of(made_.begin(), made_.end(), [&](const NewFile& file) { return file.final_name == name; });
    if (segment.keep || replaced) continue;
    if (auto removed = storage_.unlink(segment.source.path); !removed) return removed;
  }
  if (auto synced = storage_.sync_directory(directory_); !synced) return synced;
  if (table_needs_writing_) {
    if (auto replaced = replace_table(); !replaced) return replaced;
  }
  return cursors_need_writing_ ? replace_cursors() : Result<void>();
}

// Writes a new file and renames it, because the old file's second name shares its bytes.
Result<void> Repair::replace_table() {
  const std::string path = directory_ + "/" + std::string(CursorTable::file_name);
  const std::string unfinished = path + ".new";
  if (auto written = write_table(unfinished); !written) return written;
  if (auto renamed = storage_.rename(unfinished, path); !renamed) return renamed;
  return storage_.sync_directory(directory_);
}

// Writes new files and renames them, because the old files' second names share their bytes.
Result<void> Repair::replace_cursors() {
  const std::string slot = directory_ + "/cursors.";
  if (!cursors_.empty()) {
    CursorFile file(storage_, directory_, "cursors-repaired");
    if (auto written = file.write(CursorFile::encode(cursors_)); !written) return written;
    if (auto renamed = storage_.rename(directory_ + "/cursors-repaired.0", slot + "0"); !renamed)
      return renamed;
  }
  for (const char* number : {"0", "1"}) {
    if (*number == '0' && !cursors_.empty()) continue;
    const auto removed = storage_.unlink(slot + number);
    if (!removed && !is_missing(removed.error())) return removed;
  }
  return storage_.sync_directory(directory_);
}

}  // namespace

std::uint64_t RepairReport::lost_messages() const {
  std::uint64_t messages_lost = 0;
  for (const LostRange& range : lost) messages_lost += distance(range.first, range.next);
  return messages_lost;
}

Result<RepairReport> repair_to(const std::string& directory, const std::string& output,
                               const RepairOptions& options, Storage& storage) {
  return Repair(directory, storage).write_to(output, options);
}

Result<RepairReport> repair_in_place(const std::string& directory, const RepairOptions& options,
                                     Storage& storage) {
  return Repair(directory, storage).replace(options);
}

}  // namespace lightq::log
