/// The source of the messages that a cursor delivers, for every kind of consumer. Layer: delivery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "delivery/batches/next_slice.hpp"
#include "delivery/record_reader.hpp"
#include "delivery/redelivery_queue.hpp"
#include "delivery/state/delivery_context.hpp"

namespace lightq::broker {

/// The next messages of one cursor in one turn: those in the redelivery queue if there is one, then those at
/// the reader's position. Plain consumers, members, subscribers and reads receive messages from here alone.
/// Rules about single messages are in RecordReader::next, which reads both.
/// Lifetime: everything that it refers to outlives it. It lives for one turn. Thread: the reactor's.
class SliceSource {
 public:
  /// `redelivery`: null for a cursor whose messages are not delivered again.
  SliceSource(log::BatchLog& log, const DeliveryContext& context, RecordReader& reader,
              RedeliveryQueue* redelivery = nullptr)
      : log_(log), context_(context), reader_(reader), redelivery_(redelivery) {}

  [[nodiscard]] const DeliveryContext& context() const { return context_; }

  /// Finds the next messages within `limits`, and writes them to `next`. They stay the next ones until
  /// `taken`.
  SliceOutcome next(const SliceLimits& limits, NextSlice& next) {
    const SliceOutcome outcome = find(limits, next);
    read_again_ = outcome == SliceOutcome::unavailable ? next.again : SteadyTime{};
    has_skipped_ = outcome == SliceOutcome::skipped;
    if (outcome == SliceOutcome::slice && context_.delays != nullptr)
      appended_us_ = next.delivered.slice.batch.append_time().us;
    return outcome;
  }
  /// Returns true if the last slice was in the redelivery queue.
  [[nodiscard]] bool is_redelivery() const { return from_redelivery_; }
  /// Removes the first `records` records of the last slice, which take `bytes` bytes with their length
  /// fields.
  void taken(std::uint64_t records, std::size_t bytes) {
    if (from_redelivery_) return redelivery_->taken(records, bytes);
    if (context_.delays != nullptr && records > 0)
      context_.delays->record(context_.wall.us - appended_us_, records);
    reader_.taken(records, bytes);
  }

  /// Returns when to read again, if the last attempt of the turn found the messages unavailable. Before that
  /// time the cursor must not be read. Otherwise returns the default, a time in the past.
  [[nodiscard]] SteadyTime read_again() const { return read_again_; }
  /// Returns true if the last attempt of the turn skipped many expired messages, and there may be more.
  [[nodiscard]] bool has_skipped() const { return has_skipped_; }
  /// Returns how many messages this cursor has lost since the last call with the same counter.
  [[nodiscard]] std::uint64_t take_untold_loss(std::uint64_t& told) const {
    const std::uint64_t lost = reader_.lost() + (redelivery_ != nullptr ? redelivery_->lost() : 0);
    return lost - std::exchange(told, lost);
  }

 private:
  SliceOutcome find(const SliceLimits& limits, NextSlice& next) {
    from_redelivery_ = false;
    if (redelivery_ != nullptr) {
      if (redelivery_->ready(limits.alone)) {
        const SliceOutcome outcome = redelivery_->next(log_, context_, limits, next);
        from_redelivery_ = outcome == SliceOutcome::slice;
        // Nothing newer is delivered before them.
        if (from_redelivery_ || redelivery_->ready(limits.alone)) return outcome;
      }
      if (redelivery_->is_full()) return SliceOutcome::held_back;
    }
    return reader_.next(log_, context_, limits, next);
  }

  log::BatchLog& log_;
  const DeliveryContext& context_;
  RecordReader& reader_;
  RedeliveryQueue* const redelivery_;
  bool from_redelivery_ = false;  // the last slice
  bool has_skipped_ = false;
  std::int64_t appended_us_ = 0;  // the last slice, if context_.delays counts it
  SteadyTime read_again_{};
};

}  // namespace lightq::broker
