/// What all members of a group have in flight, as sums that are kept up to date. Layer: delivery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <lightq/base/types.hpp>

#include "broker/delivery/member_turns.hpp"
#include "broker/delivery/range_budget.hpp"

namespace lightq::broker {

/// Kept by the members at each change, so that nobody has to walk over them. The reactor's thread.
struct GroupStanding {
  using Front = std::pair<Offset, GroupMember*>;

  RangeBudget* budget = nullptr;             ///< null: not bounded
  std::uint64_t messages = 0;                ///< in flight on all members
  std::set<Front> fronts;                    ///< the lowest offset in flight of each member that has any
  std::unordered_set<GroupMember*> overdue;  ///< the members from which messages were taken back in time
  std::unordered_map<std::uint64_t, std::size_t> members_of;  ///< by user; none with 0
  MemberTurns turns;
  std::uint64_t members_asked = 0;  ///< since the start: whether they can take messages
  std::uint64_t ranges_walked = 0;  ///< since the start: in search of what is due

  /// The lowest offset in flight on any member.
  [[nodiscard]] std::optional<Offset> first() const {
    if (fronts.empty()) return std::nullopt;
    return fronts.begin()->first;
  }
};

}  // namespace lightq::broker
