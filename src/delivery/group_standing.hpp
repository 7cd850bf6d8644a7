/// Sums over all members of a group, kept up to date at each change. Layer: delivery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <lightq/base/types.hpp>

#include "admission/range_budget.hpp"
#include "delivery/member_turns.hpp"

namespace lightq::broker {

/// The members update it at each change, so that reading a sum never walks over the members. Thread: the
/// reactor's.
struct GroupStanding {
  using Front = std::pair<Offset, GroupMember*>;

  RangeBudget* budget = nullptr;             ///< null: not bounded
  std::uint64_t messages = 0;                ///< messages in flight on all members
  std::set<Front> fronts;                    ///< the lowest offset in flight of each member that has any
  std::unordered_set<GroupMember*> overdue;  ///< members with overdue messages
  std::unordered_map<std::uint64_t, std::size_t> members_of;  ///< number of members by user; no entry has 0
  MemberTurns turns;
  std::uint64_t members_asked = 0;  ///< since the start: asked whether they can take messages
  std::uint64_t ranges_walked = 0;  ///< since the start: in search of due messages

  /// Returns the lowest offset in flight on any member, or nothing if there is none.
  [[nodiscard]] std::optional<Offset> first() const {
    if (fronts.empty()) return std::nullopt;
    return fronts.begin()->first;
  }
};

}  // namespace lightq::broker
