/// A group's redelivery queue: messages that a consumer did not finish. Layer: delivery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "admission/range_budget.hpp"
#include "delivery/delivery_context.hpp"
#include "delivery/next_slice.hpp"
#include "delivery/record_reader.hpp"
#include "delivery/state/group_time.hpp"
#include "delivery/state/waiting_messages.hpp"

namespace lightq::broker {

/// Keeps the messages to deliver again, and reads them. *Ready* messages can be delivered now, *delayed* ones
/// when they are due. Their memory is charged to a user, and limited.
/// The group owns it. Thread: the reactor's.
class RedeliveryQueue {
 public:
  /// The bytes of a set that are charged as one range.
  static constexpr std::size_t bytes_per_range = 64;

  /// Creates an empty queue. It is full when it has `bytes_max` bytes. Its memory is charged to `user`, by
  /// bytes_per_range. Without a budget the memory of all queues together is not bounded. Lifetime: `budget`
  /// outlives the queue.
  explicit RedeliveryQueue(std::size_t bytes_max, RangeBudget* budget = nullptr, std::uint64_t user = 0)
      : charge_(budget, user), bytes_max_(bytes_max) {}

  /// Adds messages that can be delivered again immediately. `deliveries` is the number of deliveries so far.
  void add(OffsetRange range, std::uint32_t deliveries) {
    given_up_ += waiting_.add(range, deliveries);
    count();
  }
  /// Adds messages that are not delivered again before `due`.
  void add_delayed(OffsetRange range, std::uint32_t deliveries, SteadyTime due) {
    given_up_ += waiting_.add_delayed(range, deliveries, due);
    count();
  }
  /// Adds messages in many ranges, which ascend and do not overlap.
  void add(std::span<const CountedRange> ranges) {
    given_up_ += waiting_.add(ranges);
    count();
  }
  void add_delayed(std::span<const CountedRange> ranges, SteadyTime due) {
    given_up_ += waiting_.add_delayed(ranges, due);
    count();
  }
  /// Replaces all by messages that were saved.
  void restore(const log::Unfinished& saved, const ClockReading& clocks) {
    waiting_.restore(saved, clocks);
    count();
  }
  /// Charges the memory to `user` from now on, if it is charged to no user (0) yet.
  void claim(std::uint64_t user) { charge_.claim(user); }
  /// Returns when to call `release`: when the next delayed message is due, or `never`.
  [[nodiscard]] SteadyTime next_due() const { return empty_ ? never : waiting_.due().next(); }
  /// Makes the messages ready that are due, in a limited number of ranges.
  void release(SteadyTime now);

  /// Returns true if there are ready messages.
  [[nodiscard]] bool ready() const { return !empty_ && !waiting_.ready().empty(); }
  /// Returns the lowest ready offset. Requires: ready().
  [[nodiscard]] Offset first_ready() const { return waiting_.ready().first(); }
  /// Returns true if the queue has `bytes_max` bytes, or if the budget has nothing left. Newer messages then
  /// wait, because a delivery could add to the queue.
  [[nodiscard]] bool is_full() const { return (!empty_ && bytes_ >= bytes_max_) || !charge_.has_room(); }
  /// Finds the lowest ready messages, as RecordReader::next does. They stay in the queue until `taken`.
  /// Messages that can no longer be read are removed and counted in loss().
  SliceOutcome next(log::BatchLog& log, const DeliveryContext& context, const SliceLimits& limits,
                    NextSlice& next);
  /// Removes the first `records` records of the last slice, which take `bytes` bytes with their length
  /// fields.
  void taken(std::uint64_t records, std::size_t bytes) {
    const Offset begin = reader_.offset();
    reader_.taken(records, bytes);
    waiting_.remove_ready({begin, reader_.offset()});
    count();
  }
  /// Returns why the lowest ready message could not be read; see RecordReader::unavailable.
  [[nodiscard]] const Error* unavailable() const { return ready() ? reader_.unavailable() : nullptr; }
  /// Removes ready messages; see WaitingMessages::remove_ready.
  template <typename Removed>
  void take_ready(OffsetRange range, std::size_t& parts_left, Removed&& removed) {
    waiting_.remove_ready(range, parts_left, removed);
    count();
  }

  /// Returns the lowest offset, ready or delayed.
  [[nodiscard]] std::optional<Offset> first() const { return empty_ ? std::nullopt : std::optional(first_); }
  [[nodiscard]] std::uint64_t messages_in(OffsetRange range) const {
    return waiting_.ready().count_in(range) + waiting_.delayed().count_in(range);
  }
  /// Returns the number of ready messages; delayed_messages() that of delayed ones.
  [[nodiscard]] std::uint64_t ready_messages() const { return waiting_.ready().size(); }
  [[nodiscard]] std::uint64_t delayed_messages() const { return waiting_.delayed().size(); }
  /// Removes messages below `first`, which the log no longer has, and counts them in loss(). So later calls
  /// do not walk over them again.
  void give_up_before(Offset first) {
    if (empty_ || first <= first_) return;
    given_up_ += waiting_.give_up_before(first);
    count();
  }
  [[nodiscard]] ReadLoss loss() const {
    ReadLoss loss = reader_.loss();
    loss.trimmed += given_up_;
    return loss;
  }
  /// Returns the sum of loss().
  [[nodiscard]] std::uint64_t lost() const { return lost_; }
  [[nodiscard]] std::vector<OffsetRange> take_damage() { return reader_.take_damage(); }
  /// Returns the heap memory of the messages in bytes.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// Returns the number of changes since the start.
  [[nodiscard]] std::uint64_t changes() const { return changes_; }
  /// Returns the messages. A copy is a snapshot.
  [[nodiscard]] const WaitingMessages& waiting() const { return waiting_; }
  /// Returns the end of the part that a group uses while the queue is empty. The part starts with the object.
  [[nodiscard]] const void* hot_end() const { return &waiting_; }
  void clear() {
    waiting_.clear();
    count();
  }

 private:
  /// Updates the sums. Called after each change.
  void count() {
    ++changes_;
    bytes_ = waiting_.bytes();
    charge_.set((bytes_ + bytes_per_range - 1) / bytes_per_range);
    empty_ = waiting_.empty();
    if (!empty_) first_ = waiting_.first();
    lost_ = reader_.lost() + given_up_;
  }

  // Sums over the fields below, right only after count(). A group mostly reads only these, because its queue
  // is mostly empty. hot_end() depends on this order, which HotFields checks.
  struct HotFields;
  std::size_t bytes_ = 0;
  bool empty_ = true;
  Offset first_;  // the lowest message, unless empty_
  std::uint64_t lost_ = 0;
  std::uint64_t changes_ = 0;
  RangeCharge charge_;

  WaitingMessages waiting_;
  RecordReader reader_{Offset{0}};  // at the last slice read
  std::uint64_t given_up_ = 0;
  const std::size_t bytes_max_;
};

}  // namespace lightq::broker
