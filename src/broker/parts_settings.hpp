/// What the broker's parts are told of its configuration. Layer: broker.
#pragma once

#include "broker/config.hpp"
#include "broker/control/control_limits.hpp"
#include "broker/data_directory.hpp"
#include "broker/endpoint/stranger_limits.hpp"
#include "broker/reactor_pool.hpp"

namespace lightq::broker {

/// Makes the paths absolute that are used again after the start, when an embedding program may have gone to
/// another directory. Errors: io_error. (DataDirectory and Logging see to their own.)
Result<void> keep_paths(Config& config);

StrangerLimits stranger_limits_of(const Config& config);
ControlLimits control_limits_of(const Config& config);
/// `connections_per_user`, or as many as leave descriptors to others.
std::size_t connections_per_user_of(const Config& config);

/// All that the configuration says; what the broker has made of it, such as keys, is still to be put in.
ReactorPool::Settings reactor_settings_of(const Config& config, const DataDirectory& directory);

}  // namespace lightq::broker
