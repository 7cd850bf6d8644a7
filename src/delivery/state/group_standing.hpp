/// Sums over all members of a group, kept up to date at each change. Layer: delivery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include <lightq/base/types.hpp>

#include "admission/range_budget.hpp"
#include "delivery/state/member_fronts.hpp"
#include "delivery/state/member_turns.hpp"
#include "delivery/state/position_moves.hpp"

namespace lightq::broker {

class GroupMember;

/// The sums and other fields that deliveries and timely acknowledgements do not use. They are apart, so that
/// the fields of GroupStanding are contiguous.
struct GroupRoll {
  RangeBudget* budget = nullptr;             ///< null: not bounded
  std::unordered_set<GroupMember*> overdue;  ///< members with overdue messages
  std::unordered_set<GroupMember*> silent;   ///< silent members that may have messages they have not started
  std::unordered_map<std::uint64_t, std::size_t> members_of;  ///< number of members by user; no entry has 0
  std::uint64_t ranges_walked = 0;                            ///< since the start: in search of due messages
  std::uint64_t members_joined = 0;                           ///< since the start
  PositionMoves moves;                                        ///< how the group's position was moved
};

/// The sums that deliveries and acknowledgements use. The members update them at each change, so that reading
/// a sum never walks over the members. Lifetime: the roll outlives it. Thread: the reactor's.
struct GroupStanding {
  explicit GroupStanding(GroupRoll& of_group) : roll(of_group) {}

  MemberTurns<GroupMember> turns;
  std::uint64_t members_asked = 0;  ///< since the start: asked whether they can take messages
  bool any_silent = false;          ///< roll.silent has members
  std::uint32_t seeks = 0;          ///< since the start: how often the group's position was moved
  std::uint64_t messages = 0;       ///< messages in flight on all members
  std::uint64_t acknowledged = 0;   ///< since the start: messages that members finished, or that were sent
  /// Since the start: how often the messages in flight changed, or what a restart would find of them.
  std::uint64_t changes = 0;
  MemberFronts<GroupMember> fronts;  ///< the lowest offset in flight of each member that has any
  GroupRoll& roll;

  /// Returns the lowest offset in flight on any member, or nothing if there is none.
  [[nodiscard]] std::optional<Offset> first() const {
    if (fronts.empty()) return std::nullopt;
    return fronts.first().offset;
  }
  /// Returns how many members belong to `user`.
  [[nodiscard]] std::size_t members_of(std::uint64_t user) const {
    const auto counted = roll.members_of.find(user);
    return counted == roll.members_of.end() ? 0 : counted->second;
  }
};

}  // namespace lightq::broker
