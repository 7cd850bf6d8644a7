/// A group's redelivery queue: messages that a consumer did not finish. Layer: delivery.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "admission/range_budget.hpp"
#include "delivery/delivery_context.hpp"
#include "delivery/group_time.hpp"
#include "delivery/next_slice.hpp"
#include "delivery/range_map.hpp"
#include "delivery/record_reader.hpp"

namespace lightq::broker {

/// Keeps the messages to deliver again as ranges. *Ready* messages can be delivered now, *delayed* ones when
/// they are due.
/// The group owns it. Thread: the reactor's.
class RedeliveryQueue {
 public:
  /// Creates an empty queue for at most `ranges_max` ranges, which are charged to `user`. Without a budget
  /// the ranges of all queues together are not bounded. Lifetime: `budget` outlives the queue.
  explicit RedeliveryQueue(std::size_t ranges_max, RangeBudget* budget = nullptr, std::uint64_t user = 0)
      : charge_(budget, user), ranges_max_(ranges_max) {}

  /// Adds messages that can be delivered again immediately. `deliveries` is the number of deliveries so far.
  void add(OffsetRange range, std::uint32_t deliveries) {
    ready_.assign(range, deliveries);
    count();
  }
  /// Adds messages that are not delivered again before `due`.
  void add_delayed(OffsetRange range, std::uint32_t deliveries, SteadyTime due) {
    delayed_.assign(range, {deliveries, due});
    next_due_ = std::min(next_due_, due);
    count();
  }
  /// Makes the messages ready that are due. Returns when to call it again: when the next message is due, or
  /// later if there are many ranges (walk_again_after).
  SteadyTime release(SteadyTime now);

  /// Returns true if there are ready messages.
  [[nodiscard]] bool ready() const { return ranges_ != 0 && !ready_.empty(); }
  /// Returns the lowest ready offset. Requires: ready().
  [[nodiscard]] Offset first_ready() const { return ready_.front().range.begin; }
  /// Returns true if no range may be added by a delivery: the queue has `ranges_max`, or the budget has
  /// nothing left. Newer messages then wait.
  [[nodiscard]] bool is_in_pieces() const {
    return (ranges_ != 0 && ranges_ >= ranges_max_) || !charge_.has_room();
  }
  /// Finds the lowest ready messages, as RecordReader::next does. They stay in the queue until `taken`.
  /// Messages that can no longer be read are removed and counted in loss().
  SliceOutcome next(log::BatchLog& log, const DeliveryContext& context, const SliceLimits& limits,
                    NextSlice& next);
  /// Removes the first `records` records of the last slice, which take `bytes` bytes with their length
  /// fields.
  void taken(std::uint64_t records, std::size_t bytes) {
    const Offset begin = reader_.offset();
    reader_.taken(records, bytes);
    ready_.cut({begin, reader_.offset()});
    count();
  }
  /// Returns why the lowest ready message could not be read; see RecordReader::unavailable.
  [[nodiscard]] const Error* unavailable() const { return ready() ? reader_.unavailable() : nullptr; }
  /// Removes the ready messages of `range`, and calls `removed(part)` for each part, in ascending order.
  template <typename Removed>
  void take_ready(OffsetRange range, Removed&& removed) {
    ready_.cut(range, [&](OffsetRange part, std::uint32_t /*deliveries*/) { removed(part); });
    count();
  }

  /// Returns the lowest offset, ready or delayed.
  [[nodiscard]] std::optional<Offset> first() const;
  [[nodiscard]] std::size_t ranges() const { return ranges_; }
  [[nodiscard]] std::uint64_t messages_in(OffsetRange range) const {
    return ready_.messages_in(range) + delayed_.messages_in(range);
  }
  /// Returns the number of ready messages; delayed_messages() that of delayed ones.
  [[nodiscard]] std::uint64_t ready_messages() const { return ready_.messages(); }
  [[nodiscard]] std::uint64_t delayed_messages() const { return delayed_.messages(); }
  /// Removes messages below `first`, which the log no longer has, and counts them in loss(). So later calls
  /// do not walk over them again.
  void give_up_before(Offset first);
  /// Returns the first range, ready or delayed, that ends after `offset`.
  [[nodiscard]] std::optional<OffsetRange> first_behind(Offset offset) const;
  [[nodiscard]] ReadLoss loss() const {
    ReadLoss loss = reader_.loss();
    loss.trimmed += given_up_;
    return loss;
  }
  /// Returns the sum of loss().
  [[nodiscard]] std::uint64_t lost() const { return lost_; }
  [[nodiscard]] std::vector<OffsetRange> take_damage() { return reader_.take_damage(); }
  /// Returns how many ranges release() has walked over since the start.
  [[nodiscard]] std::uint64_t ranges_walked() const { return ranges_walked_; }
  /// Returns the end of the part that a group uses while the queue is empty. The part starts with the object.
  [[nodiscard]] const void* hot_end() const { return &ready_; }
  void clear() {
    ready_.clear();
    delayed_.clear();
    next_due_ = never;
    count();
  }

 private:
  struct Delayed {
    std::uint32_t deliveries;
    SteadyTime due;
    friend bool operator==(const Delayed&, const Delayed&) = default;
  };

  /// Updates the sums. Called after each change.
  void count() {
    ranges_ = ready_.ranges() + delayed_.ranges();
    charge_.set(ranges_);
    lost_ = reader_.lost() + given_up_;
  }

  // Sums over the fields below, right only after count(). A group mostly reads only these, because its queue
  // is mostly empty. hot_end() depends on this order, which HotFields checks.
  struct HotFields;
  std::size_t ranges_ = 0;
  std::uint64_t lost_ = 0;
  RangeCharge charge_;

  RangeMap<std::uint32_t> ready_;  // the number of deliveries so far
  RangeMap<Delayed> delayed_;
  RecordReader reader_{Offset{0}};  // at the last slice read
  std::uint64_t given_up_ = 0;
  SteadyTime next_due_ = never;  // no delayed message is due earlier
  SteadyTime not_before_{};      // delayed messages are not checked again before this time
  std::uint64_t ranges_walked_ = 0;
  const std::size_t ranges_max_;
};

}  // namespace lightq::broker
