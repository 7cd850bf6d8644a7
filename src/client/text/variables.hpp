/// Finds environment variables that no command knows, which are probably mistyped. Layer: cli.
#pragma once

#include <optional>
#include <set>
#include <string>

namespace lightq::cli {

/// Returns an error text for the first unknown variable; nothing if there is none. A variable is unknown if
/// its name begins with `LIGHTQ_` and is not in `known`, and its value is not empty. The text does not repeat
/// the value, which may be a secret. Ignores the variables that Kubernetes and Docker set for a service with
/// the name `lightq`. `environment` has `NAME=VALUE` entries, ended by a null pointer.
std::optional<std::string> unknown_variable(const std::set<std::string>& known,
                                            const char* const* environment);

}  // namespace lightq::cli
