/// A group with members of different speed that work off a backlog. Layer: bench support.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "support/session_stream.hpp"

namespace lightq::bench {

/// The members of a group: how long the handler of each sleeps for a message.
struct UnequalMembers {
  std::vector<std::chrono::microseconds> work;
};

struct BacklogTimes {
  double seconds = 0;  ///< from the moment when all members were open until the last message was done
  /// The time that the same handlers need if no member is ever idle, and all end together. It is computed
  /// from the measured time of the handlers, because a sleep takes longer than it is told to.
  double ideal_seconds = 0;
};

/// Returns the seconds in which members finish `messages` messages together, if the handler of member i takes
/// `handler_seconds[i]` for each. A member with 0 takes no part.
double ideal_seconds_of(std::uint64_t messages, const std::vector<double>& handler_seconds);

/// Publishes the plan's messages, then starts the members, which have default options and acknowledge each
/// message after its handler. Checks that each message is done exactly once. Errors: as run_session_stream.
Result<BacklogTimes> run_backlog(const SessionEnds& ends, const StreamPlan& plan,
                                 const UnequalMembers& members);

}  // namespace lightq::bench
