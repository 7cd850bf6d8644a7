/// Composes the disk jobs of a segment log. Layer: log.
#include "log/segment_log/segment_jobs.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace lightq::log {

namespace {

constexpr std::uint64_t released_at_once_min = 8;  // for fewer, a job would cost more than it gains

}  // namespace

// Returns true if any work is due except retiring; such a job also takes the dropped segments gathered so
// far.
bool SegmentJobs::has_other_work(Timestamp now) const {
  return parts_.sync.is_due(now) || parts_.next.is_due(now) || parts_.sync.name_is_due(now) ||
         parts_.descriptors.may_release(released_at_once_min, parts_.directory.rolls()) ||
         !parts_.mappings.empty();
}

bool SegmentJobs::is_due(Timestamp now) const {
  if (is_out()) return false;
  return has_other_work(now) ||
         (parts_.dropped.are_due(now) && !parts_.dropped.ready(parts_.sync.stuck_at()).empty());
}

bool SegmentJobs::is_wanted() const {
  return parts_.sync.is_wanted() || !parts_.dropped.ready(parts_.sync.stuck_at()).empty();
}

std::unique_ptr<DiskJob> SegmentJobs::take(Timestamp now) {
  if (is_out()) return nullptr;
  const bool other_work = has_other_work(now);
  const bool to_retire = parts_.dropped.are_due(now) || (other_work && parts_.dropped.may_retire(now));
  auto retire = to_retire ? parts_.dropped.ready(parts_.sync.stuck_at()) : std::vector<RetiredSegment>{};
  SegmentWork work = parts_.sync.is_due(now) ? parts_.sync.begin(now) : parts_.directory.new_work();
  work = parts_.sync.before_retiring(retire, std::move(work), now);
  work.retire = std::move(retire);
  if (!work.retire.empty()) parts_.dropped.note_try(now);
  if (parts_.next.is_due(now)) parts_.next.add_to(work, now);
  const bool name = parts_.sync.name_is_due(now);
  work.unmap = parts_.mappings.take();
  const std::uint64_t releases_min = other_work || !work.retire.empty() ? 1 : released_at_once_min;
  // Files that are synced need no descriptor afterwards.
  if (!work.sync && parts_.descriptors.may_release(releases_min, parts_.directory.rolls()))
    parts_.descriptors.add_to(work);
  const bool has_work = work.sync || !work.retire.empty() || work.prepare_bytes != 0 || !work.unmap.empty() ||
                        !work.releases.empty() || name;
  if (!has_work) return nullptr;
  parts_.sync.note_taken(now);
  return std::make_unique<SegmentJob>(*this, parts_.sync.job_state(), std::move(work), storage_, pool_);
}

std::unique_ptr<DiskJob> SegmentJobs::take_flush(Timestamp now) {
  if (is_out()) return nullptr;
  SegmentWork work = parts_.sync.begin(now);
  parts_.sync.note_taken(now);
  return std::make_unique<SegmentJob>(*this, parts_.sync.job_state(), std::move(work), storage_, pool_);
}

void SegmentJobs::finish(const SegmentWork& work, SegmentWorkDone done) {
  parts_.descriptors.note_released(work, done.released, parts_.directory.rolls());
  parts_.dropped.note_retired(work, done.retired);
  parts_.next.note_prepared(std::move(done.prepared));
  parts_.sync.finish(work, done);
}

}  // namespace lightq::log
