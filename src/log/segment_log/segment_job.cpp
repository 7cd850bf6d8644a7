/// Executes a segment log's work on a disk thread. Layer: log.
#include "log/segment_log/segment_job.hpp"

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "log/format/segment_index_file.hpp"
#include "log/segment_log/segment_jobs.hpp"

namespace lightq::log {

namespace {

// Errors are ignored: without an index file, readers scan the batch headers.
void store_index(const SyncTarget& target, Storage& storage) {
  const IndexedSegment segment{target.header.epoch, target.header.incarnation, target.header.first_offset,
                               target.seal.end_offset, target.seal.end_position};
  static_cast<void>(SegmentIndexFile::store(storage, target.index_path, segment, *target.index));
}

using Directories = std::vector<std::unique_ptr<Directory>>;

// Opens the directories before anything is synced. An error here loses no data, unlike an error of fsync,
// which the system reports only once.
Result<void> open_directories(const SegmentWork& work, Storage& storage, Directories& directories) {
  for (const std::string& path : work.sync_directories) {
    auto opened = storage.open_directory(path);
    if (!opened) return opened.error();
    directories.push_back(std::move(*opened));
  }
  return {};
}

// Returns true if the work failed before it began. Either the file of a segment without a descriptor could
// not be opened, or the data directory is missing or was replaced.
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

// Writes a seal only after the segment's data and the directory entries are on disk. A process that finds the
// seal can then skip the scan, and take the segment for durable. A lost seal costs a scan.
Result<void> sync_all(const SegmentWork& work, const Directories& directories, Storage& storage) {
  const auto write_seal = [](const SyncTarget& target) {
    static_cast<void>(
        write_all(*target.file, encode_segment_seal(target.seal, target.header), segment_seal_position));
  };
  for (const SyncTarget& target : work.targets) {
    if (const auto synced = target.file->sync(); !synced) return synced;
  }
  for (const auto& directory : directories) {
    if (const auto synced = directory->sync(); !synced) return synced;
  }
  for (const SyncTarget& target : work.targets) {
    if (!target.is_full) continue;
    write_seal(target);
    if (target.index != nullptr) store_index(target, storage);
  }
  return {};
}

// Maps the prepared file, so that the writer does not have to. A failure costs the writer a little time
// later. Also makes the pages of a recycled mapping present: the system has written some of them meanwhile,
// and the writer would wait at each.
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

// Writes both parts of the header, which share a disk sector. It leaves out the seal between them, because
// the writer may be writing it at the same time.
Result<void> write_header_synced(File& file, const SegmentHeader& header) {
  const SegmentPage page = encode_segment_header(header);
  const ByteView first_part = ByteView(page).first(segment_seal_position);
  if (header.batch_mask == 0) return file.write_synced(first_part, 0);
  if (auto written = write_all(file, first_part, 0); !written) return written;
  return file.write_synced(ByteView(page).subspan(segment_mask_position, segment_mask_bytes),
                           segment_mask_position);
}

// Makes the name and the header of the newest segment durable. These two are enough to restore the next
// offset.
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

// Closes descriptors in order, up to the first file that has to keep its own. Returns the number of that
// segment, or `work.released`.
std::uint64_t release_in_order(const SegmentWork& work) {
  for (const ReleaseTarget& target : work.releases) {
    if (!target.file->release_descriptor(target.path)) return target.number;
  }
  return work.released;
}

// Segments that still have readers are at the end of the list, and are removed instead of recycled.
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
  // Unmap first, because that frees space under the cap for mapped memory. Then give the name, for which the
  // writer may be waiting.
  work.unmap.clear();
  if (work.name != nullptr) done.begun = work.name->give(storage);
  Directories directories;
  if (done.begun) done.begun = open_directories(work, storage, directories);
  if (!done.begun) {  // without the name nothing is durable, and the next file's name is still in use
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
  done.released = release_in_order(work);
  if (work.sync && sync_failed) {
    done.sync = Error{ErrorCode::io_error, "an earlier sync has failed", 0};
  } else if (work.sync) {
    done.sync = sync_all(work, directories, storage);
    sync_failed = !done.sync;
  }
  done.remembered = done.sync;
  if (done.sync && work.remember != nullptr) done.remembered = remember_next_offset(work, directories, done);
  if (!done.remembered && done.begun) sync_failed = true;
  // Retire only now. After this the oldest segment is the one that restores the next offset, so it must be on
  // disk first. In order: a crash in between leaves the newest segments, without a gap.
  if (done.remembered) retire_all(work, storage, pool, done);
  return done;
}

SegmentJob::SegmentJob(SegmentJobs& jobs, std::shared_ptr<SegmentJobState> state, SegmentWork work,
                       Storage& storage, SegmentPool& pool)
    : jobs_(jobs), state_(std::move(state)), work_(std::move(work)), storage_(storage), pool_(pool) {
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
  if (done_) jobs_.finish(work_, std::move(*done_));
  // Allows the next job to be taken even if this object still exists for a while.
  std::exchange(state_, nullptr)->is_out = false;
}

}  // namespace lightq::log
