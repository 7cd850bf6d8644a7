/// What a segment log has a disk thread do: sync, seal, retire old files, prepare the next one. Layer: log.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "log/log.hpp"
#include "log/segment_node.hpp"
#include "log/segment_pool.hpp"
#include "log/unnamed_segment.hpp"

namespace lightq::log {

class SegmentLog;

/// A dropped segment's file.
struct RetiredSegment {
  std::string path;
  std::uint64_t bytes = 0;
  Offset end_offset;
  std::string index_path;                    ///< to be removed; empty: it has none
  std::shared_ptr<WritableMapping> mapping;  ///< goes with the file
  std::shared_ptr<File> file;                ///< to be closed where that may take a while
  bool is_read = false;                      ///< somebody still reads it: it is removed, not recycled
  std::shared_ptr<SegmentNode> node;         ///< while it waits for its readers; null where there are none
  bool has_header = true;                    ///< a sound one: it says which log this is
  std::optional<SegmentHeader> header;       ///< that this process has written, else nothing
};

/// A file to sync. If its segment is full, it then gets its seal.
struct SyncTarget {
  std::uint64_t number = 0;    ///< the segment's, see SegmentLog
  std::uint64_t position = 0;  ///< what had been written when the work was put together
  std::shared_ptr<File> file;
  bool is_full = false;
  SegmentHeader header;
  SegmentSeal seal;
  std::string index_path;                     ///< where its index belongs
  std::shared_ptr<const SegmentIndex> index;  ///< to be written beside it when it is sealed; may be null
};

/// A full segment's file that is to do without a descriptor, see File::rest.
struct RestTarget {
  std::uint64_t number = 0;  ///< the segment's, see SegmentLog
  std::shared_ptr<File> file;
  std::string path;
};

/// What there is to do. Self-contained: needs nothing of the log while it is done.
struct SegmentWork {
  std::shared_ptr<PendingName> name;  ///< not null: to be given before all else
  std::vector<RetiredSegment> retire;
  bool sync = false;
  std::vector<SyncTarget> targets;
  std::vector<std::string> sync_directories;
  std::uint64_t rolls = 0;  ///< changes of the directory that its sync covers
  Offset durable;           ///< what will be durable when all of it was synced
  std::uint64_t prepare_bytes = 0;
  std::string prepare_path;
  NewBytes prepare_new = NewBytes::reserved;
  SegmentViews* map_prepared = nullptr;  ///< not null: the prepared file is mapped too, and counted there
  /// Not null: instead of a sync, this file's header is made durable before anything is retired, so that the
  /// log's next offset is remembered.
  std::shared_ptr<File> remember;
  SegmentHeader remembered;
  std::vector<std::shared_ptr<WritableMapping>> unmap;  ///< let go of here: that takes a while
  std::vector<RestTarget> rest;                         ///< in order
  std::uint64_t rested = 0;  ///< the number behind those that were looked at for it
  std::uint64_t incarnation = 0;
  std::uint64_t key_id = 0;  ///< of the prepared file
  std::uint32_t batch_mask = 0;
  SpaceWanted prepare_space;
};

/// What came of it.
struct SegmentWorkDone {
  /// Where the segment's name could not be given or a directory not be opened, nothing was synced or retired,
  /// and nothing can have been lost; the same job may succeed later.
  Result<void> begun;
  Result<void> sync;
  Result<void> remembered;  ///< SegmentWork::remember; where there is none, as `sync`
  std::size_t retired = 0;  ///< how many of SegmentWork::retire
  std::optional<PreparedSegment> prepared;
  std::uint64_t rested =
      0;  ///< the first segment that has its descriptor still; where there is SegmentWork::rest
};

/// Shared by a log and its job, which may outlive it.
struct SegmentJobState {
  std::mutex running;                ///< held while files are synced, sealed or retired
  bool closed = false;               ///< guarded by `running`: the log is gone, its files are not its own
  bool sync_failed = false;          ///< guarded by `running`; an error is told only once by the system
  std::atomic<bool> is_out = false;  ///< a job is, and is not finished
};

/// Does the work; `running` is held by the caller. What is to be unmapped is let go of.
SegmentWorkDone do_segment_work(SegmentWork& work, Storage& storage, SegmentPool& pool, bool& sync_failed);

/// One round of work for a disk thread.
class SegmentJob final : public DiskJob {
 public:
  SegmentJob(SegmentLog& log, std::shared_ptr<SegmentJobState> state, SegmentWork work, Storage& storage,
             SegmentPool& pool);
  ~SegmentJob() override;
  void run() override;
  void finish() override;

 private:
  SegmentLog& log_;
  std::shared_ptr<SegmentJobState> state_;
  SegmentWork work_;
  Storage& storage_;
  SegmentPool& pool_;
  std::optional<SegmentWorkDone> done_;
};

}  // namespace lightq::log
