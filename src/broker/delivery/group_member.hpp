/// A consumer over a session as a member of its group: its credit, and what it has not acknowledged. Layer:
/// delivery.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <lightq/base/fetch_ahead.hpp>
#include <lightq/protocol/session_consuming.hpp>

#include "broker/delivery/group_limits.hpp"
#include "broker/delivery/group_standing.hpp"
#include "broker/delivery/group_time.hpp"
#include "broker/delivery/range_map.hpp"
#include "broker/delivery/session_consumer.hpp"

namespace lightq::broker {

/// How messages were handed to a member.
struct Handing {
  std::uint32_t delivery = 1;  ///< how often they were handed out, that time included
  SteadyTime deadline;         ///< of the acknowledgement
  friend bool operator==(const Handing&, const Handing&) = default;
};

/// The reactor's thread.
class GroupMember {
 public:
  /// A member of `user`. Takes nothing before `begin`. Lifetime: the consumer outlives it, or `abandon`s it;
  /// `standing` outlives it.
  GroupMember(SessionConsumer& consumer, const session::ConsumeOpen& asked, const GroupLimits& group_limits,
              GroupStanding& standing, std::uint64_t user);
  GroupMember(const GroupMember&) = delete;
  GroupMember& operator=(const GroupMember&) = delete;
  ~GroupMember();

  [[nodiscard]] std::uint64_t user() const { return user_; }
  [[nodiscard]] SessionConsumer* consumer() const { return consumer_; }
  /// The consumer may be handed messages.
  void begin() {
    begun_ = true;
    wake();
  }
  /// Something has changed that may let it take messages: its consumer is writable, for example.
  void wake();
  /// It was asked and cannot take messages: it is not asked again before `wake`.
  void rest();
  /// The consumer is gone: it is not spoken to any more.
  void abandon() { consumer_ = nullptr; }

  /// It has credit, room for what it has not acknowledged, and a consumer that is writable.
  [[nodiscard]] bool can_take() const;
  /// What it may take now. Not 0 while can_take.
  [[nodiscard]] std::uint64_t messages_left() const {
    return std::min(messages_left_, limits_.in_flight_messages_max - outstanding_.messages());
  }
  [[nodiscard]] std::uint64_t bytes_left() const {
    return bytes_left_ > 0 ? static_cast<std::uint64_t>(bytes_left_) : 0;
  }
  /// Of compressed batches, which it can read.
  [[nodiscard]] CodecSet codecs() const { return consumer_ == nullptr ? CodecSet() : consumer_->codecs(); }
  /// False, and nothing is changed: more than the protocol allows.
  [[nodiscard]] bool add_credit(const session::Credit& credit);

  /// Hands it the slice. Requires can_take, and a slice within what is left. What it took, from the slice's
  /// first record on.
  std::uint32_t deliver(const HandedSlice& handed, SteadyTime now);
  [[nodiscard]] bool is_unflushed() const { return unflushed_; }
  /// Tells the consumer that this turn's slices have been delivered, if any were.
  void flush();
  /// See HostedTopic.
  void fetch_ahead_for_input() const { fetch_ahead(consumer_, 128); }

  /// What was handed to it and not acknowledged, rejected or taken back.
  [[nodiscard]] const RangeMap<Handing>& outstanding() const { return outstanding_; }
  /// Takes `range` out of that, and calls `removed(part, handing)` for each part.
  template <typename Removed>
  void cut(OffsetRange range, Removed&& removed) {
    outstanding_.cut(range, removed);
    settle();
  }
  void cut(OffsetRange range) {
    cut(range, [](OffsetRange, const Handing&) {});
  }
  /// Nothing is outstanding any more.
  void clear() {
    outstanding_.clear();
    overdue_.clear();
    settle();
  }
  /// Returns true if messages were taken back from it that it has not acknowledged since.
  [[nodiscard]] bool has_overdue() const { return !overdue_.empty(); }
  /// Forgets what of `range` was taken back from it, and calls `removed(part)` for each part, ascending.
  template <typename Removed>
  void take_overdue(OffsetRange range, Removed&& removed) {
    overdue_.cut(range, [&](OffsetRange part, bool) { removed(part); });
    settle();
  }
  /// Sets the deadline of what is outstanding in `range`.
  void extend(OffsetRange range, SteadyTime deadline);
  /// Takes back what should have been acknowledged by now: calls `removed(range, handing)` for it. A member
  /// in many pieces is looked at less often (walk_again_after).
  template <typename Removed>
  void expire(SteadyTime now, Removed&& removed) {
    if (now < next_deadline_) return;
    standing_.ranges_walked += outstanding_.ranges();
    const SteadyTime again = walk_again_after(now, outstanding_.ranges());
    outstanding_.cut_if([&](const Handing& handing) { return handing.deadline <= now; },
                        [&](OffsetRange range, const Handing& handing) {
                          note_overdue(range);
                          removed(range, handing);
                        });
    next_deadline_ = never;
    outstanding_.for_each([&](OffsetRange, const Handing& handing) {
      next_deadline_ = std::min(next_deadline_, handing.deadline);
    });
    not_before_ = again;
    next_deadline_ = std::max(next_deadline_, not_before_);
    settle();
  }
  /// When to call it. It may be early.
  [[nodiscard]] SteadyTime next_deadline() const { return next_deadline_; }

  /// What it has outstanding does not fit its limit any more.
  [[nodiscard]] bool is_in_pieces() const { return outstanding_.ranges() > limits_.outstanding_ranges_max; }
  /// It is in pieces, or its user has as many ranges as there are for it.
  [[nodiscard]] bool is_out_of_ranges() const { return is_in_pieces() || !charge_.has_room(); }
  [[nodiscard]] std::size_t pieces_max() const { return limits_.outstanding_ranges_max; }
  [[nodiscard]] std::uint32_t ack_timeout_ms() const { return ack_timeout_ms_; }

 private:
  static constexpr std::size_t overdue_ranges_max = 64;

  void settle();
  /// A consumer in more pieces is not told what it acknowledges too late.
  void note_overdue(OffsetRange range) {
    if (consumer_ == nullptr || !consumer_->hears_late()) return;
    overdue_.assign(range, true);
    if (overdue_.ranges() > overdue_ranges_max) overdue_.clear();
  }
  void expect(SteadyTime deadline) {
    next_deadline_ = std::min(next_deadline_, std::max(deadline, not_before_));
  }

  SessionConsumer* consumer_;
  const bool automatic_;
  const std::uint32_t ack_timeout_ms_;
  const GroupLimits limits_;
  bool begun_ = false;
  bool unflushed_ = false;
  std::uint64_t messages_left_;
  std::int64_t bytes_left_;  // less than 0 by up to one message
  RangeMap<Handing> outstanding_;
  RangeMap<bool> overdue_;  // taken back in time, not acknowledged and not handed to it since
  SteadyTime next_deadline_ = never;
  SteadyTime not_before_{};  // deadlines are not looked at again
  GroupStanding& standing_;
  const std::uint64_t user_;
  RangeCharge charge_;
  std::uint64_t counted_messages_ = 0;  // in standing_
  std::optional<Offset> counted_front_;
  bool counted_overdue_ = false;
  MemberTurns::Place place_;
  bool resting_ = true;
};

}  // namespace lightq::broker
