/// A topic's consumer groups: which exist, which of them hold the log, and which are on disk. Layer:
/// delivery.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lightq/protocol/control.hpp>

#include "delivery/consumer_group.hpp"
#include "delivery/state/client_error.hpp"
#include "delivery/state/damage_count.hpp"
#include "delivery/state/log_lives.hpp"

namespace lightq::broker {

/// Returns the text with which statistics explain why consumers wait. It is empty for null, else `disk`,
/// followed by `: ` and the system's error text if there is one.
std::string blocked_by_disk(const Error* unavailable);

/// Returns the messages that were carried over from the log, or null if there are none.
[[nodiscard]] const log::OffsetSet* carried_offsets(log::BatchLog& log);

/// Returns true if the group holds the log now. `direct`: the topic keeps nothing for groups without
/// consumers.
[[nodiscard]] inline bool is_holder(const ConsumerGroup& group, bool direct) {
  return group.terms().holds && (!direct || group.consumers() > 0);
}

/// Returns the offset from which on the group needs the messages of the log. Messages that were carried over,
/// or dropped, do not count.
[[nodiscard]] Offset needed_from(const ConsumerGroup& group, log::BatchLog& log);

/// Numbers the groups of a topic in the order of their creation, and records which of them are on disk.
/// A plain value for one thread.
class GroupBirths {
 public:
  /// The number of a group that was found on disk.
  static constexpr std::uint64_t restored = 0;

  /// Returns the number of a group that is created now.
  std::uint64_t next() { return ++last_; }
  /// Marks the present groups as being saved. save_ended() says whether they are on disk.
  void save_begun() { saving_ = last_; }
  void save_ended(bool well) {
    if (well) saved_ = saving_;
  }
  [[nodiscard]] bool is_saved(std::uint64_t birth) const { return birth <= saved_; }

 private:
  std::uint64_t last_ = 0;
  std::uint64_t saving_ = 0;
  std::uint64_t saved_ = 0;
};

/// Owns the groups of one topic: opens and removes them, and dispatches to them in turn. GroupCursors saves
/// and restores them.
/// A group *holds the log* if messages that it has not committed must stay. docs/design.md, "Semantics",
/// gives the rules.
/// Topic owns it and calls it. Thread: the reactor's.
class ConsumerGroups {
 public:
  /// Creates an empty set. `direct`: a group without consumers keeps no messages. `budget` bounds the ranges
  /// and sets that all groups of the reactor keep; null means no bound.
  /// Lifetime: the log and the budget outlive the set.
  ConsumerGroups(log::BatchLog& log, bool direct, const GroupLimits& group_limits,
                 RangeBudget* budget = nullptr)
      : log_(log), direct_(direct), budget_(budget), limits_(group_limits) {}
  ConsumerGroups(const ConsumerGroups&) = delete;
  ConsumerGroups& operator=(const ConsumerGroups&) = delete;

  // The groups.

  [[nodiscard]] ConsumerGroup* find(std::string_view name) const;
  /// Returns the group of plain pullers, or null if it does not exist yet.
  [[nodiscard]] ConsumerGroup* plain() const { return plain_; }
  /// Returns the group of plain pullers, and creates it at the first plain join.
  ConsumerGroup& open_plain();
  /// The limit that is reached.
  enum class Crowd {
    groups,            ///< groups of the topic
    members_of_group,  ///< members of the group
    members_of_all     ///< members of all groups of the reactor
  };
  struct Opened {
    /// Why the group was not opened: another mode, an invalid name, another user's cursor, an incarnation
    /// that has changed, a limit, or a start among messages that cannot be read now.
    ClientError refusal = ClientError::none;
    ConsumerGroup* group = nullptr;  ///< set without a refusal
    Crowd crowd = Crowd::groups;     ///< the limit, with limit_reached
  };
  /// Returns the group that is asked for, or creates it. A new group counts as the user's until a restart.
  /// The state of a group that was found on disk is charged to the first user that opens the group. `owner`
  /// is the owner of a consumer's own cursor where that differs from `user`; 0 is the administrator. A start
  /// offset from an earlier life of the log is lowered to the offset up to which the messages are the same.
  Opened open(const ConsumeRequest& asked, const LogLives& lives, std::uint64_t user = 0,
              std::optional<std::uint64_t> owner = std::nullopt);
  /// Returns the owner of the consumer's own cursor `name`. Returns nothing if there is none or no client has
  /// opened it.
  [[nodiscard]] std::optional<std::uint64_t> owner_of(const std::string& name) const;
  /// Removes the owner of the cursor `name`. The next user that opens it becomes its owner.
  void disown(const std::string& name);
  /// Sets the settings of the group `name`, whether it exists now or later. The defaults forget them.
  /// Returns true if messages were parked, because the group has no dead-letter topic now.
  bool set_settings(const std::string& name, const GroupSetup& setup);
  /// Removes the group, but not its settings. Requires: it has no consumers.
  void remove(ConsumerGroup& group);
  /// Moves the group's cursor and returns the offset that it delivers next. Errors: io_error if finding the
  /// place requires messages that cannot be read now; the cursor stays where it was.
  Result<Offset> seek(ConsumerGroup& group, const StartPosition& to);
  /// Moves the group's cursor behind all stored messages. Messages in flight count as finished. Returns how
  /// many messages the group had not finished.
  std::uint64_t pass_over(ConsumerGroup& group);
  /// Calls `visit(group)` for each group, in the order of their creation.
  template <typename Visit>
  void for_each(Visit&& visit) {
    for (Entry& entry : groups_) visit(*entry.group);
  }
  /// Pauses or resumes delivery in all groups, independently of each group's own pause.
  void set_paused(bool paused) { paused_ = paused; }

  /// Prefetches memory that a delivery will use; see TopicRuntime. Covers only the first group, because a
  /// topic with many groups has enough other work.
  void fetch_ahead_for_input(unsigned step) const;
  /// Returns the end of the part that a publish, a delivery or an acknowledgement uses. The part starts with
  /// the object.
  [[nodiscard]] const void* hot_end() const { return &drops_; }

  // Connected consumers.

  void attach(RecordSink& consumer);
  void detach(RecordSink& consumer);
  GroupMember& attach(ConsumerGroup& group, SessionConsumer& consumer, const ConsumeRequest& asked,
                      std::uint64_t user = 0);
  void detach(ConsumerGroup& group, GroupMember& member, SteadyTime now = {});
  [[nodiscard]] std::size_t pullers() const { return plain_ == nullptr ? 0 : plain_->plain_consumers(); }
  [[nodiscard]] std::size_t members() const { return members_; }

  // The log.

  /// Returns the group with the lowest cursor among those that hold the log now, or null if there is none.
  [[nodiscard]] const ConsumerGroup* slowest_holder() const;
  /// Returns the offset below which no group needs the messages. Returns nothing until a group in mode
  /// `group` exists, because its consumers may still join.
  [[nodiscard]] std::optional<Offset> passed() const;
  /// Calls `visit(group)` for each group that holds the log now, until it returns false. Returns whether it
  /// never did.
  template <typename Visit>
  bool each_holder(Visit&& visit) const {
    return std::ranges::all_of(groups_, [&](const Entry& entry) {
      return !is_holder(*entry.group, direct_) || visit(std::as_const(*entry.group));
    });
  }
  /// Counts messages of `range` that were dropped to make space. Returns false if no group holds the log, so
  /// no group had a claim to them.
  bool count_dropped(OffsetRange range);
  /// Returns how many messages were lost to groups that hold the log. `drop_oldest` dropped them, or they
  /// were left over in a `direct` topic when a group's last consumer left.
  [[nodiscard]] std::uint64_t dropped() const { return drops_.count; }

  struct DispatchResult {
    std::uint64_t to_plain_group = 0;  ///< messages delivered for the first time
    std::uint64_t deliveries = 0;      ///< messages
    Offset furthest_of_others;         ///< highest next() among the other groups that received messages
    std::uint64_t bytes = 0;
    bool more = false;
    bool progress = false;
    std::uint64_t held_back = 0;  ///< groups whose redelivery queue is newly full
    bool dead_waiting = false;    ///< a group has dead messages that wait for a transfer
  };
  /// Removes messages that can no longer be read from all redelivery queues: those below the log's first
  /// offset that were not carried over. `all`: see RedeliveryQueue::give_up_before.
  void give_up_dropped(bool all = true);
  /// Dispatches in each group, up to about `context.cursor_bytes_max` bytes per group. If finding and
  /// unpacking messages takes too much work, it returns early with `more`. The next dispatch then begins with
  /// the next group.
  DispatchResult dispatch(const DeliveryContext& context, DamageCount& damage);
  /// Returns when to call `dispatch` next, to take back messages or to deliver delayed ones.
  [[nodiscard]] SteadyTime next_timer() const;
  /// Returns why consumers of the first affected group wait; see ConsumerGroup::unavailable.
  [[nodiscard]] const Error* unavailable() const;
  /// Returns the highest next offset of all groups other than the plain one.
  [[nodiscard]] Offset furthest_of_others() const;

  // The disk.

  enum class Listed : std::uint8_t { named, all };
  /// Returns the groups with a name, or all, in the order of their creation. Lifetime: until groups are added
  /// or removed.
  [[nodiscard]] std::vector<ConsumerGroup*> list(Listed which) const;
  /// Adds a group that was found on disk. Requires: there is none of this name.
  ConsumerGroup& add_restored(std::string name, GroupTerms terms, Offset start) {
    return add(std::move(name), terms, start, GroupBirths::restored);
  }
  /// Returns the record of groups that are on disk.
  [[nodiscard]] GroupBirths& births() { return births_; }
  /// Returns true if the group is on disk, or has no name and is not saved.
  [[nodiscard]] bool is_saved(const ConsumerGroup& group) const;
  /// Returns true if the group is not on disk and no plain endpoint has joined it. In a topic that saves
  /// groups, no client knows of such a group yet.
  [[nodiscard]] bool is_provisional(const ConsumerGroup& group) const;

  /// Returns the statistics of all groups, the plain group first. `clocks`: the log's time. `members_max`:
  /// the most members, of all groups together; 0: the groups have no lists.
  [[nodiscard]] std::vector<protocol::GroupStats> stats(const ClockReading& clocks,
                                                        std::uint64_t members_max = 0) const;

 private:
  struct Entry {
    // A delivery uses these, up to `birth`: fetch_ahead_for_input prefetches them.
    std::unique_ptr<ConsumerGroup> group;
    Offset committed_known{};  ///< at the last dispatch

    std::uint64_t birth = GroupBirths::restored;
    bool joined_plainly = false;
    std::uint64_t user = 0;  ///< the user that created it and that it counts for; 0: unknown
    /// The user that first opened a consumer's own cursor since the start; 0: the administrator. Nothing: not
    /// opened yet.
    std::optional<std::uint64_t> owner;
  };

  ConsumerGroup& add(std::string name, GroupTerms terms, Offset start, std::uint64_t birth,
                     std::uint64_t user = 0);
  void dispatch_group(Entry& entry, const DeliveryContext& context, DamageCount& damage,
                      DispatchResult& result);
  void drop_unclaimed_direct(ConsumerGroup& group);

  // A publish, a delivery and an acknowledgement use these, up to drops_: hot_end() depends on this order.
  log::BatchLog& log_;
  const bool direct_;
  bool paused_ = false;
  std::vector<Entry> groups_;  // in the order of their creation
  std::size_t first_to_dispatch_ = 0;
  ConsumerGroup* plain_ = nullptr;  // one of groups_
  std::size_t members_ = 0;

  Drops drops_;
  RangeBudget* const budget_;
  const GroupLimits limits_;
  GroupBirths births_;
  std::map<std::string, GroupSetup> settings_;  // of groups with other ones than the defaults
};

}  // namespace lightq::broker
