/// The messages of a group: which are new, wait for another delivery, or are in flight. Layer: delivery.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "delivery/expiry/group_expiry.hpp"
#include "delivery/group_member.hpp"
#include "delivery/record_reader.hpp"
#include "delivery/record_sink.hpp"
#include "delivery/redelivery_queue.hpp"
#include "delivery/snapshot/group_snapshot.hpp"
#include "delivery/state/group_limits.hpp"
#include "delivery/state/group_standing.hpp"

namespace lightq::broker {

/// Tells two states of a group's messages apart.
struct GroupVersion {
  std::uint64_t changes = 0;  ///< changes other than new deliveries
  Offset next;
  Offset committed;
  std::uint64_t unsent = 0;  ///< messages that plain consumers have not sent
  friend bool operator==(const GroupVersion&, const GroupVersion&) = default;
};

/// A group's position in the log, and the messages between its committed offset and that position. Each is
/// ready or delayed (in the redelivery queue), in flight (on a member, or unsent by a plain consumer), or
/// finished. Numbers of messages are computed from these parts, and never stored.
///
/// A snapshot of this state needs the messages in flight on all members. There may be a million ranges of
/// them, so `snapshot` collects them in pieces, over several turns. The result has every message that is
/// unfinished when the last piece is taken:
/// - a message that was in flight on the same consumer all the time is found when that consumer is visited;
/// - a message that was delivered since the first piece is noted by the delivery, and one that was started
///   since then is noted again;
/// - any other is in the redelivery queue, which is copied with the last piece.
/// A message that is finished between the pieces may be in the result. The group's version then differs from
/// the one before the first piece.
///
/// ConsumerGroup owns it. Thread: the reactor's.
class GroupMessages {
 public:
  /// The consumers with messages in flight. Lifetime: the group's.
  struct Consumers {
    const GroupStanding& standing;
    const std::vector<RecordSink*>& plain;
    const std::vector<std::unique_ptr<GroupMember>>& members;  ///< by number
  };

  GroupMessages(const Consumers& consumers, Offset start, const GroupLimits& group_limits,
                RangeBudget* budget, std::uint64_t user)
      : consumers_(consumers), reader_(start), redelivery_(group_limits.state_bytes_max, budget, user) {
    reader_.remember_expired_in(&expiry_.runs());
  }
  GroupMessages(const GroupMessages&) = delete;
  GroupMessages& operator=(const GroupMessages&) = delete;

  /// Returns the reader of new messages.
  [[nodiscard]] RecordReader& reader() { return reader_; }
  [[nodiscard]] const RecordReader& reader() const { return reader_; }
  [[nodiscard]] RedeliveryQueue& redelivery() { return redelivery_; }
  [[nodiscard]] const RedeliveryQueue& redelivery() const { return redelivery_; }

  // Changes.

  /// Moves the position to `offset`, and forgets all messages before and after. Requires: the group forgets
  /// the messages in flight, too.
  void seek(Offset offset);
  /// Restores the messages that were saved. Requires: no consumers.
  void restore(const log::Unfinished& saved, const ClockReading& clocks);
  /// Called when a member has received messages that it has to acknowledge, or has started some.
  void changed_in_flight(const GroupMember& member, OffsetRange range) {
    if (collection_ != nullptr) note_in_flight(member, range);
  }
  /// Called when a plain consumer has taken messages; `delivery` is the number of this delivery.
  void delivered_plainly(OffsetRange range, std::uint32_t delivery) {
    if (delivery > 1 || !unsent_.empty()) note_delivery(range, delivery);
    if (collection_ != nullptr) collect_unsent(range);
  }
  /// Returns how a message was delivered that a plain consumer has not sent. The delivery does not count.
  [[nodiscard]] Delivery delivery_of_unsent(Offset offset) const {
    return {.count = unsent_.of(offset), .deadline = never, .started = false};
  }
  /// Returns the heap memory in bytes of these numbers.
  [[nodiscard]] std::size_t bytes_of_unsent() const { return unsent_.bytes(); }
  /// Sets the group's limit of attempts; 0: none. A save stores messages in flight with fewer attempts,
  /// because a restart of the broker alone kills no message.
  void set_attempts_max(std::uint32_t attempts) { attempts_max_ = attempts; }
  /// Returns the number of deliveries with which a message in flight is saved.
  [[nodiscard]] std::uint32_t saved_count(const Delivery& delivery) const;
  /// Sets the time, for the wall times of failures.
  void set_clocks(const ClockReading& clocks) { clocks_ = clocks; }
  /// Returns the time that was set last. Wall times later than that are computed from it.
  [[nodiscard]] const ClockReading& clocks() const { return clocks_; }
  /// Called when the plain consumer at this index has left.
  void plain_consumer_left(std::size_t index) {
    if (collection_ != nullptr && index < collection_->plain_visited) --collection_->plain_visited;
  }

  /// Returns the group's expired messages.
  [[nodiscard]] GroupExpiry& expiry() { return expiry_; }

  // State.

  /// Returns the offset of the next message that was never delivered.
  [[nodiscard]] Offset next() const { return reader_.offset(); }
  /// Returns the offset below which all messages are finished. Takes constant time for each plain consumer,
  /// and for all other parts together.
  [[nodiscard]] Offset committed() const;
  /// Returns how many messages can be delivered now, for the first time or again, in a log from `first` to
  /// `next`.
  [[nodiscard]] std::uint64_t ready(Offset first, Offset next) const {
    const OffsetRange fresh{std::max(this->next(), first), next};
    return distance(fresh.begin, fresh.end) - expiry_.in(fresh) + redelivery_.ready_messages();
  }
  /// Returns how many rejected messages wait for the end of their delay.
  [[nodiscard]] std::uint64_t retrying() const { return redelivery_.delayed_messages(); }
  /// Returns how many messages members have not acknowledged or plain consumers have not sent.
  [[nodiscard]] std::uint64_t in_flight() const { return unacknowledged() + unsent(); }
  /// Returns how many messages members have not acknowledged.
  [[nodiscard]] std::uint64_t unacknowledged() const { return consumers_.standing.messages; }
  /// Returns the consumers, for questions about single messages: see the functions below.
  [[nodiscard]] const Consumers& consumers() const { return consumers_; }
  /// Returns how many dead messages stay with the group; dead_waiting() how many wait for a transfer, expired
  /// ones that the group keeps included.
  [[nodiscard]] std::uint64_t parked() const {
    return redelivery_.has_dead() ? redelivery_.dead()->parked().size() : 0;
  }
  [[nodiscard]] std::uint64_t dead_waiting() const {
    return (redelivery_.has_dead() ? redelivery_.dead()->waiting().size() : 0) +
           (expiry_.keeps() ? expiry_.from(next()) : 0);
  }
  /// Returns how many messages in `range` were never delivered, wait for redelivery, or are dead. Expired
  /// ones are left out, unless the group keeps them.
  [[nodiscard]] std::uint64_t undelivered_in(OffsetRange range) const;
  /// Returns how many messages could not be delivered, redeliveries included.
  [[nodiscard]] ReadLoss loss() const;
  /// Returns the damaged ranges found since the last call.
  [[nodiscard]] std::vector<OffsetRange> take_damage();

  // Snapshots.

  /// Returns a value that differs from earlier ones if anything that a snapshot contains has changed.
  [[nodiscard]] GroupVersion version() const {
    const std::uint64_t changes = consumers_.standing.changes + consumers_.standing.seeks;
    return {changes + redelivery_.changes(), next(), committed(), unsent()};
  }
  /// Begins a snapshot, or continues the one that was begun. Visits at most `ranges_left` ranges and
  /// consumers, and one plain consumer more, and subtracts them. Returns the snapshot, or nothing if
  /// `ranges_left` was not enough: call it again. `clocks`: read for storing, at this call.
  std::optional<GroupSnapshot> snapshot(std::size_t& ranges_left, const ClockReading& clocks);
  /// Forgets the pieces of a snapshot that is not complete.
  void drop_snapshot() { collection_.reset(); }

  /// Returns the end of the part that a group uses while no message is delivered again. The part starts with
  /// the object.
  [[nodiscard]] const void* hot_end() const { return redelivery_.hot_end(); }

 private:
  /// The pieces of a snapshot so far. Plain consumers are visited first, then members by number. Consumers
  /// that join later need no visit, because their deliveries are noted.
  struct Collection {
    std::uint64_t members_end;  ///< the number of the first member that need not be visited
    std::size_t plain_visited = 0;
    std::uint64_t member = 0;  ///< the number of the member that is visited next
    Offset visited_to{};       ///< its messages below were visited
    InFlightList in_flight{};
  };

  static constexpr std::size_t unsent_bytes_min = 4096;

  [[nodiscard]] std::uint64_t unsent() const;
  void note_in_flight(const GroupMember& member, OffsetRange range);
  void note_delivery(OffsetRange range, std::uint32_t delivery);
  void collect_unsent(OffsetRange range);
  bool collect_plain(std::size_t& ranges_left);
  bool collect_members(std::size_t& ranges_left);
  bool collect_from(const GroupMember& member, std::size_t& ranges_left);

  // Hot, down to the first bytes of redelivery_: see ConsumerGroup.
  Consumers consumers_;
  std::unique_ptr<Collection> collection_;  // while a snapshot is under way
  std::uint64_t damage_taken_ = 0;          // the sum of loss() at the last take_damage()
  RecordReader reader_;
  RedeliveryQueue redelivery_;

  GroupExpiry expiry_;
  std::uint32_t attempts_max_ = 0;
  DeliveryCounts unsent_;  // the deliveries of messages that plain consumers may have, the present one too
  std::size_t unsent_bytes_max_ = unsent_bytes_min;  // with more, those that were sent are removed
  ClockReading clocks_;
};

/// Returns the offset of the message that is delivered next, if it can be read.
[[nodiscard]] inline Offset upcoming(const GroupMessages& messages) {
  const RedeliveryQueue& redelivery = messages.redelivery();
  return redelivery.ready() ? redelivery.first_ready() : messages.next();
}
/// Returns true if a member has not acknowledged the message, or a plain consumer has not sent it.
[[nodiscard]] bool is_in_flight(const GroupMessages& messages, Offset message);
/// Returns true if the message is not finished.
[[nodiscard]] bool is_unfinished(const GroupMessages& messages, Offset message);
/// Returns the lowest offset at `first` or behind it that is not finished and does not wait: new, ready, in
/// flight.
[[nodiscard]] Offset active_from(const GroupMessages& messages, Offset first);
/// Returns true if messages wait: delayed or dead.
[[nodiscard]] inline bool any_waiting(const GroupMessages& messages) {
  return messages.redelivery().first() && (messages.retrying() != 0 || messages.redelivery().has_dead());
}
/// Returns the first run of messages that ends after `offset` and waits. Nothing if there is none.
[[nodiscard]] std::optional<OffsetRange> waiting_behind(const GroupMessages& messages, Offset offset);
/// Returns how many messages of `range` wait.
[[nodiscard]] std::uint64_t waiting_in(const GroupMessages& messages, OffsetRange range);
}  // namespace lightq::broker
