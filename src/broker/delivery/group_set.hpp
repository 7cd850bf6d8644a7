/// A topic's groups: which there are, who of them holds the log, and what the disk keeps of them. Layer:
/// delivery.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/protocol/control.hpp>

#include "broker/delivery/damage_count.hpp"
#include "broker/delivery/group.hpp"
#include "broker/delivery/log_lives.hpp"
#include "log/cursor_file.hpp"

namespace lightq::broker {

/// As statistics say why consumers wait: empty for null, else `disk`, with `: ` and the system's word where
/// there is one.
std::string blocked_by_disk(const Error* unavailable);

/// The reactor's thread. docs/design.md, "Who holds the log".
class GroupSet {
 public:
  /// `direct`: a group without consumers keeps nothing. The log outlives it.
  /// `budget`: of the ranges that all groups of the reactor keep; null: not bounded. It outlives this.
  GroupSet(log::Log& log, bool direct, const GroupLimits& group_limits, RangeBudget* budget = nullptr)
      : log_(log), direct_(direct), limits_(group_limits), budget_(budget) {}
  GroupSet(const GroupSet&) = delete;
  GroupSet& operator=(const GroupSet&) = delete;

  // Which there are.

  [[nodiscard]] Group* find(std::string_view name) const;
  /// The group of plain pullers, if it exists.
  [[nodiscard]] Group* plain() const { return plain_; }
  /// The same, from the first plain join on.
  Group& open_plain();
  /// Of what there may be no more.
  enum class Crowd {
    groups,            ///< of the topic
    members_of_group,  ///< of the group
    members_of_all     ///< of all groups of the reactor
  };
  struct Opened {
    /// Of another mode, a name that is none, one too many, or a place in messages that cannot be read now.
    session::Code refusal = session::Code::ok;
    Group* group = nullptr;       ///< without a refusal
    Crowd crowd = Crowd::groups;  ///< of whom there are as many as may be, with limit_reached
  };
  /// The group that is asked for; a new one, which is the user's until a restart, if there is none. `owner`:
  /// whose a consumer's own cursor is from then on, where that is another number; 0: the administrator's.
  /// A start at an offset of an earlier life of the log is at most where the messages are the same.
  Opened open(const session::ConsumeOpen& asked, const LogLives& lives, std::uint64_t user = 0,
              std::optional<std::uint64_t> owner = std::nullopt);
  /// Whose the consumer's own cursor of this name is; nothing: there is none, or nobody has opened it.
  [[nodiscard]] std::optional<std::uint64_t> owner_of(const std::string& name) const;
  /// Nobody's any more, until it is opened.
  void disown(const std::string& name);
  /// Requires that it has no consumers.
  void remove(Group& group);
  /// The group goes on there. The offset that comes next. Errors: io_error where the place has to be looked
  /// for in messages that cannot be read now; then the group stays where it is.
  Result<Offset> seek(Group& group, const session::Place& to);
  /// The group goes on behind all that is stored; what it has handed out is done with. How many messages it
  /// was not done with.
  std::uint64_t pass_over(Group& group);
  /// Likewise all of them.
  void pass_over_all();
  /// Nothing is handed out by any group, whether it is paused itself or not.
  void set_paused(bool paused) { paused_ = paused; }

  /// See HostedTopic. Of all groups the first only: a topic with many is at work on itself.
  void fetch_ahead_for_input(unsigned step) const;

  // Who is connected.

  void attach(Outlet& outlet);
  void detach(Outlet& outlet);
  GroupMember& attach(Group& group, SessionConsumer& consumer, const session::ConsumeOpen& asked,
                      std::uint64_t user = 0);
  void detach(Group& group, GroupMember& member);
  [[nodiscard]] std::size_t pullers() const { return plain_ == nullptr ? 0 : plain_->outlets(); }
  [[nodiscard]] std::size_t members() const { return members_; }

  // The log.

  /// The group that has come least far, of those that hold the log now.
  [[nodiscard]] const Group* slowest_holder() const;
  /// What no cursor of a group needs any more; nothing while no group has joined that holds the log, whose
  /// consumers may still come.
  [[nodiscard]] std::optional<Offset> passed() const;
  /// Messages of `range` were dropped to make room. False: no group holds the log, nobody claimed them.
  bool count_dropped(OffsetRange range);
  /// Messages that a group that holds the log lost to `drop_oldest`, or to `direct` with nobody left to take
  /// them.
  [[nodiscard]] std::uint64_t dropped() const { return drops_.count; }

  struct Pumped {
    std::uint64_t to_plain_group = 0;  ///< messages, for the first time
    std::uint64_t deliveries = 0;      ///< messages
    Offset furthest_of_others;         ///< as far as any but the plain group was handed messages
    std::uint64_t bytes = 0;
    bool more = false;
    bool progress = false;
    std::uint64_t held_back = 0;  ///< groups that have come to returned_ranges_max
  };
  /// Gives up what came back and lies before the log's first offset.
  void give_up_dropped();
  /// Hands out in each group, about `bytes_max` bytes. Where that takes much unpacking and searching, it ends
  /// early with `more`, and the next pump begins with the group that is next.
  Pumped pump(std::size_t bytes_max, SteadyTime now, DamageCount& damage);
  /// When a pump has something to take back or to hand out after a delay.
  [[nodiscard]] SteadyTime next_timer() const;
  /// See Group; of the first group that has any.
  [[nodiscard]] const Error* unavailable() const;
  /// As far as any but the plain group has come.
  [[nodiscard]] Offset furthest_of_others() const;

  // The disk.

  /// What is to be kept of those that have a name, with about `ranges_max` ranges behind committed offsets in
  /// all: each group has the same part of them.
  [[nodiscard]] std::vector<log::NamedCursor> cursors(
      std::size_t ranges_max = std::numeric_limits<std::size_t>::max()) const;
  /// Takes up what is stored of groups, in any order: cursors, clamped to the log's end, and who is paused.
  /// What else is stored is passed over. Before anybody joins.
  void restore(const std::vector<log::NamedCursor>& stored);
  /// Cursors from now on are on their way to the disk; they are there, or not.
  void save_begun() { births_saving_ = births_; }
  void save_ended(bool well) {
    if (well) births_saved_ = births_saving_;
  }
  /// That the group is there is on the disk, or need not be.
  [[nodiscard]] bool is_saved(const Group& group) const;
  /// It is not, and no plain endpoint has joined it either: where the disk keeps groups, nobody knows of it
  /// yet.
  [[nodiscard]] bool is_provisional(const Group& group) const;

  /// The plain group first. `now`: the log's time.
  [[nodiscard]] std::vector<protocol::GroupStats> stats(Timestamp now) const;

 private:
  struct Entry {
    std::unique_ptr<Group> group;
    std::uint64_t birth = 0;  ///< 0: it was stored
    bool joined_plainly = false;
    std::uint64_t user = 0;  ///< who began it, and whose groups it counts among; 0: nobody in particular
    /// Of a consumer's own cursor: who opened it first since the start; 0: the administrator. Nothing: nobody
    /// has.
    std::optional<std::uint64_t> owner;
    Offset committed_known{};  ///< at the last pump
  };

  [[nodiscard]] bool has_room_for(std::uint64_t user) const;
  [[nodiscard]] const Entry& entry_of(const Group& group) const;
  [[nodiscard]] bool takes_over(const Group& group, std::uint64_t owner);
  [[nodiscard]] bool has_room_in(const Group& group, std::uint64_t user) const;
  Group& add(std::string name, GroupTerms terms, Offset start, std::uint64_t birth, std::uint64_t user = 0);
  [[nodiscard]] bool holds_now(const Group& group) const {
    return group.terms().holds && (!direct_ || group.consumers() > 0);
  }
  void pump_group(Entry& entry, std::size_t bytes_max, SteadyTime now, DamageCount& damage, Pumped& pumped);
  void drop_unclaimed_direct(Group& group);
  void restore_cursor(const log::NamedCursor& stored);
  [[nodiscard]] protocol::GroupStats stats_of(const Group& group, Timestamp now) const;

  log::Log& log_;
  const bool direct_;
  const GroupLimits limits_;
  RangeBudget* const budget_;
  std::vector<Entry> groups_;  // in the order of their birth
  std::size_t first_to_pump_ = 0;
  Group* plain_ = nullptr;  // of these
  std::size_t members_ = 0;
  Drops drops_;
  bool paused_ = false;
  std::uint64_t births_ = 0;
  std::uint64_t births_saving_ = 0;
  std::uint64_t births_saved_ = 0;
};

}  // namespace lightq::broker
