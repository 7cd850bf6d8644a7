/// Finds environment variables that are set for nothing: mistyped ones. Layer: cli.
#pragma once

#include <optional>
#include <set>
#include <string>

namespace lightq::cli {

/// Returns what is wrong with the first variable whose name begins with `LIGHTQ_`, that is not empty, and
/// that is not among the `known`; nothing if there is none. Its value, which may be a secret, is not
/// repeated. What Kubernetes and Docker set for a service of the name `lightq` is not taken for a setting.
/// `environment`: `NAME=VALUE` entries, ended by a null pointer.
std::optional<std::string> unknown_variable(const std::set<std::string>& known,
                                            const char* const* environment);

}  // namespace lightq::cli
