/// A consumer group: consumers that share one cursor, so that each message goes to one of them.
/// Layer: delivery.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <lightq/base/fetch_ahead.hpp>

#include "delivery/draining.hpp"
#include "delivery/group_dead.hpp"
#include "delivery/group_failures.hpp"
#include "delivery/group_member.hpp"
#include "delivery/group_messages.hpp"
#include "delivery/group_returns.hpp"
#include "delivery/record_sink.hpp"
#include "delivery/slice_source.hpp"
#include "delivery/state/ack.hpp"
#include "delivery/state/consume_request.hpp"
#include "delivery/state/turn_result.hpp"

namespace lightq::broker {

/// A cursor over one topic's log, and the consumers that share it: plain ones, and members over sessions.
/// Plain consumers and members are attached while they are connected.
/// Owns the members, the position in the log and the messages that wait for redelivery. ConsumerGroups owns
/// and calls each group. Thread: the reactor's.
/// Each message from committed() to next() is in flight, waits for redelivery, or is done. Done means
/// acknowledged, or sent by a plain endpoint. Example: the group has delivered offsets 0 to 9. 0 to 2 and 5
/// are acknowledged, 4 was rejected, the others are in flight. Then next() is 10, committed() is 3, 4 is in
/// the redelivery queue, and of the messages from 3 on only 5 is done.
class ConsumerGroup {
 public:
  /// Creates a group that starts at `start`. An empty `name` means that the group is removed with its
  /// consumer. The memory of messages that wait for redelivery is charged to `user`.
  /// Lifetime: `drops` and `budget` outlive the group. Without a budget the memory of all groups together is
  /// not bounded.
  ConsumerGroup(std::string name, GroupTerms terms, Offset start, Drops& drops,
                const GroupLimits& group_limits, RangeBudget* budget = nullptr, std::uint64_t user = 0)
      : terms_(terms),
        messages_({standing_, plain_consumers_, members_}, start, group_limits, budget, user),
        failures_(messages_, standing_),
        returns_({terms_, standing_, messages_, failures_, drops}),
        name_(std::move(name)),
        limits_(group_limits) {
    roll_.budget = budget;
  }
  ConsumerGroup(const ConsumerGroup&) = delete;
  ConsumerGroup& operator=(const ConsumerGroup&) = delete;
  // Members update fields declared after `members_`, so they are destroyed first.
  ~ConsumerGroup() { members_.clear(); }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const GroupTerms& terms() const { return terms_; }
  void set_holds(bool holds) { terms_.holds = holds; }
  /// Changes the rules for messages that fail. Messages that wait follow them within the next dispatches. A
  /// new processing timeout applies to members that are attached later.
  /// Returns true if messages were parked, because there is no dead-letter topic now.
  bool set_settings(const GroupSetup& setup);

  // Consumers.

  void attach(RecordSink& consumer) { plain_consumers_.push_back(&consumer); }
  /// Removes the consumer. The group delivers its unsent messages to others, before any newer message.
  void detach(RecordSink& consumer);
  GroupMember& attach(SessionConsumer& consumer, const ConsumeRequest& asked, std::uint64_t user = 0);
  /// Removes the member. The group delivers its unacknowledged messages to others, before any newer message
  /// but for the delay that the settings give to lost messages; `now` counts for that. See MemberEnd.
  void detach(GroupMember& member, SteadyTime now = {});
  [[nodiscard]] std::size_t consumers() const { return plain_consumers_.size() + members_.size(); }
  [[nodiscard]] std::size_t plain_consumers() const { return plain_consumers_.size(); }
  [[nodiscard]] std::size_t members() const { return members_.size(); }
  /// Returns the consumer of some member, or null if no member has one.
  [[nodiscard]] SessionConsumer* a_consumer() const;

  // Requests of a member. Each function ignores ranges that are not in flight on the member with the
  // request's hand-out number. If a range splits the member's messages in flight into too many ranges, the
  // function ignores the remaining ranges and returns false. All but `start` and a release report late ranges
  // to a consumer with leases.

  /// Finishes messages. Without leases, those that were taken back from the member and wait for redelivery
  /// since are finished, too, in at most 1,024 parts; the member's consumer is told that the others were
  /// late. With leases, all that were taken back are late.
  bool acknowledge(GroupMember& member, const Ack& acknowledged);
  /// `wall`: the time of a death, for its record; the default: about the time of the last dispatch.
  bool reject(GroupMember& member, const Rejection& rejected, SteadyTime now, Timestamp wall = {});
  bool extend(GroupMember& member, const Extension& extended, SteadyTime now);
  bool start(GroupMember& member, const Start& started, SteadyTime now);
  /// Moves the cursor to `offset`. Forgets which messages are in flight, acknowledged or waiting for
  /// redelivery. Tells consumers with leases that their messages are revoked.
  void seek(Offset offset, RevokeCause cause = RevokeCause::seek);

  // Dispatch.

  /// Takes back messages that were not acknowledged in time. Then delivers to the consumers in turn until
  /// none takes more, the log ends, or about `context.cursor_bytes_max` bytes of records were taken.
  TurnResult dispatch(log::BatchLog& log, const DeliveryContext& context);
  /// Returns the error because of which consumers wait: the messages for them are unavailable. `dispatch`
  /// tries to read them again twice a second (next_timer). Returns null if no consumer waits for this reason,
  /// for example if no member can take messages.
  [[nodiscard]] const Error* unavailable() const;
  /// Takes back messages that were not acknowledged in time, and delivers nothing. For a paused topic.
  void tend(const DeliveryContext& context);
  /// Restores the messages that were saved. Requires: no consumers.
  void restore(const log::Unfinished& saved, const ClockReading& clocks);
  /// Pauses or resumes the group. While it is paused, `dispatch` delivers nothing; everything else works.
  void set_paused(bool paused, PauseCause cause = PauseCause::command);
  [[nodiscard]] bool is_paused() const { return paused_; }
  /// Returns when to call `dispatch` next, to take back messages or to deliver delayed ones. The call may
  /// find nothing to do.
  [[nodiscard]] SteadyTime next_timer() const {
    return std::min(next_timer_, messages_.redelivery().next_due());
  }

  /// Returns the end of the hot fields: those from the object's start that each delivery and acknowledgement
  /// uses.
  [[nodiscard]] const void* hot_end() const { return messages_.hot_end(); }
  /// Prefetches memory that a delivery will use; see TopicRuntime. Requires: the hot part was prefetched.
  void fetch_ahead_for_input(unsigned step) const;

  // State.

  /// Returns the messages: their numbers in each state, losses, and snapshots.
  [[nodiscard]] const GroupMessages& messages() const { return messages_; }
  [[nodiscard]] GroupMessages& messages() { return messages_; }
  /// Returns the part that takes messages back from consumers.
  [[nodiscard]] GroupReturns& returns() { return returns_; }
  /// Returns the part that applies the settings to messages that fail. It has the counters, too.
  [[nodiscard]] const GroupFailures& failures() const { return failures_; }
  /// Returns a view of the dead messages, for commands and transfers.
  [[nodiscard]] GroupDead dead() { return {messages_, failures_}; }
  /// Returns why the group delivers nothing, or `none`. A pause by command counts first.
  [[nodiscard]] PauseCause pause_cause() const;
  /// Returns the offset of the next message that was never delivered.
  [[nodiscard]] Offset next() const { return messages_.next(); }
  /// Returns the offset below which all messages are acknowledged, or sent by a plain endpoint. A group that
  /// holds the log keeps the messages from here on.
  [[nodiscard]] Offset committed() const { return messages_.committed(); }
  /// Returns the sums over the members.
  [[nodiscard]] const GroupStanding& standing() const { return standing_; }
  /// Returns the number of deliveries with a number above 1. Each number of a message counts once.
  [[nodiscard]] std::uint64_t redelivered() const { return redelivered_; }

 private:
  class MemberTurn;
  class Turns;
  void pass_deadlines(SteadyTime now);
  void wait_until(SteadyTime when) { next_timer_ = std::min(next_timer_, when); }

  // The hot fields, down to the first bytes of messages_: used by each delivery, acknowledgement and
  // committed(). They are contiguous, because with many groups each cache line costs an access to memory.
  // hot_end() depends on this order, which HotFields checks.
  struct HotFields;
  GroupTerms terms_;
  bool paused_ = false;
  bool held_back_ = false;     // the redelivery queue was full at the last dispatch
  bool plain_begins_ = false;  // plain consumers go first in the next turn
  bool has_settings_ = false;  // other ones than the defaults
  PauseCause paused_by_ = PauseCause::none;
  SteadyTime next_timer_ = never;  // for all but delayed messages
  SteadyTime read_again_{};        // the log was unavailable: do not read before this time
  std::uint64_t redelivered_ = 0;
  std::uint64_t loss_told_ = 0;  // the loss that members were told of
  std::vector<RecordSink*> plain_consumers_;
  std::vector<std::unique_ptr<GroupMember>> members_;  // in the order in which they joined
  std::vector<GroupMember*> unflushed_;                // some of members_, during a dispatch
  GroupStanding standing_{roll_};                      // sums over members_
  GroupMessages messages_;

  std::size_t plain_turn_ = 0;   // the plain consumer that is asked next
  Draining draining_{members_};  // for messages that are to be alone
  GroupFailures failures_;
  GroupReturns returns_;
  std::string name_;
  const GroupLimits limits_;
  GroupRoll roll_;
};

}  // namespace lightq::broker
