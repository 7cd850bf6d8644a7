/// The two implementations of `lightq consume`: over a session and over a plain socket. Layer: cli.
#pragma once

#include <lightq/client.hpp>

#include "client/invocation.hpp"

namespace lightq::cli {

/// Receives over a session, prints messages, and acknowledges those that were printed. Returns the exit code.
int consume_session(const Common& common, const Consume& consume, Client client);
/// Receives over a plain socket and prints messages. Returns the exit code.
int consume_plain(const Common& common, const Consume& consume, Client client);

}  // namespace lightq::cli
