/// Reads a log record by record from an offset, and remembers the position inside the batch. Layer: delivery.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "admission/turn_work.hpp"
#include "delivery/batch_slice.hpp"
#include "delivery/unpacked.hpp"
#include "log/log.hpp"

namespace lightq::broker {

/// Messages that were skipped because they could not be read.
struct WalkLoss {
  std::uint64_t trimmed = 0;  ///< the log no longer had them
  std::uint64_t damaged = 0;  ///< they failed their checks

  WalkLoss& operator+=(const WalkLoss& other) {
    auto& [own_trimmed, own_damaged] = *this;  // all fields: with another one this does not compile
    own_trimmed += other.trimmed;
    own_damaged += other.damaged;
    return *this;
  }
};

/// A position in a log, from which records are read one after the other. Skips unreadable messages and counts
/// them. A plain value for one thread.
class RecordReader {
 public:
  explicit RecordReader(Offset start) : place_{start} {}

  /// Returns the offset of the next message to read.
  [[nodiscard]] Offset offset() const { return place_.offset; }
  /// Returns how many messages were skipped since construction.
  [[nodiscard]] const WalkLoss& loss() const { return loss_; }
  /// Returns the sum of loss().
  [[nodiscard]] std::uint64_t lost() const { return loss_.trimmed + loss_.damaged; }
  /// Returns why the next message could not be read at the last attempt, for example for lack of memory to
  /// decompress it. It is not skipped, and can be read later.
  /// Returns null if that attempt succeeded, or none was made since a seek.
  [[nodiscard]] const Error* unavailable() const { return unavailable_.get(); }
  /// Returns true if the next message was pending at the last attempt: the store reports when it can be read.
  [[nodiscard]] bool pending() const { return pending_; }
  /// Returns the damaged ranges that were skipped since the last call.
  [[nodiscard]] std::vector<OffsetRange> take_damage() { return std::exchange(damage_, {}); }
  void seek(Offset offset) {
    place_ = log::ReadPosition{offset};
    batch_base_ = in_batch_offset_ = {};
    in_batch_ = 0;
    unavailable_.reset();
    pending_ = false;
  }
  /// Moves to `offset` as `seek` does. Within the current batch this needs no search from the batch's start.
  void move_to(Offset offset) {
    if (offset < place_.offset) return seek(offset);
    place_.offset = offset;
  }

  /// Calls `take(offset, payload)` for one record after the other. Stops when `take` returns false, the log
  /// ends, is unavailable() or pending(), or `bytes_max` bytes of records were taken. Returns true in the
  /// last case only. A refused record is read again next time. Requires: `take` calls no non-const method of
  /// the log.
  template <typename Take>
  bool walk(log::BatchLog& log, std::size_t bytes_max, Take&& take) {
    std::size_t bytes = 0;
    while (bytes < bytes_max) {
      const log::ReadResult result = read(log);
      if (result.outcome == log::ReadOutcome::end || is_waiting()) return false;
      if (result.outcome != log::ReadOutcome::batch) {
        pass_over(result.outcome, result.next);
        continue;
      }
      const auto plain = unpacked(result.batch);
      if (!plain) {
        unavailable_ = std::make_unique<Error>(plain.error());
        return false;
      }
      if (!*plain) {
        pass_over(log::ReadOutcome::damaged, result.batch.end_offset());
        continue;
      }
      if (!walk_batch(**plain, bytes, bytes_max, take)) return false;
    }
    return true;
  }

  /// Returns the next records of one batch, or nothing. It takes records before `end`, at most `records_max`,
  /// and stops once their messages have `message_bytes_max` bytes. A whole batch that fits costs nothing per
  /// record.
  /// Returns nothing if `end` or the log's end is reached, the log is unavailable() or pending(), or a limit
  /// is 0. Skips unreadable messages as `walk` does. A batch compressed by one of `codecs` stays compressed
  /// if all of it is taken.
  std::optional<BatchSlice> next_slice(log::BatchLog& log, Offset end, std::uint64_t records_max,
                                       std::uint64_t message_bytes_max, CodecSet codecs) {
    if (records_max == 0 || message_bytes_max == 0) return std::nullopt;
    while (place_.offset < end) {
      const log::ReadResult result = read(log);
      if (result.outcome == log::ReadOutcome::end || is_waiting()) return std::nullopt;
      if (result.outcome != log::ReadOutcome::batch) {
        pass_over(result.outcome, std::min(result.next, end));
        continue;
      }
      if (codecs.has(result.batch.codec()) &&
          is_taken_whole(result.batch, end, records_max, message_bytes_max))
        return whole_slice(result.batch);
      const auto plain = unpacked(result.batch);
      if (!plain) {
        unavailable_ = std::make_unique<Error>(plain.error());
        return std::nullopt;
      }
      if (*plain)
        return cut_slice(**plain, !result.batch.is_compressed(), end, records_max, message_bytes_max);
      pass_over(log::ReadOutcome::damaged, std::min(result.batch.end_offset(), end));
    }
    return std::nullopt;
  }

 private:
  log::ReadResult read(log::BatchLog& log) {
    const log::ReadResult result = log.read(place_);
    pending_ = result.outcome == log::ReadOutcome::pending;
    if (result.outcome == log::ReadOutcome::unavailable) {
      unavailable_ = std::make_unique<Error>(log.last_error());
    } else if (unavailable_ != nullptr) {
      unavailable_.reset();
    }
    return result;
  }

  [[nodiscard]] bool is_waiting() const { return pending_ || unavailable_ != nullptr; }

  void pass_over(log::ReadOutcome why, Offset to) {
    auto& count = why == log::ReadOutcome::trimmed ? loss_.trimmed : loss_.damaged;
    count += distance(place_.offset, to);
    if (why == log::ReadOutcome::damaged) note_damage({place_.offset, to});
    place_ = log::ReadPosition{to};
    in_batch_ = 0;
  }

  void note_damage(OffsetRange range) {
    if (!damage_.empty() && damage_.back().end == range.begin) {
      damage_.back().end = range.end;
    } else {
      damage_.push_back(range);
    }
  }

  /// Calls `take` for the records of one batch. Returns false if `take` refused one.
  template <typename Take>
  bool walk_batch(const BatchView& batch, std::size_t& bytes, std::size_t bytes_max, Take&& take) {
    const std::byte* const start = batch.bytes().data();
    const Offset end = batch.end_offset();
    find_in_batch(batch);
    const AttributeKinds kinds = batch.kinds();
    Offset at = place_.offset;
    std::size_t position = in_batch_;
    bool taken = true;
    while (at < end && bytes < bytes_max) {
      const auto length = load_little_endian<std::uint32_t>(start + position);
      taken = take(at, payload_of(kinds, ByteView(start + position + sizeof length, length)));
      if (!taken) break;
      position += record_bytes(length);
      bytes += record_bytes(length);
      at = at + 1;
    }
    place_.offset = at;
    stand_at(position, at == end);
    return taken;
  }

  /// Returns true if the batch is compressed and is taken whole.
  [[nodiscard]] bool is_taken_whole(const BatchView& batch, Offset end, std::uint64_t records_max,
                                    std::uint64_t message_bytes_max) const {
    return batch.is_compressed() && place_.offset == batch.base_offset() && batch.end_offset() <= end &&
           batch.record_count() <= records_max && batch.message_bytes() <= message_bytes_max;
  }

  BatchSlice whole_slice(const BatchView& batch) {
    place_.offset = batch.end_offset();
    stand_at(0, true);
    return {batch, 0, batch.record_count(), {}};
  }

  BatchSlice cut_slice(const BatchView& batch, bool as_stored, Offset end, std::uint64_t records_max,
                       std::uint64_t message_bytes_max) {
    find_in_batch(batch);
    const std::byte* const start = batch.bytes().data();
    const std::size_t begin = in_batch_;
    const std::uint64_t left = distance(place_.offset, batch.end_offset());
    const std::uint64_t most = std::min({left, records_max, distance(place_.offset, end)});
    std::uint64_t count = left;
    std::size_t position = batch.total_bytes();
    // Takes the rest of the batch without reading its records, if that fits. Otherwise reads one record after
    // the other.
    if (most < left || position - begin - record_bytes(0) * left >= message_bytes_max) {
      std::uint64_t message_bytes = 0;
      for (count = 0, position = begin; count < most && message_bytes < message_bytes_max; ++count) {
        const auto length = load_little_endian<std::uint32_t>(start + position);
        message_bytes += length;
        position += record_bytes(length);
      }
    }
    BatchSlice slice{batch, static_cast<std::uint32_t>(distance(batch.base_offset(), place_.offset)),
                     static_cast<std::uint32_t>(count), ByteView(start + begin, position - begin), as_stored};
    place_.offset = place_.offset + count;
    stand_at(position, count == left);
    return slice;
  }

  void stand_at(std::size_t position, bool at_end) {
    in_batch_ = at_end ? 0 : position;
    in_batch_offset_ = place_.offset;
  }

  void find_in_batch(const BatchView& batch) {
    if (in_batch_ == 0 || batch_base_ != batch.base_offset() || place_.offset < in_batch_offset_) {
      batch_base_ = batch.base_offset();
      in_batch_ = batch_layout::header_bytes;
      in_batch_offset_ = batch_base_;
    }
    const std::byte* const start = batch.bytes().data();
    TurnWork::add(TurnWork::record_passed * distance(in_batch_offset_, place_.offset));
    for (; in_batch_offset_ < place_.offset; in_batch_offset_ = in_batch_offset_ + 1) {
      in_batch_ += record_bytes(load_little_endian<std::uint32_t>(start + in_batch_));
    }
  }

  log::ReadPosition place_;
  Offset batch_base_;
  std::size_t in_batch_ = 0;  // bytes from the batch's start to record in_batch_offset_; 0: not known
  Offset in_batch_offset_;
  std::unique_ptr<const Error> unavailable_;
  bool pending_ = false;
  WalkLoss loss_;
  std::vector<OffsetRange> damage_;
};

}  // namespace lightq::broker
