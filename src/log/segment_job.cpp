/// What a segment log has a disk thread do. Layer: log.
#include "log/segment_job.hpp"

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "log/seeded_bug.hpp"
#include "log/segment_index_file.hpp"
#include "log/segment_log.hpp"

namespace lightq::log {

namespace {

// Losing it costs a look at the batch headers, no more.
void store_index(const SyncTarget& target, Storage& storage) {
  const IndexedSegment segment{target.header.epoch, target.header.incarnation, target.header.first_offset,
                               target.seal.end_offset, target.seal.end_position};
  static_cast<void>(SegmentIndexFile::store(storage, target.index_path, segment, *target.index));
}

using Directories = std::vector<std::unique_ptr<Directory>>;

// Before anything is synced: an error of fsync is told once, and what it meant is lost; this is no such
// error.
Result<void> open_directories(const SegmentWork& work, Storage& storage, Directories& directories) {
  for (const std::string& path : work.sync_directories) {
    auto opened = storage.open_directory(path);
    if (!opened) return opened.error();
    directories.push_back(std::move(*opened));
  }
  return {};
}

// The file of a segment without a descriptor could not be opened, or the data directory is not in its place.
bool is_not_begun(const Result<void>& written) {
  if (written.ok()) return false;
  const Error& error = written.error();
  switch (error.system_error) {
    case 0: return error.code == ErrorCode::no_space;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EACCES: return true;
    default: return false;
  }
}

// A seal is written only over data that is on disk, under names that are: whoever finds it need not scan the
// segment, and may take it for durable. Losing it costs a scan.
Result<void> sync_all(const SegmentWork& work, const Directories& directories, Storage& storage) {
  const auto write_seal = [](const SyncTarget& target) {
    static_cast<void>(
        write_all(*target.file, encode_segment_seal(target.seal, target.header), segment_seal_position));
  };
  for (const SyncTarget& target : work.targets) {
    if (target.is_full && seeded(SeededBug::seal_before_sync)) write_seal(target);
    if (seeded(SeededBug::file_unsynced)) continue;
    if (const auto synced = target.file->sync(); !synced) return synced;
  }
  for (const auto& directory : directories) {
    if (const auto synced = directory->sync(); !synced) return synced;
  }
  for (const SyncTarget& target : work.targets) {
    if (!target.is_full || seeded(SeededBug::file_unsynced)) continue;
    if (!seeded(SeededBug::seal_before_sync)) write_seal(target);
    if (target.index != nullptr) store_index(target, storage);
  }
  return {};
}

// Without a mapping it is mapped when it is needed, which costs the writer a little. One that was kept has
// pages that the system has written meanwhile, and would stop the writer at.
void map_prepared(PreparedSegment& prepared, SegmentPool& pool, SegmentViews& views) {
  if (prepared.mapping == nullptr) {
    if (!views.has_room(prepared.header.file_bytes)) pool.unmap();
    views.make_room(prepared.header.file_bytes);
    if (!views.has_room(prepared.header.file_bytes)) return;
    auto mapped = prepared.file->map_writable(prepared.header.file_bytes);
    if (!mapped) return;
    prepared.mapping = views.counted(std::move(*mapped));
  }
  prepared.mapping->prefault();
}

// Both parts of it, which share a sector. What lies between them, the seal, the writer may be writing.
Result<void> write_header_synced(File& file, const SegmentHeader& header) {
  const SegmentPage page = encode_segment_header(header);
  const ByteView first_part = ByteView(page).first(segment_seal_position);
  if (header.batch_mask == 0) return file.write_synced(first_part, 0);
  if (auto written = write_all(file, first_part, 0); !written) return written;
  return file.write_synced(ByteView(page).subspan(segment_mask_position, segment_mask_bytes),
                           segment_mask_position);
}

// The name and the header of the newest segment are enough to remember the next offset by.
Result<void> remember_next_offset(const SegmentWork& work, const Directories& directories,
                                  SegmentWorkDone& done) {
  if (auto written = write_header_synced(*work.remember, work.remembered); !written) {
    if (is_not_begun(written)) done.begun = written;
    return written;
  }
  for (const auto& directory : directories) {
    if (auto synced = directory->sync(); !synced) return synced;
  }
  return {};
}

// Up to the first that has to keep its descriptor.
std::uint64_t rest_in_order(const SegmentWork& work) {
  for (const RestTarget& target : work.rest) {
    if (!target.file->rest(target.path)) return target.number;
  }
  return work.rested;
}

// Those that are still read come last.
void retire_all(const SegmentWork& work, Storage& storage, SegmentPool& pool, SegmentWorkDone& done) {
  std::vector<FreeFile> free;
  for (const RetiredSegment& segment : work.retire) {
    if (!segment.index_path.empty()) static_cast<void>(storage.unlink(segment.index_path));
    if (!segment.is_read) free.push_back({segment.path, segment.bytes, segment.mapping, segment.header});
  }
  if (!pool.retire(free, done.retired)) return;
  for (std::size_t i = free.size(); i < work.retire.size(); ++i) {
    if (!pool.remove(work.retire[i].path, work.retire[i].bytes)) return;
    ++done.retired;
  }
}

}  // namespace

SegmentWorkDone do_segment_work(SegmentWork& work, Storage& storage, SegmentPool& pool, bool& sync_failed) {
  SegmentWorkDone done;
  // First, for it makes room under the cap; and then what the writer may be waiting for.
  work.unmap.clear();
  if (work.name != nullptr) done.begun = work.name->give(storage);
  Directories directories;
  if (done.begun) done.begun = open_directories(work, storage, directories);
  if (!done.begun) {  // without the name nothing is durable, and the next file has no place
    if (work.sync) done.sync = done.begun;
    if (work.sync || work.remember != nullptr) done.remembered = done.begun;
    return done;
  }
  if (work.prepare_bytes != 0) {
    auto prepared = pool.prepare(work.prepare_path, work.prepare_bytes, work.incarnation, work.prepare_space,
                                 work.prepare_new, work.key_id, RecycledFile::moves, work.batch_mask);
    if (prepared) done.prepared = std::move(*prepared);
    if (done.prepared && work.map_prepared != nullptr) map_prepared(*done.prepared, pool, *work.map_prepared);
  }
  done.rested = rest_in_order(work);
  if (seeded(SeededBug::retire_before_sync)) retire_all(work, storage, pool, done);
  if (work.sync && sync_failed && !seeded(SeededBug::sync_retried)) {
    done.sync = Error{ErrorCode::io_error, "an earlier sync has failed", 0};
  } else if (work.sync) {
    done.sync = sync_all(work, directories, storage);
    sync_failed = !done.sync;
  }
  done.remembered = done.sync;
  const bool remember = work.remember != nullptr && !seeded(SeededBug::remember_skipped);
  if (done.sync && remember) done.remembered = remember_next_offset(work, directories, done);
  if (!done.remembered && done.begun) sync_failed = true;
  // Only now: the segment that is then the oldest remembers the next offset, so it must be on disk before its
  // predecessor goes. In order: a crash in between leaves the newest, without a gap.
  if (done.remembered && !seeded(SeededBug::retire_before_sync)) retire_all(work, storage, pool, done);
  return done;
}

SegmentJob::SegmentJob(SegmentLog& log, std::shared_ptr<SegmentJobState> state, SegmentWork work,
                       Storage& storage, SegmentPool& pool)
    : log_(log), state_(std::move(state)), work_(std::move(work)), storage_(storage), pool_(pool) {
  state_->is_out = true;
}

SegmentJob::~SegmentJob() {
  if (state_ != nullptr) state_->is_out = false;
}

void SegmentJob::run() {
  const std::lock_guard lock(state_->running);
  if (state_->closed) return;
  done_ = do_segment_work(work_, storage_, pool_, state_->sync_failed);
}

void SegmentJob::finish() {
  if (done_) log_.finish_job(work_, std::move(*done_));
  // The next may be taken while this object still lives somewhere.
  std::exchange(state_, nullptr)->is_out = false;
}

}  // namespace lightq::log
