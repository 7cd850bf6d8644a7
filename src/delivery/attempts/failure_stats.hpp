/// The part of a group's statistics that is about failures: ends of deliveries, settings.
/// Layer: delivery.
#pragma once

#include <lightq/protocol/group_control.hpp>

#include "delivery/attempts/flood_brake.hpp"
#include "delivery/attempts/group_counters.hpp"

namespace lightq::broker {

/// Fills the members of `stats` about failures, but for the numbers of dead messages and the pause. `recent`:
/// up to now.
inline void add_failures(protocol::GroupStats& stats, const GroupCounters& counters,
                         const FloodBrake::Recent& recent, const protocol::GroupSettings& settings) {
  stats.acknowledged = counters.acknowledged;
  stats.released = counters.released;
  stats.failed = counters.failed;
  stats.timed_out = counters.timed_out;
  stats.lost_with_session = counters.lost_with_session;
  stats.revoked = counters.revoked;
  stats.dead = counters.dead;
  stats.expired = counters.expired;
  stats.recent_ended = recent.ended;
  stats.recent_dead = recent.dead;
  stats.settings = settings;
}

}  // namespace lightq::broker
