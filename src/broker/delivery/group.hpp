/// The consumers that share one cursor: each message goes to one of them, in turn. Layer: delivery.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "broker/delivery/group_member.hpp"
#include "broker/delivery/outlet.hpp"
#include "broker/delivery/record_walk.hpp"
#include "broker/delivery/returned_messages.hpp"
#include "broker/delivery/turn_work.hpp"

namespace lightq::broker {

/// Who may be in a group, and whether it keeps messages from being dropped.
struct GroupTerms {
  session::Mode mode = session::Mode::group;  ///< own: at most one consumer, over a session
  bool holds = true;
};

/// Messages that were dropped to make room before a group of the topic was done with them.
struct Drops {
  Offset before;            ///< everything before it has been dropped, and counted
  std::uint64_t count = 0;  ///< what came back from a consumer afterwards is counted then
};

/// A cursor over one topic's log, and its consumers: outlets of plain endpoints, and members over sessions.
/// Both are attached while they are connected. The reactor's thread.
class Group {
 public:
  /// `name` is empty for a group that is forgotten when its consumer goes. What waits to be handed out again
  /// is charged to `user`. Lifetime: `drops` and `budget` outlive it; without a budget ranges are not bounded
  /// in all.
  Group(std::string name, GroupTerms terms, Offset start, Drops& drops, const GroupLimits& group_limits,
        RangeBudget* budget = nullptr, std::uint64_t user = 0)
      : name_(std::move(name)),
        terms_(terms),
        limits_(group_limits),
        walk_(start),
        charge_(budget, user),
        drops_(drops) {
    standing_.budget = budget;
  }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const GroupTerms& terms() const { return terms_; }
  void set_holds(bool holds) { terms_.holds = holds; }

  // Consumers.

  void attach(Outlet& outlet) { outlets_.push_back(&outlet); }
  /// Forgets the outlet; what it had not sent goes to others, before anything newer.
  void detach(Outlet& outlet);
  GroupMember& attach(SessionConsumer& consumer, const session::ConsumeOpen& asked, std::uint64_t user = 0);
  /// Forgets the member; what it had not acknowledged goes to others, before anything newer.
  void detach(GroupMember& member);
  [[nodiscard]] std::size_t consumers() const { return outlets_.size() + members_.size(); }
  [[nodiscard]] std::size_t outlets() const { return outlets_.size(); }
  [[nodiscard]] std::size_t members() const { return members_.size(); }
  /// The members of a user.
  [[nodiscard]] std::size_t members_of(std::uint64_t user) const;
  /// The consumer of a member; null: there is none, or they have all gone.
  [[nodiscard]] SessionConsumer* a_consumer() const;

  // What a member says. What is not outstanding on it is passed over. Returns false, and leaves the rest as
  // it is, if what is outstanding would come into more pieces than there may be.

  bool acknowledge(GroupMember& member, const session::Acknowledge& acknowledged);
  bool reject(GroupMember& member, const session::Reject& rejected, SteadyTime now);
  bool extend(GroupMember& member, const session::Extend& extended, SteadyTime now);
  /// Goes on at `offset`, whatever was handed out, acknowledged or came back before.
  void seek(Offset offset);

  // Handing out.

  struct Handed {
    std::uint64_t messages = 0;  ///< for the first time
    std::uint64_t redelivered = 0;
    std::uint64_t bytes = 0;
    bool more = false;       ///< stopped for its bound while consumers could take more
    bool held_back = false;  ///< came into so many pieces that nothing newer is handed out
    std::uint64_t work_from = TurnWork::bytes();
    [[nodiscard]] std::uint64_t record_bytes() const {
      return bytes + (messages + redelivered) * lightq::record_bytes(0);
    }
    /// That, and what it took to find and unpack them.
    [[nodiscard]] std::uint64_t cost() const { return record_bytes() + (TurnWork::bytes() - work_from); }
  };
  /// Takes back what was not acknowledged in time; then hands out to each in turn, until none takes more, the
  /// log ends or about `bytes_max` bytes of records were taken.
  Handed pump(log::Log& log, std::size_t bytes_max, SteadyTime now);
  /// Why consumers wait though there are messages for them: these cannot be read now. A pump tries again,
  /// twice a second (next_timer). Null: nobody waits for that.
  [[nodiscard]] const Error* unavailable() const;
  /// What a pump does when nothing is to be handed out: takes back what was not acknowledged in time.
  void tend(SteadyTime now) {
    if (next_timer_ <= now) expire(now);
  }
  /// Paused: pump hands nothing out. All else goes on as ever.
  void set_paused(bool paused) { paused_ = paused; }
  [[nodiscard]] bool is_paused() const { return paused_; }
  /// When something is to be taken back, or handed out after a delay: pump then. It may be early.
  [[nodiscard]] SteadyTime next_timer() const { return next_timer_; }

  /// See HostedTopic.
  void fetch_ahead_for_input(unsigned step) const;

  // Where it stands.

  /// The next message that nobody was handed yet.
  [[nodiscard]] Offset next() const { return walk_.offset(); }
  /// The message that is handed out next, if it can be read: the first that came back, or next().
  [[nodiscard]] Offset upcoming() const { return returned_.ready() ? returned_.first_ready() : next(); }
  /// Everything before it is done with: acknowledged, or sent by a plain endpoint. Where the group goes on
  /// after a crash, and what holds the log.
  [[nodiscard]] Offset committed() const;
  /// What is done with beyond committed(): the first `ranges_max` ranges of it at most, and fewer where what
  /// is not done with is in very many.
  [[nodiscard]] std::vector<OffsetRange> acknowledged(
      std::size_t ranges_max = limits::acknowledged_ranges_max) const;
  /// Gives up what came back and lies before `first`, which the log has moved past.
  void give_up_before(Offset first) {
    returned_.give_up_before(first);
    charge_.set(returned_.ranges());
  }
  /// Of a group without consumers: goes on where the one with this `committed` and `acknowledged` stood.
  void restore(Offset committed, const std::vector<OffsetRange>& acknowledged);

  /// Messages that could not be handed out, those that came back from a consumer included.
  [[nodiscard]] WalkLoss loss() const;
  /// Where such failed their checks, as far as nobody has taken that yet.
  [[nodiscard]] std::vector<OffsetRange> take_damage();
  /// Messages in `range` that were not handed out yet, or came back and wait for another.
  [[nodiscard]] std::uint64_t unhanded_in(OffsetRange range) const;
  // The states of what it is not done with, in a log from `first` to `next`: each message is in one of them.

  /// Messages that can be handed out now, for the first time or again.
  [[nodiscard]] std::uint64_t ready(Offset first, Offset next) const {
    return distance(std::max(this->next(), first), next) + returned_.ready_messages();
  }
  /// Messages that were rejected for a while that has not passed.
  [[nodiscard]] std::uint64_t retrying() const { return returned_.delayed_messages(); }
  /// Messages that members have not acknowledged, or outlets have not sent.
  [[nodiscard]] std::uint64_t in_flight() const;
  /// Messages that members have not acknowledged.
  [[nodiscard]] std::uint64_t unacknowledged() const { return standing_.messages; }
  /// Work done since the start beside handing out, for tests: members that were asked whether they can take
  /// messages, and ranges that were walked over in search of what is due.
  [[nodiscard]] std::uint64_t members_asked() const { return standing_.members_asked; }
  [[nodiscard]] std::uint64_t ranges_walked() const {
    return standing_.ranges_walked + returned_.ranges_walked();
  }
  /// Messages handed out again, each time.
  [[nodiscard]] std::uint64_t redelivered() const { return redelivered_; }

 private:
  bool hand_over(Offset offset, ByteView payload);
  bool pump_returned_to_outlets(log::Log& log, Handed& handed);
  void pump_outlets(log::Log& log, std::size_t bytes_max, Handed& handed);
  bool turn_of_outlets(log::Log& log, Handed& handed);
  bool turn_of_members(log::Log& log, std::size_t bytes_max, SteadyTime now, Handed& handed);
  bool hand_slice(log::Log& log, GroupMember& member, SteadyTime now, Handed& handed);
  std::uint32_t deliver(GroupMember& member, const HandedSlice& handed, SteadyTime now);
  [[nodiscard]] bool may_go_on() const;
  [[nodiscard]] bool is_in_pieces() const {
    return returned_.ranges() >= limits_.returned_ranges_max || !charge_.has_room();
  }
  std::uint64_t take_untold_loss();
  void acknowledge_overdue(GroupMember& member, OffsetRange range, std::vector<OffsetRange>& late);
  void come_back(OffsetRange range, std::uint32_t deliveries);
  void count_if_dropped(OffsetRange range);
  void expire(SteadyTime now);
  void hand_out(log::Log& log, std::size_t bytes_max, SteadyTime now, Handed& handed);
  void wait_until(SteadyTime when) { next_timer_ = std::min(next_timer_, when); }

  std::string name_;
  GroupTerms terms_;
  const GroupLimits limits_;
  RecordWalk walk_;
  ReturnedMessages returned_;
  RangeCharge charge_;  // for returned_
  Drops& drops_;
  std::vector<Outlet*> outlets_;
  GroupStanding standing_;                             // of members_
  std::vector<std::unique_ptr<GroupMember>> members_;  // in the order they came
  std::vector<GroupMember*> unflushed_;                // of these, within a pump
  bool paused_ = false;
  bool held_back_ = false;       // is_in_pieces at the last pump
  std::size_t outlet_turn_ = 0;  // who is asked next
  SteadyTime next_timer_ = never;
  SteadyTime read_again_{};  // while the log is unavailable: not before
  std::uint64_t redelivered_ = 0;
  std::uint64_t loss_told_ = 0;  // to members
};

}  // namespace lightq::broker
