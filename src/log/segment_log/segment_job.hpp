/// The work that a segment log gives to a disk thread: sync, seal, retire old files, prepare the next one.
/// Layer: log.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "log/format/segment_node.hpp"
#include "log/format/unnamed_segment.hpp"
#include "log/log.hpp"
#include "log/segment/segment_pool.hpp"

namespace lightq::log {

class SegmentJobs;

/// The file of a dropped segment, to be recycled or removed.
struct RetiredSegment {
  std::string path;
  std::uint64_t bytes = 0;
  Offset end_offset;
  std::string index_path;                    ///< removed with the segment; empty: it has no index file
  std::shared_ptr<WritableMapping> mapping;  ///< recycled or removed together with the file
  std::shared_ptr<File> file;                ///< closed by the job, because closing may take a while
  bool is_read = false;               ///< the segment still has readers, so its file is removed, not recycled
  std::shared_ptr<SegmentNode> node;  ///< set while the segment waits for its readers; null if it has none
  bool has_header = true;             ///< the header is sound, so it identifies the log
  std::optional<SegmentHeader> header;  ///< the header, if this process has written it
};

/// A file to sync. A full segment gets its seal after the sync.
struct SyncTarget {
  std::uint64_t number = 0;    ///< the segment's number, see SegmentList
  std::uint64_t position = 0;  ///< the end of the data when the job was taken
  std::shared_ptr<File> file;
  bool is_full = false;
  SegmentHeader header;
  SegmentSeal seal;
  std::string index_path;                     ///< the path for its index file
  std::shared_ptr<const SegmentIndex> index;  ///< stored beside the segment when it is sealed; may be null
};

/// A full segment's file that should give up its descriptor, see File::release_descriptor.
struct ReleaseTarget {
  std::uint64_t number = 0;  ///< the segment's number, see SegmentList
  std::shared_ptr<File> file;
  std::string path;
};

/// The tasks of one job. Self-contained: the log is not needed while they are executed.
struct SegmentWork {
  std::shared_ptr<PendingName> name;  ///< not null: rename the segment before all else
  std::vector<RetiredSegment> retire;
  bool sync = false;
  std::vector<SyncTarget> targets;
  std::vector<std::string> sync_directories;
  std::uint64_t rolls = 0;  ///< the directory changes that the sync covers, see LogDirectory::rolls
  Offset durable;           ///< the log's durable_offset once all targets are synced
  std::uint64_t prepare_bytes = 0;
  std::string prepare_path;
  NewBytes prepare_new = NewBytes::reserved;
  SegmentViews* map_prepared = nullptr;  ///< not null: map the prepared file too, and count the mapping there
  /// Not null: instead of a sync, make this file's header durable before anything is retired. It restores the
  /// log's next offset at the next start.
  std::shared_ptr<File> remember;
  SegmentHeader remembered;
  /// Unmapped by the job, because unmapping may take a while.
  std::vector<std::shared_ptr<WritableMapping>> unmap;
  std::vector<ReleaseTarget> releases;  ///< in the order of the segments
  std::uint64_t released = 0;  ///< one past the last segment that was checked for `release_descriptor`
  std::uint64_t incarnation = 0;
  std::uint64_t key_id = 0;  ///< of the prepared file
  std::uint32_t batch_mask = 0;
  SpaceWanted prepare_space;
};

/// The results of one job.
struct SegmentWorkDone {
  /// An error if the segment could not be renamed or a directory not be opened. Then nothing was synced or
  /// retired, and nothing is lost; the job may succeed later.
  Result<void> begun;
  Result<void> sync;
  Result<void> remembered;  ///< result of SegmentWork::remember; without that, equal to `sync`
  std::size_t retired = 0;  ///< how many of SegmentWork::retire are recycled or removed
  std::optional<PreparedSegment> prepared;
  std::uint64_t released =
      0;  ///< the first segment that still has its descriptor; only valid with SegmentWork::releases
};

/// Shared by a log and its job. The job may outlive the log.
struct SegmentJobState {
  std::mutex running;        ///< locked while files are synced, sealed or retired
  bool closed = false;       ///< guarded by `running`: the log is destroyed, and no longer owns its files
  bool sync_failed = false;  ///< guarded by `running`; kept because the system reports a sync error only once
  std::atomic<bool> is_out = false;  ///< a job was taken and is not finished
};

/// Executes `work`. Requires: the caller has locked `running`. Releases the mappings in `work.unmap`.
SegmentWorkDone do_segment_work(SegmentWork& work, Storage& storage, SegmentPool& pool, bool& sync_failed);

/// One job of a SegmentLog: `run` on a disk thread, then `finish` on the log's thread.
class SegmentJob final : public DiskJob {
 public:
  SegmentJob(SegmentJobs& jobs, std::shared_ptr<SegmentJobState> state, SegmentWork work, Storage& storage,
             SegmentPool& pool);
  ~SegmentJob() override;
  void run() override;
  void finish() override;

 private:
  SegmentJobs& jobs_;
  std::shared_ptr<SegmentJobState> state_;
  SegmentWork work_;
  Storage& storage_;
  SegmentPool& pool_;
  std::optional<SegmentWorkDone> done_;
};

}  // namespace lightq::log
