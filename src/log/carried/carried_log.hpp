/// Carried records in files: a segment log of their own. Layer: log. docs/log_format.md, "Carried messages".
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include <lightq/base/batch.hpp>
#include <lightq/base/limits.hpp>

#include "log/carried/carried_records.hpp"
#include "log/segment_log/segment_log.hpp"
#include "log/subdirectories.hpp"

namespace lightq::log {

/// Keeps copies in a SegmentLog in the directory `carried` of the log that had the messages. The payload of
/// each of its records is one copy.
///
/// Owns that log. It is opened by the first copy, so a topic that carries nothing has no directory and no
/// memory for it. Removed copies stay in the files until these are dropped: when no copy is left, all
/// segments; while more than half of the bytes belong to removed copies, the oldest segment, after its other
/// copies were appended again. A store calls it. Thread: one at a time, except that DiskJob::run may be on
/// another.
///
/// Invariant: the files of a dropped segment stay until all copies that were appended before are durable.
/// The owner does the same with the files of the main log: see undurable_from().
/// Example: the messages 3 and 7 are copied, then 3 is removed. The log has both records. A start finds both
/// and keeps 3 until its owner removes it again.
class CarriedLog final : public CarriedRecords {
 public:
  /// The name of the directory, in the directory of the main log.
  static constexpr const char* directory_name = carried_directory_name;
  /// The size of the files in bytes, except for longer messages.
  static constexpr std::uint64_t segment_bytes = 4 * limits::MiB;

  /// Opens the copies that are stored. `options`: of the log; it sets the sizes of segments and the directory
  /// name itself: `options.directory` is that of the main log. `first`: the main log's first offset; copies
  /// of messages that it still has are forgotten. `bytes_max`: the most bytes(); 0: no limit.
  /// `messages_max`: the most copies, because each takes memory; a start loads all that the files have.
  /// Lifetime: `storage` and `pool` outlive it. Errors: as SegmentLog::open.
  static Result<std::unique_ptr<CarriedLog>> open(SegmentLogOptions options, std::uint64_t bytes_max,
                                                  Offset first, Storage& storage, SegmentPool& pool,
                                                  Timestamp now,
                                                  std::size_t messages_max = limits::carried_messages_max);

  [[nodiscard]] const OffsetSet& offsets() const override { return offsets_; }
  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }
  [[nodiscard]] std::uint64_t held_bytes() const override { return log_ == nullptr ? 0 : log_->held_bytes(); }
  bool add(ByteView record) override;
  void remove(OffsetRange range) override;
  [[nodiscard]] const Error& last_error() const override { return last_error_; }

  /// Returns the lowest offset of a copy that would not survive a power cut; the highest number if all would.
  /// Files of the main log with messages from there on must not be removed.
  [[nodiscard]] Offset undurable_from();
  /// Moves copies, and drops segments. Does a limited amount of work. Called about every 100 ms.
  void maintain(Timestamp now);
  /// See Log::take_disk_job.
  std::unique_ptr<DiskJob> take_disk_job(Timestamp now);
  [[nodiscard]] bool wants_work() const { return log_ != nullptr && log_->wants_disk_work(); }
  /// Makes all copies durable before it returns.
  Result<void> flush();
  Result<void> close();
  /// Removes all files and the directory. Requires: only destruction follows.
  Result<void> destroy();
  /// Returns the log, or null if there is none yet.
  [[nodiscard]] const SegmentLog* log() const { return log_.get(); }
  /// Changes the most bytes(); 0: no limit. Copies that are there stay.
  void set_bytes_max(std::uint64_t bytes) { bytes_max_ = bytes; }

 private:
  /// The place of a copy.
  struct Entry {
    Offset at;  ///< in log_
    std::uint64_t bytes = 0;
  };
  /// Copies that were added since a disk job was taken, or before.
  struct Unsynced {
    Offset end;   ///< in log_: behind the last of them
    Offset from;  ///< the lowest offset
  };

  CarriedLog(SegmentLogOptions options, std::uint64_t bytes_max, std::size_t messages_max, Storage& storage,
             SegmentPool& pool)
      : options_(std::move(options)),
        bytes_max_(bytes_max),
        messages_max_(messages_max),
        storage_(storage),
        pool_(pool) {}

  ReadResult read(Offset offset) override;
  bool open_log(Timestamp now);
  void load(Offset first);
  bool find_copies(Offset first);
  [[nodiscard]] bool has_room_for(const BatchView& copy);
  bool append(ByteView record, Offset offset);
  void move_oldest();
  void drop_before(Offset before);
  void settle();

  const SegmentLogOptions options_;
  std::uint64_t bytes_max_;
  const std::size_t messages_max_;
  Storage& storage_;
  SegmentPool& pool_;
  std::unique_ptr<SegmentLog> log_;
  std::map<std::uint64_t, Entry> entries_;  // by offset
  OffsetSet offsets_;
  std::uint64_t bytes_ = 0;
  std::deque<Unsynced> unsynced_;  // at most two: before and after the last disk job was taken
  bool job_taken_ = false;         // since the last entry of unsynced_ was added
  Offset kept_until_;              // dropped files stay until log_ is durable up to here
  ReadPosition move_place_;        // in log_: everything before it has moved
  BatchBuilder builder_;
  std::vector<std::byte> moved_;
  Error last_error_;
};

}  // namespace lightq::log
