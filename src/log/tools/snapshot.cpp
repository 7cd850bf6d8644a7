/// Makes snapshots of logs. Layer: tools.
#include "log/tools/snapshot.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "log/format/restored_mark.hpp"
#include "log/saved_state/cursor_file.hpp"
#include "log/saved_state/cursor_table.hpp"
#include "log/saved_state/producer_slots.hpp"
#include "log/subdirectories.hpp"
#include "log/tools/log_survey.hpp"
#include "log/tools/segment_copy.hpp"
#include "log/tools/segment_walk.hpp"

namespace lightq::log {

namespace {

constexpr int tries_max = 20;   // each retry means that the log dropped all segments of the survey before
constexpr int state_looks = 3;  // a writer may replace both slots of a file while they are read
constexpr std::string_view segment_suffix = ".seg";

bool cannot_link(const Error& error) {
  const int code = error.system_error;
  return code == EXDEV || code == EPERM || code == EMLINK || code == EOPNOTSUPP || code == ENOSYS;
}

class Snapshot {
 public:
  Snapshot(const std::string& directory, std::string to, Storage& storage)
      : directory_(directory), to_(std::move(to)), storage_(storage) {}
  /// Copies the state, then the log.
  Result<SnapshotReport> run();
  /// Makes the directory, and copies the cursors.
  Result<void> take_state();
  /// Copies the producers that are known. Called before take_log: the file never says more than the log.
  Result<void> take_producers();
  Result<SnapshotReport> take_log();

 private:
  enum class Taken { yes, dropped };
  Result<void> begin_again();
  Result<bool> take_segments();
  Result<Taken> take(const SurveyedSegment& segment);
  Result<Taken> link(const SurveyedSegment& segment);
  Result<Taken> copy(const SurveyedSegment& segment);
  Result<Taken> copy_sound(const SurveyedSegment& segment);

  const std::string& directory_;
  const std::string to_;
  Storage& storage_;
  SnapshotReport report_;
  Offset end_;  // end of the newest segment that was copied or linked last
};

// Cursors are copied before messages, so that no cursor is ahead of them.
Result<SnapshotReport> Snapshot::run() {
  if (auto taken = take_state(); !taken) return taken.error();
  return take_log();
}

Result<SnapshotReport> Snapshot::take_log() {
  for (int left = tries_max; left > 0; --left) {
    if (auto begun = begin_again(); !begun) return begun.error();
    const auto taken = take_segments();
    if (!taken) return taken.error();
    if (!*taken) continue;
    if (auto marked = mark_restored(to_, storage_); !marked) return marked.error();
    return report_;
  }
  return Error{ErrorCode::busy, directory_ + " drops its segments faster than they can be copied", 0};
}

/// Removes the segments of the attempt before.
Result<void> Snapshot::begin_again() {
  report_ = {};
  const auto names = storage_.list(to_);
  if (!names) return names.error();
  for (const std::string& name : *names) {
    if (!name.ends_with(segment_suffix)) continue;
    if (auto removed = storage_.unlink(to_ + "/" + name); !removed) return removed;
  }
  return {};
}

Result<void> Snapshot::take_state() {
  remove_files(to_, storage_);
  if (auto made = storage_.make_directory(to_); !made) return made;
  CursorFile file(storage_, directory_);
  auto loaded = file.load();
  for (int look = 1; look < state_looks && !loaded; ++look) loaded = file.load();
  if (!loaded) return loaded.error();
  if (auto known = CursorTable::check_known(storage_, directory_); !known) return known;
  if (auto copied = copy_cursor_table(directory_, to_, storage_); !copied) return copied;
  if (loaded->empty()) return {};
  CursorFile copy(storage_, to_);
  return copy.write(CursorFile::encode(*loaded));
}

// Damaged files are left out: without them no producer is known, which stores nothing twice.
Result<void> Snapshot::take_producers() {
  SlotFile file(storage_, directory_, producer_slots_name, producer_slot_format());
  auto loaded = file.load();
  for (int look = 1; look < state_looks && !loaded; ++look) loaded = file.load();
  if (!loaded && loaded.error().code == ErrorCode::corrupt) return {};
  if (!loaded) return loaded.error();
  if (!*loaded) return {};
  return SlotFile(storage_, to_, producer_slots_name, producer_slot_format()).write(*std::move(*loaded));
}

// Takes the newest segments first. A log drops its oldest segments, so any that disappear meanwhile are
// missing at the front. Returns false if the newest one is gone, too: then the log has dropped them all, or
// is being deleted. The survey of the next try fails if the directory no longer exists.
Result<bool> Snapshot::take_segments() {
  const auto survey = survey_log(directory_, storage_);
  if (!survey) return survey.error();
  const auto& segments = survey->segments;
  // The directory of a log that is being deleted is empty first, and then gone.
  if (segments.empty()) {
    if (auto there = storage_.list(directory_); !there) return there.error();
  }
  for (auto segment = segments.rbegin(); segment != segments.rend(); ++segment) {
    const auto taken = take(*segment);
    if (!taken) return taken.error();
    if (*taken == Taken::dropped)
      return segment != segments.rbegin() && !is_dropped(segments.back(), storage_);
    ++report_.segments;
    report_.first_offset = segment->first_offset();
    if (segment == segments.rbegin()) report_.next_offset = end_;
  }
  return true;
}

Result<Snapshot::Taken> Snapshot::take(const SurveyedSegment& segment) {
  if (segment.state == PageState::foreign && !is_dropped(segment, storage_))
    return Error{ErrorCode::foreign_format, segment.unknown, 0};
  const bool unnamed = segment.path != segment.named_path();  // that name may now belong to another file
  if (!segment.seal || segment.state != PageState::sound || unnamed) return copy(segment);
  return link(segment);
}

Result<Snapshot::Taken> Snapshot::link(const SurveyedSegment& segment) {
  const std::string to = to_ + "/" + segment.name();
  const auto linked = storage_.link(segment.path, to);
  if (!linked && is_missing(linked.error())) return Taken::dropped;
  if (!linked && cannot_link(linked.error())) return copy(segment);
  if (!linked) return linked.error();
  // The log may not have synced the segment yet, and there is no way to ask it.
  const auto file = storage_.open(to, OpenMode::read_only);
  if (!file) return file.error();
  if (auto synced = (*file)->sync(); !synced) return synced.error();
  ++report_.linked;
  end_ = segment.seal->end_offset;
  return Taken::yes;
}

Result<Snapshot::Taken> Snapshot::copy(const SurveyedSegment& segment) {
  const std::string to = to_ + "/" + segment.name();
  Taken taken = Taken::yes;
  if (segment.header && segment.state == PageState::sound) {
    const auto copied = copy_sound(segment);
    if (!copied) return copied.error();
    taken = *copied;
  } else {
    const auto copied = copy_file(segment.path, to, storage_);
    if (!copied && !is_missing(copied.error())) return copied.error();
    if (!copied) taken = Taken::dropped;
    report_.copied_bytes += segment.size_bytes;
    ++report_.damages;
    end_ = segment.name_offset;
  }
  // The file may have been recycled while it was read, so that the copy is not of this segment.
  if (taken == Taken::yes && is_dropped(segment, storage_)) taken = Taken::dropped;
  if (taken == Taken::dropped) static_cast<void>(storage_.unlink(to));
  return taken;
}

Result<Snapshot::Taken> Snapshot::copy_sound(const SurveyedSegment& segment) {
  const auto file = open_surveyed(segment, storage_);
  if (!file && is_missing(file.error())) return Taken::dropped;
  if (!file) return file.error();
  SegmentWalk walk(**file, whole_segment(segment));
  SegmentCopy copy{.path = to_ + "/" + segment.name(), .header = *segment.header};
  for (auto step = walk.next(); step != SegmentWalk::Step::end; step = walk.next()) {
    if (step == SegmentWalk::Step::batch) {
      copy.newest = std::max(copy.newest, walk.batch().time);
      continue;
    }
    if (is_dropped(segment, storage_)) return Taken::dropped;
    if (const auto newer = walk.newer_in_damage()) return newer->error(segment.path);
    copy.must_be_sound = false;
    ++report_.damages;
  }
  copy.begin = segment_header_bytes;
  copy.end = walk.end_position();
  copy.end_offset = end_ = walk.end_offset();
  report_.copied_bytes += copy.end - copy.begin;
  const auto written = write_sealed_segment(**file, copy, storage_);
  if (written) return Taken::yes;
  if (is_dropped(segment, storage_)) return Taken::dropped;
  return written.error();
}

std::string carried_in(const std::string& directory) {
  return directory + "/" + carried_directory_name;
}

void add(const SnapshotReport& part, SnapshotReport& to) {
  to.damages += part.damages;
  to.copied_bytes += part.copied_bytes;
}

/// Copies the carried messages, if there are any, and adds the copy to `report`.
Result<void> snapshot_carried(const std::string& directory, const std::string& to, Storage& storage,
                              SnapshotReport& report) {
  const std::string carried = carried_in(directory);
  const auto names = list_if_there(carried, storage);
  if (!names) return names.error();
  if (names->empty()) return {};
  auto taken = Snapshot(carried, carried_in(to), storage).run();
  if (!taken) return taken.error();
  add(*taken, report);
  return storage.sync_directory(to);
}

std::string unfinished_name(const std::string& output, Storage& storage) {
  return output + ".unfinished-" + std::to_string(storage.random());
}

std::string delayed_in(const std::string& directory) {
  return directory + "/" + delayed_directory_name;
}

Result<SnapshotReport> take_all(const std::string& directory, const std::string& output,
                                TopicCopy::Extent extent, Storage& storage) {
  TopicCopy copy(directory, output, storage);
  if (auto taken = copy.take_state(); !taken) return taken.error();
  return copy.take_log(extent);
}

}  // namespace

TopicCopy::TopicCopy(std::string directory, std::string output, Storage& storage)
    : directory_(std::move(directory)),
      output_(std::move(output)),
      path_(unfinished_name(output_, storage)),
      storage_(storage) {}

TopicCopy::~TopicCopy() {
  if (!is_finished_) remove_files(path_, storage_);
}

Result<void> TopicCopy::take_state() {
  return Snapshot(directory_, path_, storage_).take_state();
}

// The schedule comes first: a message that leaves it meanwhile is then in both copies, and never in none.
// Producers come before the segments, so that their file never says more than the log. With a schedule they
// are left out: its mover would take the numbers of messages that it moved meanwhile for other ones.
Result<SnapshotReport> TopicCopy::take_log(Extent extent) {
  const auto names = list_if_there(delayed_in(directory_), storage_);
  if (!names) return names.error();
  SnapshotReport schedule;
  if (extent != Extent::log && !names->empty()) {
    const auto taken = Snapshot(delayed_in(directory_), delayed_in(path_), storage_).run();
    if (!taken) return taken;
    schedule = *taken;
  }
  Snapshot log(directory_, path_, storage_);
  if (extent == Extent::topic_with_producers && names->empty()) {
    if (auto taken = log.take_producers(); !taken) return taken.error();
  }
  auto report = log.take_log();
  if (!report) return report;
  add(schedule, *report);
  // After the segments: a message that the log has dropped meanwhile was copied before.
  if (auto carried = snapshot_carried(directory_, path_, storage_, *report); !carried) return carried.error();
  if (auto synced = storage_.sync_directory(path_); !synced) return synced.error();
  if (auto finished = finish(); !finished) return finished.error();
  return report;
}

/// Gives the copy its name, and syncs that.
Result<void> TopicCopy::finish() {
  if (auto renamed = storage_.rename(path_, output_); !renamed) return renamed;
  path_ = output_;
  auto synced = storage_.sync_directory(parent_of(output_));
  is_finished_ = synced.ok();
  return synced;
}

Result<SnapshotReport> snapshot_log(const std::string& directory, const std::string& output,
                                    Storage& storage) {
  return take_all(directory, output, TopicCopy::Extent::log, storage);
}

Result<SnapshotReport> snapshot_topic(const std::string& directory, const std::string& output,
                                      Storage& storage) {
  return take_all(directory, output, TopicCopy::Extent::topic, storage);
}

}  // namespace lightq::log
