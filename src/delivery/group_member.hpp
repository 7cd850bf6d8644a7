/// A session consumer as a member of its group: its credit, and the messages that it has not acknowledged.
/// Layer: delivery.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include <lightq/base/fetch_ahead.hpp>
#include <lightq/protocol/group_control.hpp>

#include "delivery/batches/next_slice.hpp"
#include "delivery/session_consumer.hpp"
#include "delivery/state/consume_request.hpp"
#include "delivery/state/group_limits.hpp"
#include "delivery/state/group_standing.hpp"
#include "delivery/state/group_time.hpp"
#include "delivery/state/member_end.hpp"
#include "delivery/state/member_lease.hpp"
#include "delivery/state/range_map.hpp"

namespace lightq::broker {

/// How a range of messages was delivered to a member.
struct Delivery {
  std::uint32_t count = 1;     ///< number of deliveries, this one included
  std::uint32_t hand_out = 0;  ///< number of the hand-out; 0: the member has no leases
  SteadyTime deadline;         ///< when the messages are taken back
  bool started = true;         ///< false: the messages only wait in a client that has leases

  /// Returns the number of deliveries that count if the messages are taken back now. The present one does not
  /// count if the program has not started them.
  [[nodiscard]] std::uint32_t counted() const { return started ? count : count - 1; }
  friend bool operator==(const Delivery&, const Delivery&) = default;
};

/// Tracks one member's credit and its messages in flight, and keeps the sums in GroupStanding up to date.
/// The group owns it and calls it. Thread: the reactor's.
/// A message that was delivered is in `outstanding` until it is acknowledged, rejected or taken back after
/// its deadline. In automatic mode nothing becomes outstanding.
class GroupMember : public MemberTurns<GroupMember>::Turn,
                    public MemberFronts<GroupMember>::Place,
                    public MemberEnding {
 public:
  /// Creates a member that belongs to `user`. It takes no messages before `begin`.
  /// Lifetime: the consumer outlives the member or is dropped by `abandon`. `standing` outlives the member.
  GroupMember(SessionConsumer& consumer, const ConsumeRequest& asked, const GroupLimits& group_limits,
              GroupStanding& standing, std::uint64_t user);
  GroupMember(const GroupMember&) = delete;
  GroupMember& operator=(const GroupMember&) = delete;
  ~GroupMember();

  [[nodiscard]] std::uint64_t user() const { return user_; }
  /// Returns how many members had joined the group before this one.
  [[nodiscard]] std::uint64_t number() const { return number_; }
  [[nodiscard]] SessionConsumer* consumer() const { return consumer_; }
  /// Allows messages to be delivered to the consumer.
  void begin() {
    begun_ = true;
    wake();
  }
  /// Puts the member back into the turn order, because it may be able to take messages again. Called for
  /// example when its consumer becomes writable.
  void wake();
  /// Takes the member out of the turn order, because it cannot take messages now. It is not asked again
  /// before `wake`.
  void rest();
  /// Drops the consumer, which no longer exists. The member does not call it again.
  void abandon() { consumer_ = nullptr; }

  /// Returns true if it has credit, space for more unacknowledged messages, and a writable consumer.
  /// Forgets its overdue messages if only their memory is in the way.
  [[nodiscard]] bool can_take();
  /// Returns how many messages it may take now. Not 0 while can_take() is true.
  [[nodiscard]] std::uint64_t messages_left() const {
    return std::min(messages_left_, in_flight_messages_max_ - outstanding_.messages());
  }
  /// Returns the messages, the bytes and the codecs of compressed batches that its consumer can take now.
  [[nodiscard]] SliceLimits limits() const {
    return {.records = messages_left(),
            .message_bytes = bytes_left_ > 0 ? static_cast<std::uint64_t>(bytes_left_) : 0,
            .codecs = consumer_ == nullptr ? CodecSet() : consumer_->codecs()};
  }
  /// Adds credit. Returns false and changes nothing if the sum would exceed the protocol's maximum.
  [[nodiscard]] bool add_credit(const Credit& credit);

  /// Delivers the slice and returns how many messages the consumer took, from the slice's first record on.
  /// Sets the slice's hand-out number. Requires: can_take() before the slice was taken from its source, and a
  /// slice within limits().
  std::uint32_t deliver(DeliveredSlice& delivered, SteadyTime now);
  [[nodiscard]] bool is_unflushed() const { return unflushed_; }
  /// Tells the consumer that this turn's slices are complete, if there were any.
  void flush();
  /// Returns the end of the part that a delivery and an acknowledgement use. The part starts with the object.
  [[nodiscard]] const void* hot_end() const { return &user_; }
  /// Prefetches memory that a delivery will use; see TopicRuntime. Requires: the hot part was prefetched.
  void fetch_ahead_for_input() const {
    fetch_ahead(consumer_, 128);
    outstanding_.fetch_ahead_front();
  }

  /// Returns the messages that were delivered and not acknowledged, rejected or taken back.
  [[nodiscard]] const RangeMap<Delivery>& outstanding() const { return outstanding_; }
  /// Removes the messages of `range` with this hand-out number from the outstanding ones, and calls
  /// `removed(part, delivery)` for each part removed.
  template <typename Removed>
  void cut(OffsetRange range, std::uint32_t hand_out, Removed&& removed) {
    outstanding_.cut_picked(
        range, [hand_out](const Delivery& delivery) { return delivery.hand_out == hand_out; }, removed);
    settle();
  }
  /// Takes back the outstanding messages for which `picks(delivery)` returns true, and calls
  /// `removed(range, delivery)` for each range. They become overdue: the consumer is told if it acknowledges
  /// them too late. If there are too many such ranges, all are forgotten and the consumer gets no notice of
  /// them.
  template <typename Picks, typename Removed>
  void take_back(Picks&& picks, Removed&& removed) {
    const bool hears_late = consumer_ != nullptr && (lease_.is_on() || consumer_->hears_late());
    outstanding_.cut_if(picks, [&](OffsetRange range, const Delivery& delivery) {
      if (hears_late) overdue_.assign(range, delivery.hand_out);
      if (overdue_.ranges() > (lease_.is_on() ? overdue_ranges_with_leases_max : overdue_ranges_max))
        overdue_.clear();
      lease_.note_taken_back();
      removed(range, delivery);
    });
    settle_overdue();
    settle();
  }
  /// Forgets the overdue messages below `before`.
  void forget_overdue(Offset before = {std::numeric_limits<std::uint64_t>::max()}) {
    overdue_.cut({{0}, before});
    settle_overdue();
    settle();
  }
  /// Returns true if messages were taken back from it, in more than `ranges` ranges, and it was not told yet
  /// that they are late.
  [[nodiscard]] bool has_overdue(std::size_t ranges = 0) const { return overdue_ranges_ > ranges; }
  /// Removes the overdue messages of `range` whose hand-out was the one with this number or a later one, and
  /// calls `removed(part)` for each part removed, in ascending order.
  template <typename Removed>
  void take_overdue(OffsetRange range, std::uint32_t hand_out, Removed&& removed) {
    overdue_.cut_picked(
        range, [hand_out](std::uint32_t of_part) { return of_part >= hand_out; },
        [&](OffsetRange part, std::uint32_t) { removed(part); });
    settle_overdue();
    settle();
  }
  /// Sets the deadline of the outstanding messages in `range` with this hand-out number. They are started.
  /// Calls `started(part)` for each part that was not started before, in ascending order.
  template <typename Started>
  void extend(OffsetRange range, std::uint32_t hand_out, SteadyTime deadline, Started&& started) {
    outstanding_.update(range, [&](OffsetRange part, Delivery& delivery) {
      if (delivery.hand_out != hand_out) return;
      delivery.deadline = deadline;
      if (std::exchange(delivery.started, true)) return;
      ++standing_.changes;  // the number of deliveries that a restart finds
      started(part);
    });
    expect(deadline);
    settle();
  }
  /// Marks the outstanding messages in `range` with this hand-out number as started. Their processing timeout
  /// begins. Also marks such messages if they are delivered later, until the number changes or another range
  /// is started. Calls `started(part)` for each part that was not started before, in ascending order.
  /// Requires: lease().is_on().
  template <typename Started>
  void start(OffsetRange range, std::uint32_t hand_out, SteadyTime now, Started&& started) {
    const SteadyTime deadline = deadline_of(now, ack_timeout_ms_);
    outstanding_.update(range, [&](OffsetRange part, Delivery& delivery) {
      if (delivery.hand_out != hand_out || std::exchange(delivery.started, true)) return;
      delivery.deadline = deadline;
      ++standing_.changes;
      started(part);
    });
    lease_.start(range, hand_out);
    expect(deadline);
    settle();
  }
  [[nodiscard]] MemberLease& lease() { return lease_; }
  /// Called when the client has become silent, or is heard again. Has an effect only with leases.
  void set_silent(bool silent);
  /// Takes back messages past their deadline, in at most `ranges_left` ranges, and calls
  /// `removed(range, delivery)` for each range, in ascending order. Subtracts the number of ranges from
  /// `ranges_left`. If that becomes 0, next_deadline() is not in the future. A member with many ranges is
  /// checked less often (walk_again_after).
  template <typename Removed>
  void expire(SteadyTime now, std::size_t& ranges_left, Removed&& removed) {
    if (now < next_deadline_ || ranges_left == 0) return;
    standing_.roll.ranges_walked += outstanding_.ranges();
    const SteadyTime again = walk_again_after(now, outstanding_.ranges());
    take_back([&](const Delivery& delivery) { return ranges_left != 0 && delivery.deadline <= now; },
              [&](OffsetRange range, const Delivery& delivery) {
                --ranges_left;
                removed(range, delivery);
              });
    if (ranges_left == 0) return;
    next_deadline_ = never;
    outstanding_.for_each([&](OffsetRange, const Delivery& delivery) {
      next_deadline_ = std::min(next_deadline_, delivery.deadline);
    });
    not_before_ = again;
    next_deadline_ = std::max(next_deadline_, not_before_);
  }
  /// Returns when to call `expire` next. The call may find nothing to do.
  [[nodiscard]] SteadyTime next_deadline() const { return next_deadline_; }

  /// Returns true if the outstanding messages are in more ranges than the member's limit.
  [[nodiscard]] bool is_in_pieces() const { return outstanding_.ranges() > outstanding_ranges_max_; }
  /// Returns true if is_in_pieces(), or if the reactor's range budget has nothing left for the member's user.
  [[nodiscard]] bool is_out_of_ranges() const { return is_in_pieces() || !charge_.has_room(); }
  [[nodiscard]] std::size_t pieces_max() const { return outstanding_ranges_max_; }
  /// Returns the time for an acknowledgement, or for the processing of a message with leases; 0: no limit.
  [[nodiscard]] std::uint32_t ack_timeout_ms() const { return ack_timeout_ms_; }
  /// Returns true if messages are finished when they are delivered to it.
  [[nodiscard]] bool is_automatic() const { return automatic_; }

 private:
  static constexpr std::size_t overdue_ranges_max = 64;
  static constexpr std::size_t overdue_ranges_with_leases_max = 1024;

  [[nodiscard]] bool can_take_but_for_budget() const;
  void settle();
  void settle_overdue();
  /// Notes that messages have this deadline.
  void expect(SteadyTime deadline) {
    next_deadline_ = std::min(next_deadline_, std::max(deadline, not_before_));
  }
  void hold(OffsetRange range, const Delivery& delivery);

  // A delivery and an acknowledgement in time use these, up to charge_. They are contiguous, because with
  // many members each cache line costs an access to memory. hot_end() depends on this order, which HotFields
  // checks.
  struct HotFields;
  bool begun_ = false;
  bool unflushed_ = false;
  const bool automatic_;
  const std::uint32_t ack_timeout_ms_;
  SessionConsumer* consumer_;
  GroupStanding& standing_;
  std::uint64_t messages_left_;
  std::int64_t bytes_left_;  // can fall below 0 by less than one message
  const std::uint64_t in_flight_messages_max_;
  const std::size_t outstanding_ranges_max_;
  std::uint64_t counted_messages_ = 0;  // its part of standing_.messages
  std::size_t overdue_ranges_ = 0;      // of overdue_, at the last settle_overdue()
  SteadyTime next_deadline_ = never;
  SteadyTime not_before_{};  // deadlines are not checked again before this time
  RangeMap<Delivery> outstanding_;
  RangeCharge charge_;
  MemberLease lease_;

  const std::uint64_t user_;
  const std::uint64_t number_;
  RangeBudget::Share::Holding counted_;  // this member, among those of its user
  // Hand-out numbers of messages that were taken back; neither acknowledged since nor, without leases,
  // delivered to it again.
  RangeMap<std::uint32_t> overdue_;
};

/// Returns the statistics of a member, with the number of its user and no name.
protocol::MemberStats stats_of(const GroupMember& member, const ClockReading& clocks);

}  // namespace lightq::broker
