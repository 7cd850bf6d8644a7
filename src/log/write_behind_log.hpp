/// A log that is served from memory and written behind to segment files (`queue_file`). Layer: log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "log/log.hpp"
#include "log/ring_log.hpp"
#include "log/segment_log.hpp"

namespace lightq::log {

struct WriteBehindOptions {
  RingLogOptions ring;  ///< first_offset is ignored: the segments know
  /// Writing begins when so many bytes, or for so long, have not been written: what a crash may lose.
  std::uint64_t unwritten_bytes = 16 * limits::MiB;
  std::int64_t unwritten_ms = 100;
  std::uint64_t capacity_bytes = 0;  ///< of stored_bytes; 0: no limit but the disk's
};

/// A RingLog in front of a SegmentLog, with the same offsets. `appended` means: in memory. Batches are read
/// from the ring while they are there and from the segments afterwards; the ring gives up only what is
/// written. After a restart the log is what the segments hold. A batch above the ring's capacity goes
/// straight to the segments. One thread, but for DiskJob::run.
class WriteBehindLog final : public Log {
 public:
  /// `segments`: opened, and without a capacity of its own. Nobody else uses it any more.
  WriteBehindLog(const WriteBehindOptions& options, std::unique_ptr<SegmentLog> segments);
  /// Loses what is not written: call flush before, at a clean stop.
  ~WriteBehindLog() override = default;

  AppendResult append(std::span<std::byte> batch, Timestamp now) override;
  ReadResult read(Place& place) override { return find(place, &Log::read); }
  ReadResult look(Place& place) override { return find(place, &Log::look); }
  FoundByTime first_since(Timestamp time) override;
  [[nodiscard]] Offset first_offset() const override { return segments_->first_offset(); }
  [[nodiscard]] Offset next_offset() const override { return ring_.next_offset(); }
  [[nodiscard]] Offset durable_offset() const override { return segments_->durable_offset(); }
  [[nodiscard]] std::uint64_t stored_bytes() const override {
    return segments_->stored_bytes() + unwritten_bytes_;
  }
  [[nodiscard]] std::uint64_t held_bytes() const override {
    return segments_->held_bytes() + unwritten_bytes_;
  }
  void trim(Offset /*before*/) override {}
  /// Writes everything first.
  Result<void> end_segment() override;
  void drop_before(Offset before) override;
  bool make_room(std::size_t bytes, Offset limit) override;
  /// Writes at most one chunk of about 1 MiB; ask `more_to_write` whether to call again at once.
  void maintain(Timestamp now) override;
  /// After request_flush: writes all that waits first. Where that fails, it is tried again after `maintain`
  /// has written something.
  std::unique_ptr<DiskJob> take_disk_job(Timestamp now) override;
  void request_flush() override { flush_requested_ = next_offset(); }
  [[nodiscard]] bool wants_disk_work() const override {
    return written_offset() < flush_requested_ || segments_->wants_disk_work();
  }
  /// Writes everything, then syncs.
  Result<void> flush() override;
  Result<void> close() override;
  [[nodiscard]] const Error& last_error() const override { return *last_error_; }

  /// True while a round of writing has begun and is not done.
  [[nodiscard]] bool more_to_write() const { return written_offset() < write_until_; }
  /// Everything before it is in the segments.
  [[nodiscard]] Offset written_offset() const { return segments_->next_offset(); }
  [[nodiscard]] const SegmentLog& segments() const { return *segments_; }
  [[nodiscard]] SegmentLog& segments() { return *segments_; }

 private:
  /// `way`: read or look.
  ReadResult find(Place& place, ReadResult (Log::*way)(Place&));
  [[nodiscard]] bool fits_capacity(std::size_t bytes) const;
  Result<void> write_all_behind();
  void write_for_request();
  AppendOutcome write_next();
  AppendOutcome write_up_to(Offset end, std::uint64_t bytes_max);
  AppendOutcome free_ring(std::size_t bytes);
  AppendResult append_directly(std::span<std::byte> batch, Timestamp now);

  const WriteBehindOptions options_;
  std::unique_ptr<SegmentLog> segments_;
  RingLog ring_;
  Place write_place_;  // of the next batch to write, in the ring
  Offset write_until_;
  Offset flush_requested_;               // everything before it is to be written and synced at once
  bool requested_write_failed_ = false;  // and nothing has been written since
  std::uint64_t unwritten_bytes_ = 0;
  Timestamp unwritten_since_;
  const Error* last_error_;
};

}  // namespace lightq::log
