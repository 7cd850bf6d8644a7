/// A log that is read from memory and written behind to a durable log (`queue_file`). Layer: log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "log/log.hpp"
#include "log/memory/ring_log.hpp"

namespace lightq::log {

struct WriteBehindOptions {
  RingLogOptions ring;  ///< first_offset is ignored and taken from the tail
  /// Writing begins once this many bytes, or batches for this long, are unwritten. A crash loses at most
  /// about that.
  std::uint64_t unwritten_bytes = 16 * limits::MiB;
  std::int64_t unwritten_ms = 100;
  std::uint64_t capacity_bytes = 0;  ///< limit for stored_bytes; 0: only the disk limits it
};

/// A RingLog in front of a durable log, the tail; both use the same offsets. `appended` means that the batch
/// is in memory.
///
/// Owns the ring and the tail. The tail may be any Log that stores messages durably, for example a
/// SegmentLog. Batches are read from the ring while they are there, and from the tail afterwards. The ring
/// drops only batches that are written. After a restart the log has the messages of the tail. A batch larger
/// than the ring is appended to the tail directly. Called by the store of a topic. Thread: one at a time,
/// except that DiskJob::run may be on another.
///
/// Invariant: first_offset <= written_offset <= next_offset. Example: the tail has the offsets 0 to 99, the
/// ring 60 to 149, and written_offset is 100. A read of 70 is answered from the ring, a read of 30 from the
/// tail. The ring may drop 60 to 99.
class WriteBehindLog final : public Log {
 public:
  /// Takes over `tail`, which must be open and have no capacity limit of its own. Requires: the tail keeps
  /// the append times of the batches, and does not use the highest bit of a hint.
  WriteBehindLog(const WriteBehindOptions& options, std::unique_ptr<Log> tail);
  /// Loses the unwritten batches. For a clean stop, call `flush` first.
  ~WriteBehindLog() override = default;

  AppendResult append(std::span<std::byte> batch, Timestamp now) override;
  ReadResult read(ReadPosition& place) override { return find(place, &Log::read); }
  ReadResult read_header(ReadPosition& place) override { return find(place, &Log::read_header); }
  FoundByTime first_since(Timestamp time) override;
  [[nodiscard]] Offset first_offset() const override { return tail_->first_offset(); }
  [[nodiscard]] Offset next_offset() const override { return ring_.next_offset(); }
  [[nodiscard]] Offset durable_offset() const override { return tail_->durable_offset(); }
  [[nodiscard]] std::uint64_t stored_bytes() const override {
    return tail_->stored_bytes() + unwritten_bytes_;
  }
  [[nodiscard]] std::uint64_t held_bytes() const override { return tail_->held_bytes() + unwritten_bytes_; }
  void trim(Offset /*before*/) override {}
  /// Writes all batches to the tail first.
  Result<void> end_segment() override;
  [[nodiscard]] Offset last_part_begin() const override { return tail_->last_part_begin(); }
  void drop_before(Offset before) override;
  bool make_room(std::size_t bytes, Offset limit) override;
  /// Writes all batches to the tail first.
  bool drop_first(Offset limit, std::size_t bytes) override;
  /// Writes at most about 1 MiB. If `more_to_write` is true afterwards, call again immediately.
  void maintain(Timestamp now) override;
  /// After request_flush, writes all unwritten batches first. If that fails, it tries again after a later
  /// write, for example by `maintain`, has succeeded.
  std::unique_ptr<DiskJob> take_disk_job(Timestamp now) override;
  [[nodiscard]] bool job_is_out() const override { return tail_->job_is_out(); }
  void request_flush() override { flush_requested_ = next_offset(); }
  [[nodiscard]] bool wants_disk_work() const override {
    return written_offset() < flush_requested_ || tail_->wants_disk_work();
  }
  /// Writes all unwritten batches, then syncs.
  Result<void> flush() override;
  Result<void> close() override;
  [[nodiscard]] const Error& last_error() const override { return *last_error_; }

  /// Changes the limit of stored_bytes; 0: only the disk limits it.
  void set_capacity(std::uint64_t bytes) { options_.capacity_bytes = bytes; }
  /// Returns true while a round of writing has begun and is not finished.
  [[nodiscard]] bool more_to_write() const { return written_offset() < write_until_; }
  /// Returns the offset before which everything is in the tail.
  [[nodiscard]] Offset written_offset() const { return tail_->next_offset(); }

 private:
  /// Reads with `way`, which is Log::read or Log::read_header.
  ReadResult find(ReadPosition& place, ReadResult (Log::*way)(ReadPosition&));
  [[nodiscard]] bool fits_capacity(std::size_t bytes) const;
  Result<void> write_all_behind();
  void write_for_request();
  AppendOutcome write_next();
  AppendOutcome write_up_to(Offset end, std::uint64_t bytes_max);
  AppendOutcome free_ring(std::size_t bytes);
  AppendResult append_directly(std::span<std::byte> batch, Timestamp now);

  WriteBehindOptions options_;
  std::unique_ptr<Log> tail_;
  RingLog ring_;
  ReadPosition write_place_;  // the next batch to write, in the ring
  Offset write_until_;
  Offset flush_requested_;               // everything before it should be written and synced immediately
  bool requested_write_failed_ = false;  // writing for a request failed, and nothing was written since
  std::uint64_t unwritten_bytes_ = 0;
  Timestamp unwritten_since_;
  const Error* last_error_;
};

}  // namespace lightq::log
