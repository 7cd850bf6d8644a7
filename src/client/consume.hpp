/// The ways in which `lightq consume` receives. Layer: cli.
#pragma once

#include <lightq/client.hpp>

#include "client/invocation.hpp"

namespace lightq::cli {

/// Prints what comes, and answers the exit code: over a session, acknowledging what was printed …
int consume_session(const Common& common, const Consume& consume, Client client);
/// … or over a plain socket.
int consume_plain(const Common& common, const Consume& consume, Client client);

}  // namespace lightq::cli
