/// All operations of the broker, which the control socket calls. Layer: control.
#include "control/commands/operations.hpp"

#include <utility>

namespace lightq::broker {

Operations::Operations(Parts parts, OperationSettings settings)
    : settings_(std::move(settings)),
      commits_(parts.loop, parts.catalogue),
      ready_(parts.catalogue),
      passwords_(parts.authenticator, parts.catalogue, parts.rights),
      topics_({parts.catalogue, commits_, parts.data_plane, parts.sink, ready_, parts.rights, passwords_,
               settings_}),
      endpoints_({parts.catalogue, commits_, parts.data_plane, ready_, parts.rights, settings_}),
      groups_({parts.catalogue, commits_, parts.data_plane, ready_, parts.rights, settings_}),
      delayed_({parts.data_plane, ready_, parts.rights}),
      schedules_({parts.catalogue, commits_, parts.data_plane, ready_, parts.rights, settings_}),
      users_({parts.catalogue, commits_, parts.data_plane, ready_, parts.rights, passwords_, settings_}),
      stats_({parts.catalogue, parts.data_plane, parts.sink, ready_, parts.rights, settings_,
              [&authenticator = parts.authenticator] {
                return LoginCounts{authenticator.failures(), authenticator.throttled()};
              }}),
      traces_({parts.catalogue, parts.data_plane, ready_, parts.rights}),
      recorder_(parts.catalogue, commits_, parts.sink) {}

void Operations::change_limits(const CreationLimits& limits) {
  settings_.topics_max = limits.topics_max;
  settings_.users_max = limits.users_max;
  settings_.rights_per_user_max = limits.rights_per_user_max;
  settings_.ring_bytes_max = limits.ring_bytes_max;
  settings_.memory_bytes_max = limits.memory_bytes_max;
}

void Operations::bring_up(std::function<void()> done) {
  users_.bring_up();  // before any endpoint is opened
  topics_.bring_up(std::move(done));
}

}  // namespace lightq::broker
