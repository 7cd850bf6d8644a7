/// The files of segments that a log has dropped and a disk job has not retired yet. Layer: log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <lightq/base/types.hpp>

#include "log/segment/segment_pool.hpp"
#include "log/segment_log/segment_job.hpp"
#include "log/segment_log/segment_list.hpp"
#include "log/segment_log/segment_log_options.hpp"

namespace lightq::log {

/// Keeps the files of dropped segments until they may be recycled or removed, and decides when that is.
///
/// Owns the list of these files, oldest first. Retention adds to it; SegmentJobs and SegmentSync take files
/// from it for their work. A store asks for the messages in it, which a restart may have to read. Thread: the
/// log's.
///
/// Invariant: files are retired in the order of the log, so that a crash leaves no gap. Example: the segments
/// [0, 100) and [100, 250) were dropped. After `keep_from({120})`, only the first may be retired.
class DroppedSegments {
 public:
  /// Lifetime: all must outlive this object.
  DroppedSegments(const SegmentLogOptions& options, const SegmentList& segments, SegmentPool& pool)
      : options_(options), segments_(segments), pool_(pool) {}

  void add(RetiredSegment segment);
  [[nodiscard]] bool empty() const { return files_.empty(); }
  /// Returns true if so many files wait that they should not keep their descriptors.
  [[nodiscard]] bool are_many() const { return files_.size() >= unsynced_open_max; }
  /// Returns the path of the oldest file. Requires: not empty.
  [[nodiscard]] const std::string& oldest_path() const { return files_.front().path; }

  /// Keeps the files that contain something at or past `from`, because the next start may have to read them.
  /// By default none is kept. They are removed all the same if the disk is full, and the oldest are removed
  /// if all together have more than bytes_max() bytes.
  void keep_from(Offset from) { keep_from_ = from; }
  /// Keeps the files that contain something at or past `from`, without exceptions, because nothing else on
  /// disk has it yet. By default none is kept.
  void keep_all_from(Offset from) { keep_all_from_ = from; }
  /// Returns the limit for keep_from: 128 MiB or two segments, whichever is more.
  [[nodiscard]] std::uint64_t bytes_max() const;
  /// Returns the bytes of the files.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  /// Returns one past the last message in the files; 0 if there are none.
  [[nodiscard]] Offset end() const { return files_.empty() ? Offset{} : files_.back().end_offset; }

  /// Why files are retired.
  /// - in_turn: a job does it in the background.
  /// - disk_is_full: files are not kept for readers or for the next start.
  enum class Reason { in_turn, disk_is_full };
  /// Returns the files that may be retired now, oldest first. `stuck_at`: durable_offset if a sync has
  /// failed. The file that records it then stays, with all that follow it. Without them a power cut would
  /// turn the log back, and its offsets would be assigned to other messages.
  [[nodiscard]] std::vector<RetiredSegment> ready(std::optional<Offset> stuck_at,
                                                  Reason reason = Reason::in_turn) const;
  /// Returns true if files are ready that wait only for others to be retired with them.
  [[nodiscard]] bool gathers(std::optional<Offset> stuck_at) const {
    return !failed_ && !ready(stuck_at).empty();
  }
  /// Returns true if files may be retired together with other work.
  [[nodiscard]] bool may_retire(Timestamp now) const;
  /// Returns true if files should be retired even if there is no other work.
  [[nodiscard]] bool are_due(Timestamp now) const;
  /// Notes that a job to retire files was taken.
  void note_try(Timestamp now) { last_try_ = now; }
  /// Removes the first `retired` files of `work` from the list: they are recycled or removed.
  void note_retired(const SegmentWork& work, std::size_t retired);
  /// Removes all files of the pool, which wait to be recycled by the logs that dropped them. Called when a
  /// file stored beside the log found the disk full.
  void free_disk() { pool_.free_disk(); }
  /// Forgets the files, which the caller has removed.
  void forget() { files_.clear(); }

  /// The number of full or dropped segments whose descriptors may stay open.
  static constexpr std::size_t unsynced_open_max = 16;

 private:
  [[nodiscard]] const RetiredSegment* last_with_identity() const;
  [[nodiscard]] bool is_read(const RetiredSegment& segment, bool after_another) const;

  const SegmentLogOptions& options_;
  const SegmentList& segments_;
  SegmentPool& pool_;
  std::vector<RetiredSegment> files_;  // oldest first
  std::uint64_t bytes_ = 0;            // of files_
  Offset keep_from_{~std::uint64_t{0}};
  Offset keep_all_from_{~std::uint64_t{0}};
  Timestamp last_try_;
  bool failed_ = false;  // the last job could not retire all its files
};

}  // namespace lightq::log
