/// Derives the settings of the broker's parts from its configuration. Layer: broker.
#pragma once

#include "admission/unauthenticated_limits.hpp"
#include "broker/config.hpp"
#include "broker/data_directory.hpp"
#include "broker/reactor_pool.hpp"
#include "control/commands/operation_settings.hpp"
#include "control/control_limits.hpp"
#include "http/http_settings.hpp"

namespace lightq::broker {

/// Makes those paths absolute that are used after the start, because an embedding program may change its
/// working directory. Errors: io_error. (DataDirectory and Logging handle their own paths.)
Result<void> keep_paths(Config& config);

UnauthenticatedLimits unauthenticated_limits_of(const Config& config);
ControlLimits control_limits_of(const Config& config);
CreationLimits creation_limits_of(const Config& config);
/// Returns the settings of HTTP at `uri`. The caller adds the TLS context and the counters.
HttpSettings http_settings_of(const Config& config, const std::string& uri);
/// Returns `connections_per_user`, or fewer so that descriptors remain for other users.
std::size_t connections_per_user_of(const Config& config);

/// Returns the settings that follow from the configuration. The caller adds objects that the broker creates,
/// such as keys.
ReactorPool::Settings reactor_settings_of(const Config& config, const DataDirectory& directory);

}  // namespace lightq::broker
