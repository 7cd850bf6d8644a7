/// A group's redelivery queue: messages that a consumer did not finish. Layer: delivery.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "admission/range_budget.hpp"
#include "delivery/batches/next_slice.hpp"
#include "delivery/dead/dead_messages.hpp"
#include "delivery/letters/give_back_mark.hpp"
#include "delivery/record_reader.hpp"
#include "delivery/state/delivery_context.hpp"
#include "delivery/state/group_time.hpp"
#include "delivery/state/waiting_messages.hpp"

namespace lightq::broker {

/// Keeps the messages to deliver again, and reads them. *Ready* messages can be delivered now, some of them
/// *alone* (with no other message), *delayed* ones when they are due. Also keeps *dead* messages, which are
/// not delivered again. The memory is charged to a user; without that of dead messages it is limited. The
/// records of dead messages are charged apart, and never make the queue full.
/// The group owns it. Thread: the reactor's.
class RedeliveryQueue {
 public:
  /// The bytes of a set that are charged as one range.
  static constexpr std::size_t bytes_per_range = 64;

  /// Creates an empty queue. It is full when it has `bytes_max` bytes. Its memory is charged to `user`, by
  /// bytes_per_range. Without a budget the memory of all queues together is not bounded. Lifetime: `budget`
  /// outlives the queue.
  explicit RedeliveryQueue(std::size_t bytes_max, RangeBudget* budget = nullptr, std::uint64_t user = 0)
      : charge_(budget, user), record_charge_(budget, user), bytes_max_(bytes_max) {}

  /// Adds messages that can be delivered again immediately. `deliveries` is the number of deliveries so far.
  void add(OffsetRange range, std::uint32_t deliveries) {
    waiting_.ignore_before(dropped_before_, carried_);
    given_up_ += waiting_.add(range, deliveries);
    count();
  }
  /// Adds messages that are not delivered again before `due`.
  void add_delayed(OffsetRange range, std::uint32_t deliveries, SteadyTime due) {
    waiting_.ignore_before(dropped_before_, carried_);
    given_up_ += waiting_.add_delayed(range, deliveries, due);
    count();
  }
  /// Adds messages in many ranges, which ascend and do not overlap.
  void add(std::span<const CountedRange> ranges) {
    waiting_.ignore_before(dropped_before_, carried_);
    given_up_ += waiting_.add(ranges);
    count();
  }
  void add_delayed(std::span<const CountedRange> ranges, SteadyTime due) {
    waiting_.ignore_before(dropped_before_, carried_);
    given_up_ += waiting_.add_delayed(ranges, due);
    count();
  }
  /// Replaces all by messages that were saved.
  void restore(const log::Unfinished& saved, const ClockReading& clocks) {
    waiting_.restore(saved, clocks);
    walk_again_at_ = 0;
    dead_.reset();
    if (!saved.dead.empty()) {
      dead_ = std::make_unique<DeadMessages>();
      dead_->restore(saved.dead, DeliveryCounts(saved.delivery_bits));
    }
    count();
  }
  /// Charges the memory to `user` from now on, if it is charged to no user (0) yet.
  void claim(std::uint64_t user) {
    charge_.claim(user);
    record_charge_.claim(user);
  }
  /// Returns when to call `release`: when the next delayed message is due, or `never`.
  [[nodiscard]] SteadyTime next_due() const { return empty_ ? never : waiting_.due().next(); }
  /// Makes the messages ready that are due, in a limited number of ranges.
  void release(SteadyTime now);

  /// Returns true if there are ready messages for a consumer that takes `alone`.
  [[nodiscard]] bool ready(Alone alone = Alone::takes) const {
    return !empty_ && (!waiting_.ready().empty() || (alone != Alone::refuses && !waiting_.alone().empty()));
  }
  /// Returns true if there are ready messages to deliver alone.
  [[nodiscard]] bool has_alone() const { return !empty_ && !waiting_.alone().empty(); }
  /// Returns the lowest ready offset. Requires: ready().
  [[nodiscard]] Offset first_ready() const {
    if (waiting_.alone().empty()) return waiting_.ready().first();
    if (waiting_.ready().empty()) return waiting_.alone().first();
    return std::min(waiting_.ready().first(), waiting_.alone().first());
  }
  /// Returns true if the queue has `bytes_max` bytes, or if the budget has nothing left. Newer messages then
  /// wait, because a delivery could add to the queue.
  [[nodiscard]] bool is_full() const {
    return (!empty_ && bytes_ >= bytes_max_ && waiting_.bytes() >= bytes_max_) || !charge_.has_room();
  }
  /// Finds the lowest ready messages, as RecordReader::next does. They stay in the queue until `taken`.
  /// Messages that can no longer be read are removed and counted in loss(). Messages that have expired are
  /// removed, for take_expired().
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
  /// Returns the messages that `next` has removed since the last call, because they have expired.
  [[nodiscard]] CountedRanges take_expired() { return std::exchange(expired_, {}); }
  /// Returns why the lowest ready message could not be read; see RecordReader::unavailable.
  [[nodiscard]] const Error* unavailable() const { return ready() ? reader_.unavailable() : nullptr; }
  /// Finishes messages that wait for another delivery, or are dead and not under way to a dead-letter topic:
  /// the lowest parts of `range`, at most about `parts_left` of them. Returns them in ascending order.
  std::vector<OffsetRange> finish(OffsetRange range, std::size_t& parts_left);

  /// Returns the lowest offset, ready or delayed.
  [[nodiscard]] std::optional<Offset> first() const { return empty_ ? std::nullopt : std::optional(first_); }
  [[nodiscard]] std::uint64_t messages_in(OffsetRange range) const {
    return waiting_.ready().count_in(range) + waiting_.alone().count_in(range) +
           waiting_.delayed().count_in(range) + (has_dead() ? dead_->messages_in(range) : 0);
  }
  /// Returns the number of ready messages; delayed_messages() that of delayed ones.
  [[nodiscard]] std::uint64_t ready_messages() const {
    return waiting_.ready().size() + waiting_.alone().size();
  }
  [[nodiscard]] std::uint64_t delayed_messages() const { return waiting_.delayed().size(); }
  /// Removes messages below `first`, which the log no longer has, and counts them in loss(). Those under way
  /// to a dead-letter topic stay, and those in `carried`, which can still be read. So later calls do not walk
  /// over them again. Messages like the removed ones count in loss() when they are added later.
  /// `all`: without it, a message below `first` that has changed since an earlier call may stay until there
  /// are more changes, so that calls between changes take little time on average.
  /// `carried`: null if no message was carried over. Lifetime: it outlives the queue.
  void give_up_before(Offset first, const log::OffsetSet* carried = nullptr, bool all = true) {
    dropped_before_ = first;
    carried_ = carried;
    if (carried != nullptr) return give_up_uncarried(first, *carried, all);
    if (empty_ || first <= first_ || first <= given_up_before_) return;
    std::uint64_t removed = waiting_.give_up_before(first);
    if (dead_ != nullptr) removed += dead_->give_up_before(first);
    given_up_ += removed;
    if (removed == 0) {
      sum_up();
    } else {
      count();
    }
    given_up_before_ = first;
  }
  [[nodiscard]] ReadLoss loss() const {
    ReadLoss loss = reader_.loss();
    loss.trimmed += given_up_;
    return loss;
  }
  /// Counts messages in loss() that were removed because they can no longer be read.
  void count_lost(std::uint64_t messages) {
    given_up_ += messages;
    count();
  }
  /// Returns the sum of loss().
  [[nodiscard]] std::uint64_t lost() const { return lost_; }
  [[nodiscard]] std::vector<OffsetRange> take_damage() { return reader_.take_damage(); }
  /// Returns the heap memory of the messages in bytes, without records of dead ones.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// Returns the number of changes since the start.
  [[nodiscard]] std::uint64_t changes() const { return changes_ + give_back_marks_.changes(); }
  /// Returns the messages. A copy is a snapshot.
  [[nodiscard]] const WaitingMessages& waiting() const { return waiting_; }
  /// Returns the end of the part that a group uses while the queue is empty. The part starts with the object.
  [[nodiscard]] const void* hot_end() const { return &waiting_; }
  void clear() {
    waiting_.clear();
    expired_.clear();
    if (dead_ != nullptr) dead_->clear();
    count();
  }

  /// Returns how far runs have given messages back to the group. `clear` keeps it.
  [[nodiscard]] GiveBackMarks& give_back_marks() { return give_back_marks_; }

  // Dead messages, and settings.

  /// Returns true if there are dead messages.
  [[nodiscard]] bool has_dead() const { return !empty_ && dead_ != nullptr && !dead_->empty(); }
  /// Returns the dead messages, or null if there was none since the start.
  [[nodiscard]] const DeadMessages* dead() const { return dead_.get(); }
  /// Calls `change(dead)` to change the dead messages. waiting() knows then which messages the log has
  /// dropped.
  template <typename Change>
  void change_dead(Change&& change) {
    waiting_.ignore_before(dropped_before_, carried_);
    if (dead_ == nullptr) dead_ = std::make_unique<DeadMessages>();
    dead_->set_record_room(record_charge_.room());
    change(*dead_);
    count();
  }
  /// Calls `change(waiting)` to change the messages that are not dead.
  template <typename Change>
  void change_waiting(Change&& change) {
    change(waiting_);
    count();
  }

 private:
  void give_up_uncarried(Offset first, const log::OffsetSet& carried, bool all);
  /// Notes a change, and updates the sums. Called after each change.
  void count() {
    ++changes_;
    given_up_before_ = {};
    sum_up();
  }
  void sum_up() {
    bytes_ = waiting_.bytes();
    if (dead_ != nullptr) {
      bytes_ += dead_->set_bytes();
      record_charge_.set(dead_->record_bytes());
    }
    charge_.set((bytes_ + bytes_per_range - 1) / bytes_per_range);
    empty_ = waiting_.empty();
    if (!empty_) first_ = waiting_.first();
    if (dead_ != nullptr && !dead_->empty()) {
      first_ = empty_ ? dead_->first() : std::min(first_, dead_->first());
      empty_ = false;
    }
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
  Offset dropped_before_;                    // the log's first offset at the last give_up_before()
  const log::OffsetSet* carried_ = nullptr;  // what it has of messages before that

  WaitingMessages waiting_;
  std::unique_ptr<DeadMessages> dead_;
  RecordReader reader_{Offset{0}};  // at the last slice read
  std::uint64_t given_up_ = 0;
  // With carried messages: the end of the last walk, and the changes_ from which on all are walked over
  // again.
  Offset walked_to_;
  std::uint64_t walk_again_at_ = 0;
  std::uint64_t walked_at_ = 0;  // the changes_ at the last walk over all
  Offset given_up_before_;       // all messages below are under way, unless something has changed since
  CountedRanges expired_;
  RecordCharge record_charge_;
  const std::size_t bytes_max_;
  GiveBackMarks give_back_marks_;
};

}  // namespace lightq::broker
