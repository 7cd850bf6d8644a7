/// Asks before something is destroyed. Layer: cli.
#pragma once

#include <string>

#include "client/invocation.hpp"

namespace lightq::cli {

/// Returns true if the command shall go on. Asks on the terminal whether to `do_what`, for example `delete
/// topic 'orders'`, unless `yes`. Without a terminal it returns true, with a warning, because scripts of this
/// major version do not give `--yes`.
bool is_confirmed(const Common& common, bool yes, const std::string& do_what);

}  // namespace lightq::cli
