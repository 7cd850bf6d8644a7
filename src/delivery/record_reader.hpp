/// Reads a log in slices from an offset on, and remembers the position inside the batch. Layer: delivery.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "admission/turn_work.hpp"
#include "delivery/batches/next_slice.hpp"
#include "delivery/batches/unpacked.hpp"
#include "delivery/expiry/drop_counts.hpp"
#include "delivery/expiry/expired_runs.hpp"
#include "delivery/state/delivery_context.hpp"
#include "log/log.hpp"

namespace lightq::broker {

/// Messages that were skipped because they could not be read.
struct ReadLoss {
  std::uint64_t trimmed = 0;  ///< messages that the log no longer had
  std::uint64_t damaged = 0;  ///< messages that failed their checks

  ReadLoss& operator+=(const ReadLoss& other) {
    auto& [own_trimmed, own_damaged] = *this;  // names all fields: with another field this does not compile
    own_trimmed += other.trimmed;
    own_damaged += other.damaged;
    return *this;
  }
};

/// A position in a log, from which messages are read in slices. Skips unreadable messages and counts them.
/// A plain value for one thread.
class RecordReader {
 public:
  explicit RecordReader(Offset start) : place_{start} {}

  /// Returns the offset of the next message to read.
  [[nodiscard]] Offset offset() const { return place_.offset; }
  /// Returns how many messages were skipped since construction.
  [[nodiscard]] const ReadLoss& loss() const { return loss_; }
  /// Returns the sum of loss().
  [[nodiscard]] std::uint64_t lost() const { return loss_.trimmed + loss_.damaged; }
  /// Returns why the next message could not be read at the last attempt, for example for lack of memory to
  /// decompress it. That message is not skipped, and can be read later.
  /// Returns null if that attempt succeeded, or no attempt was made since a seek.
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

  /// Finds the next messages of one batch within `limits`, and writes them to `next`. These messages stay the
  /// next ones until `taken` is called. Skips and counts unreadable messages. A batch that is taken whole
  /// costs nothing per record. Every delivery of the broker passes this point, so rules about single messages
  /// are applied here: expired messages are skipped, or make a slice of their own (context.shows_expired).
  SliceOutcome next(log::BatchLog& log, const DeliveryContext& context, const SliceLimits& limits,
                    NextSlice& next) {
    if (limits.records == 0 || limits.message_bytes == 0) return SliceOutcome::limit;
    next.delivered.expired = false;
    if (context.expiry != nullptr) [[unlikely]]
      return next_unexpired(log, context, limits, next);
    return next_stored(log, context, limits, next);
  }
  /// Moves behind the first `records` records of the last slice, which take `bytes` bytes with their length
  /// fields.
  void taken(std::uint64_t records, std::size_t bytes) {
    place_.offset = place_.offset + records;
    if (in_batch_ == 0) return;
    in_batch_ += bytes;
    in_batch_offset_ = place_.offset;
  }

  // Expired messages.

  /// Skips messages up to `to`, which have expired. They count as expired, not as lost.
  void pass_expired(Offset to) {
    expired_ += distance(place_.offset, to);
    if (expired_runs_ != nullptr && !stops_at_expired_) expired_runs_->add({place_.offset, to});
    move_to(to);
    unavailable_.reset();
    pending_ = false;
  }
  /// Skips messages up to `to`, which the log no longer has. Requires: dropped_in has returned `dropped` for
  /// them.
  void pass_dropped(Offset to, const DropCounts& dropped) {
    expired_ += dropped.expired;
    loss_.trimmed += dropped.lost;
    seek(to);
  }
  /// Returns how many messages were skipped because they had expired.
  [[nodiscard]] std::uint64_t expired() const { return expired_; }
  /// Sets where passed messages are remembered, unless it stops at them; null: nowhere. Lifetime: the runs
  /// outlive the reader.
  void remember_expired_in(ExpiredRuns* runs) { expired_runs_ = runs; }
  /// Stops at expired messages instead of skipping them, with the outcome `expired`: their group moves them
  /// to its dead-letter topic.
  void set_stops_at_expired(bool stops) { stops_at_expired_ = stops; }

 private:
  SliceOutcome next_unexpired(log::BatchLog& log, const DeliveryContext& context, const SliceLimits& limits,
                              NextSlice& next);
  /// Finds the next messages whether or not they have expired.
  SliceOutcome next_stored(log::BatchLog& log, const DeliveryContext& context, const SliceLimits& limits,
                           NextSlice& next) {
    while (place_.offset < limits.end) {
      const log::ReadResult result = read(log);
      if (result.outcome == log::ReadOutcome::end) return SliceOutcome::end;
      if (pending_) return SliceOutcome::pending;
      if (unavailable_ != nullptr) return wait(context, next);
      if (result.outcome != log::ReadOutcome::batch) {
        skip(result.outcome, std::min(result.next, limits.end));
        continue;
      }
      if (!result.batch.is_compressed()) return cut(result.batch, true, limits, next);
      if (limits.codecs.has(result.batch.codec()) && is_taken_whole(result.batch, limits))
        return whole(result.batch, next);
      const auto plain = unpacked(result.batch);
      if (!plain) {
        unavailable_ = std::make_unique<Error>(plain.error());
        return wait(context, next);
      }
      if (*plain) return cut(**plain, false, limits, next);
      skip(log::ReadOutcome::damaged, std::min(result.batch.end_offset(), limits.end));
    }
    return SliceOutcome::limit;
  }

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

  /// Returns the outcome of an attempt to read unavailable() messages.
  static SliceOutcome wait(const DeliveryContext& context, NextSlice& next) {
    next.again = read_again_after(context.now);
    return SliceOutcome::unavailable;
  }

  void skip(log::ReadOutcome why, Offset to) {
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

  /// Returns true if the limits permit all of the batch.
  [[nodiscard]] bool is_taken_whole(const BatchView& batch, const SliceLimits& limits) const {
    return place_.offset == batch.base_offset() && batch.end_offset() <= limits.end &&
           batch.record_count() <= limits.records && batch.message_bytes() <= limits.message_bytes;
  }

  SliceOutcome whole(const BatchView& batch, NextSlice& next) {
    in_batch_ = 0;
    next.delivered = {{batch, 0, batch.record_count(), {}}};
    return SliceOutcome::slice;
  }

  /// Finds the records from the position on, as many as the limits permit.
  SliceOutcome cut(const BatchView& batch, bool as_stored, const SliceLimits& limits, NextSlice& next) {
    find_in_batch(batch);
    const std::byte* const start = batch.bytes().data();
    const std::uint64_t left = distance(place_.offset, batch.end_offset());
    const std::uint64_t most = std::min({left, limits.records, distance(place_.offset, limits.end)});
    std::uint64_t count = left;
    std::size_t end = batch.total_bytes();
    // Takes the rest of the batch without reading its records, if that fits. Otherwise reads one record after
    // the other.
    if (most < left || end - in_batch_ - record_bytes(0) * left >= limits.message_bytes) {
      std::uint64_t message_bytes = 0;
      for (count = 0, end = in_batch_; count < most && message_bytes < limits.message_bytes; ++count) {
        const auto length = load_little_endian<std::uint32_t>(start + end);
        message_bytes += length;
        end += record_bytes(length);
      }
    }
    next.delivered = {{batch, static_cast<std::uint32_t>(distance(batch.base_offset(), place_.offset)),
                       static_cast<std::uint32_t>(count), ByteView(start + in_batch_, end - in_batch_),
                       as_stored}};
    return SliceOutcome::slice;
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
  bool stops_at_expired_ = false;
  std::uint64_t expired_ = 0;
  ExpiredRuns* expired_runs_ = nullptr;
  ReadLoss loss_;
  std::vector<OffsetRange> damage_;
};

}  // namespace lightq::broker
