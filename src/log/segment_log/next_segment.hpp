/// The file that will be a log's next segment. Layer: log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <lightq/base/types.hpp>

#include "log/segment/encrypted_batches.hpp"
#include "log/segment/segment_pool.hpp"
#include "log/segment_log/dropped_segments.hpp"
#include "log/segment_log/segment_list.hpp"
#include "log/segment_log/segment_log_options.hpp"
#include "log/segment_log/segment_sync.hpp"

namespace lightq::log {

/// The numbers that identify a log's files.
struct LogIdentity {
  std::uint64_t incarnation = 0;  ///< stays the same as long as the log's files exist
  std::uint32_t batch_mask = 0;   ///< of the files that the log begins, see SegmentHeader
};

/// The size of a new segment.
/// - as_needed: as the growth of the log and the batch require.
/// - smallest: the minimum of the format, beyond all bounds of disk use, so that others can be dropped.
enum class NewSegment { as_needed, smallest };

/// Gets the files for new segments from the pool: in advance by a disk job, or when a segment begins.
///
/// Owns the prepared file. The roller takes it, SegmentJobs lets a job prepare it, retention asks for its
/// size. Thread: the log's.
///
/// Sizes grow with the log, so that a small log takes little space. Example: with first_segment_bytes of 64
/// KiB and segment_bytes of 64 MiB, the files have 64 KiB, 256 KiB, 1 MiB, 2 MiB, 4 MiB, and so on up to
/// 64 MiB. A batch of 3 MiB in a new log gets a file of 4 MiB.
class NextSegment {
 public:
  /// `encrypted`: null if the log is not encrypted. Lifetime: all must outlive this object.
  NextSegment(const SegmentLogOptions& options, SegmentPool& pool, const SegmentList& segments,
              const DroppedSegments& dropped, SegmentSync& sync, const LogIdentity& identity,
              const EncryptedBatches* encrypted)
      : options_(options),
        pool_(pool),
        segments_(segments),
        dropped_(dropped),
        sync_(sync),
        identity_(identity),
        encrypted_(encrypted) {}

  /// Returns a file with space for a batch of this size. If the disk is full, retires dropped segments first.
  /// Errors: no_space, io_error.
  Result<PreparedSegment> take(std::size_t batch_bytes, NewSegment size);
  /// Returns the size of the next file, with space for a batch of this size.
  [[nodiscard]] std::uint64_t next_bytes(std::size_t batch_bytes) const;
  /// Returns the id of the key with which the log encrypts; 0 if it does not.
  [[nodiscard]] std::uint64_t key_id() const { return encrypted_ == nullptr ? 0 : encrypted_->key_id(); }

  [[nodiscard]] bool is_prepared() const { return prepared_.has_value(); }
  /// Returns the bytes of the prepared file.
  [[nodiscard]] std::uint64_t prepared_bytes() const { return prepared_ ? prepared_->header.file_bytes : 0; }
  /// Returns true if a job should prepare the file.
  [[nodiscard]] bool is_due(Timestamp now) const;
  /// Lets `work` prepare the file.
  void add_to(SegmentWork& work, Timestamp now);
  /// Takes over the file that a job has prepared, if it has.
  void note_prepared(std::optional<PreparedSegment> prepared);
  /// Closes the prepared file.
  void forget() { prepared_.reset(); }

 private:
  [[nodiscard]] SpaceWanted wanted() const;
  [[nodiscard]] NewBytes new_bytes() const {
    return options_.prefault ? NewBytes::written : NewBytes::reserved;
  }
  void note_wait(const Result<PreparedSegment>& made, SpaceBound bound);

  const SegmentLogOptions& options_;
  SegmentPool& pool_;
  const SegmentList& segments_;
  const DroppedSegments& dropped_;
  SegmentSync& sync_;
  const LogIdentity& identity_;
  const EncryptedBatches* const encrypted_;
  std::optional<PreparedSegment> prepared_;
  bool waits_for_space_ = false;    // for a new segment; reported once, when the wait begins
  Timestamp last_try_{-1'000'000};  // to prepare a file
};

}  // namespace lightq::log
