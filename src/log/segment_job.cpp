/// What a segment log has a disk thread do. Layer: log.
#include "log/segment_job.hpp"

#include <utility>

#include "log/seeded_bug.hpp"
#include "log/segment_log.hpp"

namespace lightq::log {

namespace {

// A seal is written only over data that is on disk: whoever finds it need not scan the segment. Losing it
// costs a scan.
Result<void> sync_all(const SegmentWork& work, Storage& storage) {
  const auto write_seal = [](const SyncTarget& target) {
    static_cast<void>(
        write_all(*target.file, encode_segment_seal(target.seal, target.header), segment_seal_position));
  };
  for (const SyncTarget& target : work.targets) {
    if (target.is_full && seeded(SeededBug::seal_before_sync)) write_seal(target);
    if (seeded(SeededBug::file_unsynced)) continue;
    if (const auto synced = target.file->sync(); !synced) return synced;
    if (target.is_full && !seeded(SeededBug::seal_before_sync)) write_seal(target);
  }
  for (const std::string& directory : work.sync_directories) {
    if (const auto synced = storage.sync_directory(directory); !synced) return synced;
  }
  return {};
}

void retire_all(const SegmentWork& work, SegmentPool& pool, SegmentWorkDone& done) {
  for (const RetiredSegment& segment : work.retire) {
    if (!pool.retire(segment.path, segment.bytes)) break;
    ++done.retired;
  }
}

}  // namespace

SegmentWorkDone do_segment_work(const SegmentWork& work, Storage& storage, SegmentPool& pool,
                                bool& sync_failed) {
  SegmentWorkDone done;
  if (seeded(SeededBug::retire_before_sync)) retire_all(work, pool, done);
  if (work.sync && sync_failed && !seeded(SeededBug::sync_retried)) {
    done.sync = Error{ErrorCode::io_error, "an earlier sync has failed", 0};
  } else if (work.sync) {
    done.sync = sync_all(work, storage);
    sync_failed = !done.sync;
  }
  // Only now: the segment that is then the oldest remembers the next offset, so it must be on disk before its
  // predecessor goes. In order: a crash in between leaves the newest, without a gap.
  if (done.sync && !seeded(SeededBug::retire_before_sync)) retire_all(work, pool, done);
  if (work.prepare_bytes != 0) {
    auto prepared =
        pool.prepare(work.prepare_path, work.prepare_bytes, work.incarnation, work.disk_free_floor_bytes);
    if (prepared) done.prepared = std::move(*prepared);
  }
  return done;
}

SegmentJob::SegmentJob(SegmentLog& log, std::shared_ptr<SegmentJobState> state, SegmentWork work,
                       Storage& storage, SegmentPool& pool)
    : log_(log), state_(std::move(state)), work_(std::move(work)), storage_(storage), pool_(pool) {
  state_->is_out = true;
}

SegmentJob::~SegmentJob() {
  state_->is_out = false;
}

void SegmentJob::run() {
  const std::lock_guard lock(state_->running);
  if (state_->closed) return;
  done_ = do_segment_work(work_, storage_, pool_, state_->sync_failed);
}

void SegmentJob::finish() {
  if (done_) log_.finish_job(work_, std::move(*done_));
}

}  // namespace lightq::log
