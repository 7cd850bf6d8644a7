/// Reads a log record by record from an offset on, remembering its place inside the batch. Layer: delivery.
#pragma once

#include <cstdint>

#include "log/log.hpp"

namespace lightq::broker {

/// Messages that were passed over because they could not be read.
struct WalkLoss {
  std::uint64_t trimmed = 0;  ///< the log had moved past them
  std::uint64_t damaged = 0;  ///< failed their checks
  Offset damaged_end;         ///< one past the last of these
};

/// A cursor. A plain value; one thread.
class RecordWalk {
 public:
  explicit RecordWalk(Offset start) : place_{start} {}

  /// The next message to be read.
  [[nodiscard]] Offset offset() const { return place_.offset; }
  /// What was passed over since construction.
  [[nodiscard]] const WalkLoss& loss() const { return loss_; }
  void seek(Offset offset) { *this = RecordWalk(offset, loss_); }

  /// Calls `take(offset, payload)` for one record after the other until it returns false (that record is read
  /// again next time), the log ends, or `bytes_max` bytes of records were taken. True if it stopped for
  /// `bytes_max`. `take` must not call a non-const method of the log.
  template <typename Take>
  bool walk(log::Log& log, std::size_t bytes_max, Take&& take) {
    std::size_t bytes = 0;
    while (bytes < bytes_max) {
      const log::ReadResult result = log.read(place_);
      if (result.outcome == log::ReadOutcome::end) return false;
      if (result.outcome != log::ReadOutcome::batch) {
        pass_over(result);
        continue;
      }
      if (!walk_batch(result.batch, bytes, bytes_max, take)) return false;
    }
    return true;
  }

 private:
  RecordWalk(Offset start, WalkLoss loss) : place_{start}, loss_(loss) {}

  void pass_over(const log::ReadResult& result) {
    auto& count = result.outcome == log::ReadOutcome::trimmed ? loss_.trimmed : loss_.damaged;
    count += distance(place_.offset, result.next);
    if (result.outcome == log::ReadOutcome::damaged) loss_.damaged_end = result.next;
    place_ = log::Place{result.next};
    in_batch_ = 0;
  }

  /// False if `take` refused a record.
  template <typename Take>
  bool walk_batch(const BatchView& batch, std::size_t& bytes, std::size_t bytes_max, Take&& take) {
    const std::byte* const start = batch.bytes().data();
    const Offset end = batch.end_offset();
    if (in_batch_ == 0 || batch_base_ != batch.base_offset()) find_in_batch(batch);
    Offset at = place_.offset;
    std::size_t position = in_batch_;
    bool taken = true;
    while (at < end && bytes < bytes_max) {
      const auto length = load_little_endian<std::uint32_t>(start + position);
      taken = take(at, ByteView(start + position + sizeof length, length));
      if (!taken) break;
      position += record_bytes(length);
      bytes += record_bytes(length);
      at = at + 1;
    }
    place_.offset = at;
    in_batch_ = at == end ? 0 : position;
    return taken;
  }

  void find_in_batch(const BatchView& batch) {
    const std::byte* const start = batch.bytes().data();
    batch_base_ = batch.base_offset();
    in_batch_ = batch_layout::header_bytes;
    for (Offset at = batch_base_; at < place_.offset; at = at + 1) {
      in_batch_ += record_bytes(load_little_endian<std::uint32_t>(start + in_batch_));
    }
  }

  log::Place place_;
  Offset batch_base_;
  std::size_t in_batch_ = 0;  // bytes from the batch's start to the next record; 0: to be found
  WalkLoss loss_;
};

}  // namespace lightq::broker
