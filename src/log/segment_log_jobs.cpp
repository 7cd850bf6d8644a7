/// A durable log: its disk jobs. Layer: log.
#include <algorithm>
#include <cstddef>
#include <mutex>
#include <utility>

#include "log/elapsed.hpp"
#include "log/failed_sync.hpp"
#include "log/segment_log.hpp"

namespace lightq::log {

namespace {

constexpr Timestamp never_tried{-1'000'000};
// Wait after a failed attempt, for example on a full disk.
constexpr std::int64_t prepare_again_us = 1'000'000;
constexpr std::int64_t retire_again_us = 1'000'000;  // wait after a failed attempt to retire
constexpr std::int64_t begin_again_us = 1'000'000;  // wait after a rename, or opening a directory, has failed
// Limit for one job, because the writer may be waiting for the next one.
constexpr std::size_t retired_at_once_max = 64;
constexpr std::size_t released_at_once_max = 64;   // limit for one job
constexpr std::size_t retired_gathered_max = 16;   // this many dropped segments wait for no more
constexpr std::uint64_t released_at_once_min = 8;  // for fewer, a job would cost more than it gains
constexpr std::size_t still_read_max = 2;  // dropped segments that may wait for their readers to finish

}  // namespace

bool SegmentLog::anything_unsynced() const {
  return !segments_.empty() && (!segments_.back()->synced() || durable_ < next_ || synced_rolls_ != rolls_);
}

bool SegmentLog::sync_is_due(Timestamp now) const {
  if (poisoned_ || !anything_unsynced() || !may_begin(now)) return false;
  if (flush_is_due(now)) return true;
  if (options_.flush_bytes != 0 && unsynced_bytes() >= options_.flush_bytes) return true;
  return options_.flush_interval_ms != 0 && has_passed(last_sync_, in_us(options_.flush_interval_ms), now);
}

bool SegmentLog::flush_is_due(Timestamp now) const {
  return durable_ < flush_requested_ && may_begin(now);
}

// Returns false for a while after a job could not rename the segment or open a directory. Nothing was synced
// then, and nothing can be until that succeeds.
bool SegmentLog::may_begin(Timestamp now) const {
  return begun_.ok() || has_passed(last_begun_, begin_again_us, now);
}

std::uint64_t SegmentLog::unsynced_bytes() const {
  std::uint64_t bytes = 0;
  for (auto segment = segments_.rbegin(); segment != segments_.rend() && !(*segment)->synced(); ++segment) {
    bytes += (*segment)->end_position() - std::max((*segment)->synced_position, segment_header_bytes);
  }
  return bytes;
}

std::vector<SyncTarget> SegmentLog::unsynced_files() {
  std::vector<SyncTarget> targets;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    SegmentFile& segment = *segments_[i];
    if (segment.synced() && (!segment.sealed || segment.seal_written)) continue;
    if (segment.file() == nullptr) continue;
    SyncTarget target{front_number_ + i,
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

SegmentWork SegmentLog::new_work() const {
  SegmentWork work;
  work.name = name_;
  return work;
}

SegmentWork SegmentLog::work_to_sync() {
  SegmentWork work = new_work();
  work.sync = true;
  work.targets = unsynced_files();
  work.rolls = rolls_;
  if (synced_rolls_ != rolls_) work.sync_directories.push_back(options_.directory);
  if (parent_unsynced_) work.sync_directories.push_back(parent_of(options_.directory));
  work.durable = next_;
  return work;
}

bool SegmentLog::wants_disk_work() const {
  const bool by_size = options_.flush_bytes != 0 && unsynced_bytes() >= options_.flush_bytes;
  const bool asked = options_.flush_interval_ms != 0 || durable_ < flush_requested_ || by_size;
  const bool to_sync = !poisoned_ && asked && anything_unsynced();
  return to_sync || !ready_to_retire().empty();
}

// Returns work that makes the name and header of the newest segment durable. A log that syncs nothing by
// itself needs this before it removes segments beyond durable_offset, so that no offset is ever assigned
// twice.
SegmentWork SegmentLog::work_to_remember() const {
  SegmentWork work = new_work();
  work.remember = segments_.back()->file();
  work.remembered = segments_.back()->header();
  work.rolls = rolls_;
  if (synced_rolls_ != rolls_) work.sync_directories.push_back(options_.directory);
  if (parent_unsynced_) work.sync_directories.push_back(parent_of(options_.directory));
  return work;
}

// Returns true if a segment that stays on disk already records the next offset, so these can be retired
// safely.
bool SegmentLog::is_remembered(const std::vector<RetiredSegment>& retire) const {
  if (!remembered_ || !options_.mapped_writes) return false;
  return retire.back().end_offset <= *remembered_ && first_offset() <= *remembered_;
}

bool SegmentLog::may_retire(Timestamp now) const {
  return !retired_.empty() && (!retire_failed_ || has_passed(last_retire_, retire_again_us, now));
}

// Each job has a fixed cost, even if it does little: threads wake each other, and a directory is synced. So
// segments are gathered, but no more than the pool has space for.
bool SegmentLog::retire_is_due(Timestamp now) const {
  const std::size_t room = pool_.files_max();
  const std::size_t many = room == 0 ? retired_gathered_max : std::min(room, retired_gathered_max);
  return may_retire(now) &&
         (retired_.size() >= many || has_passed(last_retire_, options_.retire_gather_us, now));
}

bool SegmentLog::prepare_is_due(Timestamp now) const {
  return !segments_.empty() && !prepared_ && !segments_.back()->sealed &&
         (options_.prefault || segments_.back()->end_position() > segments_.back()->usable_bytes() / 2) &&
         has_passed(last_prepare_, prepare_again_us, now);
}

bool SegmentLog::name_is_due(Timestamp now) const {
  return name_ != nullptr && !name_->is_given() && has_passed(last_begun_, begin_again_us, now);
}

// Closes descriptors of full segments on the writer's thread, beyond the hard limit only. Without a limit, a
// log that nobody syncs would keep one for each of its segments, and a process has few. Closing one costs the
// writer as much as all other work for a new segment.
void SegmentLog::rest_full_segments() {
  released_ = std::max(released_, front_number_);
  while (released_ + unsynced_open_hard_max < front_number_ + segments_.size()) {
    if (!segments_[released_ - front_number_]->release_descriptor())
      return;  // a job is using it: try again later
    ++released_;
  }
}

// After a file had to keep its descriptor, asks again only once another segment has begun.
bool SegmentLog::may_release_descriptors(std::uint64_t at_least) const {
  const std::uint64_t from = std::max(released_, front_number_);
  return release_refused_rolls_ != rolls_ &&
         from + unsynced_open_max + at_least <= front_number_ + segments_.size();
}

// Returns true if any work is due except retiring; such a job also takes the dropped segments gathered so
// far.
bool SegmentLog::has_to_work(Timestamp now) const {
  return sync_is_due(now) || prepare_is_due(now) || name_is_due(now) ||
         may_release_descriptors(released_at_once_min) || !unmap_.empty();
}

void SegmentLog::add_releases(SegmentWork& work) {
  released_ = std::max(released_, front_number_);
  const std::uint64_t end = front_number_ + segments_.size() - unsynced_open_max;
  for (work.released = released_; work.released < end && work.releases.size() < released_at_once_max;
       ++work.released) {
    const SegmentFile& segment = *segments_[work.released - front_number_];
    if (segment.needs_descriptor_for_sync())
      work.releases.push_back({work.released, segment.file(), segment.path()});
  }
  if (work.releases.empty()) released_ = work.released;
}

void SegmentLog::finish_releases(const SegmentWork& work, std::uint64_t released) {
  if (work.releases.empty()) return;
  if (released < work.released) release_refused_rolls_ = rolls_;
  released_ = std::max(released_, released);
}

bool SegmentLog::disk_job_is_due(Timestamp now) const {
  if (jobs_->is_out) return false;
  return has_to_work(now) || (retire_is_due(now) && !ready_to_retire().empty());
}

std::unique_ptr<DiskJob> SegmentLog::take_disk_job(Timestamp now) {
  if (jobs_->is_out) return nullptr;
  SegmentWork work = new_work();
  const bool other_work = has_to_work(now);
  const bool to_retire = retire_is_due(now) || (other_work && may_retire(now));
  auto retire = to_retire ? ready_to_retire() : std::vector<RetiredSegment>{};
  const bool remember = !retire.empty() && !poisoned_ && !is_remembered(retire);
  if (sync_is_due(now) || (remember && !options_.mapped_writes)) {
    work = work_to_sync();
    last_sync_ = now;
  } else if (remember) {
    work = segments_.back()->file() != nullptr ? work_to_remember() : work_to_sync();
  }
  work.retire = std::move(retire);
  if (!work.retire.empty()) last_retire_ = now;
  if (prepare_is_due(now)) {
    last_prepare_ = now;
    work.prepare_bytes = next_segment_bytes(0);
    work.prepare_new = new_bytes();
    work.prepare_path = options_.directory + "/" + next_prepared_name;
    if (options_.mapped_writes && options_.prefault) work.map_prepared = options_.views;
    work.incarnation = incarnation_;
    work.key_id = key_id();
    work.batch_mask = batch_mask_;
    work.prepare_space = {.free_bytes_floor = options_.disk_free_floor_bytes,
                          .log_bytes = stored_bytes_,
                          .leaves_room = options_.leaves_others_room};
  }
  const bool name = name_is_due(now);
  work.unmap = std::exchange(unmap_, {});
  const std::uint64_t releases_min = other_work || !work.retire.empty() ? 1 : released_at_once_min;
  if (!work.sync && may_release_descriptors(releases_min))
    add_releases(work);  // files that were synced need no descriptor
  if (!work.sync && work.retire.empty() && work.prepare_bytes == 0 && work.unmap.empty() &&
      work.releases.empty() && !name)
    return nullptr;
  last_begun_ = now;
  return std::make_unique<SegmentJob>(*this, jobs_, std::move(work), storage_, pool_);
}

std::unique_ptr<DiskJob> SegmentLog::take_flush_job(Timestamp now) {
  if (jobs_->is_out) return nullptr;
  last_sync_ = now;
  last_begun_ = now;
  return std::make_unique<SegmentJob>(*this, jobs_, work_to_sync(), storage_, pool_);
}

Result<void> SegmentLog::settle() {
  if (poisoned_) return sync_error_;
  // A file without a header, which a power cut may leave, does not identify the log.
  if (segments_.empty() || segments_.back()->sealed) {
    if (auto rolled = roll(0); !rolled) return rolled;
  }
  if (auto opened = segments_.back()->open_for_writing(storage_); !opened) return opened;
  const std::lock_guard lock(jobs_->running);
  SegmentWork work = work_to_remember();
  auto done = do_segment_work(work, storage_, pool_, jobs_->sync_failed);
  Result<void> remembered = done.remembered;
  finish_job(work, std::move(done));
  return remembered;
}

// Returns the retired segment that alone identifies the log, because all later ones have lost their headers;
// else null. It stays until another segment has begun.
const RetiredSegment* SegmentLog::last_with_identity() const {
  const bool known = std::any_of(segments_.begin(), segments_.end(),
                                 [](const auto& segment) { return segment->header().epoch != 0; });
  if (known || segments_.empty()) return nullptr;
  const auto last = std::find_if(retired_.rbegin(), retired_.rend(),
                                 [](const RetiredSegment& segment) { return segment.has_header; });
  return last != retired_.rend() ? &*last : nullptr;
}

// Returns the dropped segments that may be retired now, oldest first. `all`: the disk is full, so segments
// are not kept for readers or for the next start (keep_dropped_from). While the log is poisoned, the file
// that records durable_offset stays, with all that follow it. Without them a power cut would turn the log
// back, and its offsets would be assigned to other messages. A few segments that still have readers wait, so
// that they can be recycled.
std::vector<RetiredSegment> SegmentLog::ready_to_retire(bool all) const {
  std::vector<RetiredSegment> ready;
  const RetiredSegment* const identity = last_with_identity();
  bool read = false;
  std::uint64_t left_bytes = dropped_bytes_;
  for (const RetiredSegment& segment : retired_) {
    if (!all && keep_dropped_from_ < segment.end_offset && left_bytes <= dropped_bytes_max()) break;
    left_bytes -= segment.bytes;
    if (&segment == identity || (!all && ready.size() == retired_at_once_max)) break;
    if (poisoned_ && durable_ <= segment.end_offset) break;
    read = read || is_read(segment, !ready.empty());
    if (read && !all && retired_.size() - ready.size() <= still_read_max) break;
    ready.push_back(segment);
    ready.back().node = nullptr;
    ready.back().is_read = read;
  }
  return ready;
}

void SegmentLog::finish_job(const SegmentWork& work, SegmentWorkDone done) {
  finish_releases(work, done.released);
  for (std::size_t i = 0; i < done.retired; ++i) dropped_bytes_ -= retired_[i].bytes;
  retired_.erase(retired_.begin(), retired_.begin() + static_cast<std::ptrdiff_t>(done.retired));
  if (!work.retire.empty()) retire_failed_ = done.retired < work.retire.size();
  if (done.prepared) {
    prepared_ = std::move(done.prepared);
    last_prepare_ = never_tried;
  }
  begun_ = done.begun;
  if (!begun_) return;  // no sync was attempted, so none has failed: the next job may succeed
  if (work.remember != nullptr && done.remembered) {
    synced_rolls_ = std::max(synced_rolls_, work.rolls);
    remembered_ = work.remembered.first_offset;
    if (work.sync_directories.size() == 2) parent_unsynced_ = false;
  }
  if (work.sync) return synced(work, done);
  if (!done.remembered) poison(done.remembered.error());
}

// Stops durable_offset for all files, even those that the failed sync did not cover. The system may treat
// errors of other pages of that file as reported, and not report them again.
void SegmentLog::poison(const Error& error) {
  poisoned_ = true;
  mark_failed_sync(options_.directory, storage_);
  last_error_ = error;
  last_error_.message = "nothing appended from offset " + std::to_string(durable_.value) + " on in " +
                        options_.directory +
                        " becomes durable until the log is opened again: " + last_error_.message;
  sync_error_ = last_error_;
}

// Writes all data again that an earlier process could not sync, and left in the system's memory.
void SegmentLog::settle_doubts() {
  for (const auto& segment : segments_) {
    if (segment->seal_written) continue;
    if (const auto opened = segment->open_for_writing(storage_); !opened) return poison(opened.error());
  }
  if (const auto written = write_again(segments_); !written) return poison(written.error());
  if (flush()) clear_failed_sync(options_.directory, storage_);
}

void SegmentLog::synced(const SegmentWork& work, const SegmentWorkDone& done) {
  if (!done.sync) return poison(done.sync.error());
  if (poisoned_) return;
  durable_ = std::max(durable_, work.durable);
  synced_rolls_ = std::max(synced_rolls_, work.rolls);
  if (work.sync_directories.size() == 2) parent_unsynced_ = false;
  for (const SyncTarget& target : work.targets) {
    if (target.number < front_number_ || target.number - front_number_ >= segments_.size()) continue;
    SegmentFile& segment = *segments_[target.number - front_number_];
    if (segment.file() != target.file) continue;
    note_synced(segment, target);
    if (segment.seal_written && !segment.is_mapped()) segment.release();
  }
}

// Writes a checkpoint if it is due. A failure costs a longer scan, nothing else.
void SegmentLog::note_synced(SegmentFile& segment, const SyncTarget& target) {
  segment.synced_position = std::max(segment.synced_position, target.position);
  segment.seal_written = segment.seal_written || target.is_full;
  segment.synced_point = target.seal;
  const SegmentCheckpoint& last = segment.checkpoint();
  if (segment.sealed || target.seal.end_position < last.end_position + checkpoint_interval_bytes) return;
  SegmentCheckpoint checkpoint = checkpoint_at(target.seal);
  checkpoint.reserved = std::max(last.reserved, checkpoint.end_position + checkpoint_reserve_bytes);
  checkpoint.reserved = std::min(checkpoint.reserved, segment.usable_bytes());
  static_cast<void>(segment.write_checkpoint(checkpoint));
}

Result<void> SegmentLog::close() {
  if (auto named = give_name(); !named) return named;
  if (auto flushed = flush(); !flushed) return flushed;
  if (!retired_.empty()) static_cast<void>(retire_now());  // on failure the next start finds them again
  if (segments_.empty() || closed_) return {};
  SegmentFile& active = *segments_.back();
  if (active.sealed) return keep_seal(active);
  if (auto opened = active.open_for_writing(storage_); !opened) return opened;
  SegmentCheckpoint checkpoint = checkpoint_at(active.seal());
  checkpoint.reserved = std::max(active.checkpoint().reserved, active.end_position());
  checkpoint.clean = true;
  maybe_closed_on_disk_ = true;
  if (auto written = active.write_checkpoint(checkpoint); !written) return written;
  if (auto synced = sync_close(active); !synced) return synced;
  // Writes the same into the other slot, without a sync. A process that finds both knows that the first is on
  // disk, and writes nothing when it closes an unchanged log.
  static_cast<void>(active.write_checkpoint(checkpoint));
  return {};
}

// Syncs the seal of the last segment, which says all that a clean checkpoint would. It was written after the
// last sync, or by a process that may have ended before it was on disk.
Result<void> SegmentLog::keep_seal(SegmentFile& last) {
  const bool has_one = last.seal_written && last.header().epoch != 0;
  return has_one ? sync_close(last) : Result<void>{};
}

Result<void> SegmentLog::sync_close(SegmentFile& last) {
  if (auto opened = last.open_for_writing(storage_); !opened) return opened;
  if (auto synced = last.file()->sync(); !synced) return synced;
  closed_ = true;
  return {};
}

Result<void> SegmentLog::flush() {
  const std::lock_guard lock(jobs_->running);
  if (!anything_unsynced() && !poisoned_) return {};
  SegmentWork work = work_to_sync();
  const SegmentWorkDone done = do_segment_work(work, storage_, pool_, jobs_->sync_failed);
  if (!done.begun) return done.begun;
  synced(work, done);
  if (poisoned_) return sync_error_;
  return {};
}

// Requires: no job is out, as it would use the same files.
Result<void> SegmentLog::retire_now() {
  const std::lock_guard lock(jobs_->running);
  SegmentWork work = poisoned_ ? new_work() : work_to_sync();
  work.retire = ready_to_retire(true);
  auto done = do_segment_work(work, storage_, pool_, jobs_->sync_failed);
  const bool none = done.retired == 0;
  finish_job(work, std::move(done));
  if (none) return Error{ErrorCode::io_error, "cannot retire " + retired_.front().path, 0};
  return {};
}

}  // namespace lightq::log
