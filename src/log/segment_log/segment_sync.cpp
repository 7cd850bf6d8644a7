/// Composes the work that makes a log durable, and takes over its results. Layer: log.
#include "log/segment_log/segment_sync.hpp"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "log/elapsed.hpp"
#include "log/segment/failed_sync.hpp"

namespace lightq::log {

namespace {

constexpr std::int64_t begin_again_us = 1'000'000;  // wait after a rename, or opening a directory, has failed

}  // namespace

bool SegmentSync::anything_unsynced() const {
  return !segments_.empty() &&
         (!segments_.active().synced() || durable_ < segments_.next_offset() || !directory_.is_synced());
}

bool SegmentSync::has_flush_bytes() const {
  return options_.flush_bytes != 0 && unsynced_bytes() >= options_.flush_bytes;
}

bool SegmentSync::is_due(Timestamp now) const {
  if (poisoned_ || !anything_unsynced() || !may_begin(now)) return false;
  if (durable_ < flush_requested_ || has_flush_bytes()) return true;
  return options_.flush_interval_ms != 0 && has_passed(last_sync_, in_us(options_.flush_interval_ms), now);
}

bool SegmentSync::is_wanted() const {
  const bool asked = options_.flush_interval_ms != 0 || durable_ < flush_requested_ || has_flush_bytes();
  return !poisoned_ && asked && anything_unsynced();
}

// Nothing was synced when a job could not rename the segment or open a directory, and nothing can be until
// that succeeds.
bool SegmentSync::may_begin(Timestamp now) const {
  return begun_.ok() || has_passed(last_begun_, begin_again_us, now);
}

bool SegmentSync::name_is_due(Timestamp now) const {
  return directory_.lacks_name() && has_passed(last_begun_, begin_again_us, now);
}

std::uint64_t SegmentSync::unsynced_bytes() const {
  std::uint64_t bytes = 0;
  const auto& all = segments_.all();
  for (auto segment = all.rbegin(); segment != all.rend() && !(*segment)->synced(); ++segment) {
    bytes += (*segment)->end_position() - std::max((*segment)->synced_position, segment_header_bytes);
  }
  return bytes;
}

std::vector<SyncTarget> SegmentSync::unsynced_files() {
  std::vector<SyncTarget> targets;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    SegmentFile& segment = segments_.at(i);
    if (segment.synced() && (!segment.sealed || segment.seal_written)) continue;
    if (segment.file() == nullptr) continue;
    SyncTarget target{segments_.first_number() + i,
                      segment.end_position(),
                      segment.file(),
                      segment.sealed,
                      segment.header(),
                      segment.seal(),
                      "",
                      nullptr};
    if (segment.sealed && segment.node() != nullptr && segment.node()->growing_index() != nullptr) {
      target.index_path = segment_index_path(*segment.node());
      target.index = segment.node()->growing_index();
      segment.index_may_be_stored = true;
    }
    targets.push_back(std::move(target));
  }
  return targets;
}

SegmentWork SegmentSync::work_to_sync() {
  SegmentWork work = directory_.new_work();
  work.sync = true;
  work.targets = unsynced_files();
  directory_.add_syncs(work);
  work.durable = segments_.next_offset();
  return work;
}

SegmentWork SegmentSync::begin(Timestamp now) {
  last_sync_ = now;
  return work_to_sync();
}

// Returns work that makes the name and header of the newest segment durable. A log that syncs nothing by
// itself needs this before it removes segments beyond durable_offset, so that no offset is ever assigned
// twice.
SegmentWork SegmentSync::work_to_remember() const {
  SegmentWork work = directory_.new_work();
  work.remember = segments_.active().file();
  work.remembered = segments_.active().header();
  directory_.add_syncs(work);
  return work;
}

// Returns true if a segment that stays on disk already records the next offset, so these can be retired
// safely.
bool SegmentSync::is_remembered(const std::vector<RetiredSegment>& retire) const {
  if (!remembered_ || !options_.mapped_writes) return false;
  return retire.back().end_offset <= *remembered_ && segments_.first_offset() <= *remembered_;
}

SegmentWork SegmentSync::before_retiring(const std::vector<RetiredSegment>& retire, SegmentWork work,
                                         Timestamp now) {
  if (work.sync || retire.empty() || poisoned_ || is_remembered(retire)) return work;
  if (!options_.mapped_writes) return begin(now);
  return segments_.active().file() != nullptr ? work_to_remember() : work_to_sync();
}

void SegmentSync::finish(const SegmentWork& work, const SegmentWorkDone& done) {
  begun_ = done.begun;
  if (!begun_) return;  // no sync was attempted, so none has failed: the next job may succeed
  if (work.remember != nullptr && done.remembered) {
    directory_.note_synced(work);
    remembered_ = work.remembered.first_offset;
  }
  if (work.sync) return note_synced(work, done);
  if (!done.remembered) poison(done.remembered.error());
}

// Stops durable_offset for all files, even those that the failed sync did not cover. The system may treat
// errors of other pages of that file as reported, and not report them again.
void SegmentSync::poison(const Error& error) {
  poisoned_ = true;
  mark_failed_sync(options_.directory, storage_);
  last_error_ = error;
  last_error_.message = "nothing appended from offset " + std::to_string(durable_.value) + " on in " +
                        options_.directory +
                        " becomes durable until the log is opened again: " + last_error_.message;
  sync_error_ = last_error_;
}

void SegmentSync::settle_doubts() {
  for (const auto& segment : segments_.all()) {
    if (segment->seal_written) continue;
    if (const auto opened = segment->open_for_writing(storage_); !opened) return poison(opened.error());
  }
  if (const auto written = write_again(segments_.all()); !written) return poison(written.error());
  if (flush()) clear_failed_sync(options_.directory, storage_);
}

void SegmentSync::note_synced(const SegmentWork& work, const SegmentWorkDone& done) {
  if (!done.sync) return poison(done.sync.error());
  if (poisoned_) return;
  durable_ = std::max(durable_, work.durable);
  directory_.note_synced(work);
  for (const SyncTarget& target : work.targets) {
    const auto index = segments_.index_of(target.number);
    if (!index) continue;
    SegmentFile& segment = segments_.at(*index);
    if (segment.file() != target.file) continue;
    note_synced(segment, target);
    if (segment.seal_written && !segment.is_mapped()) segment.release();
  }
}

// Writes a checkpoint if it is due. A failure costs a longer scan, nothing else.
void SegmentSync::note_synced(SegmentFile& segment, const SyncTarget& target) {
  segment.synced_position = std::max(segment.synced_position, target.position);
  segment.seal_written = segment.seal_written || target.is_full;
  segment.synced_point = target.seal;
  const SegmentCheckpoint& last = segment.marks().checkpoint();
  if (segment.sealed || target.seal.end_position < last.end_position + checkpoint_interval_bytes) return;
  SegmentCheckpoint checkpoint = checkpoint_at(target.seal);
  checkpoint.reserved = std::max(last.reserved, checkpoint.end_position + checkpoint_reserve_bytes);
  checkpoint.reserved = std::min(checkpoint.reserved, segment.usable_bytes());
  static_cast<void>(segment.marks().write_checkpoint(checkpoint));
}

Result<void> SegmentSync::flush() {
  const std::lock_guard lock(jobs_->running);
  if (!anything_unsynced() && !poisoned_) return {};
  SegmentWork work = work_to_sync();
  const SegmentWorkDone done = do_segment_work(work, storage_, pool_, jobs_->sync_failed);
  if (!done.begun) return done.begun;
  note_synced(work, done);
  if (poisoned_) return sync_error_;
  return {};
}

Result<void> SegmentSync::remember() {
  const std::lock_guard lock(jobs_->running);
  SegmentWork work = work_to_remember();
  const auto done = do_segment_work(work, storage_, pool_, jobs_->sync_failed);
  finish(work, done);
  return done.remembered;
}

Result<void> SegmentSync::retire_now() {
  const std::lock_guard lock(jobs_->running);
  SegmentWork work = poisoned_ ? directory_.new_work() : work_to_sync();
  work.retire = dropped_.ready(stuck_at(), DroppedSegments::Reason::disk_is_full);
  const auto done = do_segment_work(work, storage_, pool_, jobs_->sync_failed);
  dropped_.note_retired(work, done.retired);
  finish(work, done);
  if (done.retired == 0) return Error{ErrorCode::io_error, "cannot retire " + dropped_.oldest_path(), 0};
  return {};
}

}  // namespace lightq::log
