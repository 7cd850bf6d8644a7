/// The ways in which `lightq produce` sends. Layer: cli.
#pragma once

#include <lightq/client.hpp>

#include "client/invocation.hpp"
#include "client/message_source.hpp"

namespace lightq::cli {

/// Sends what `source` has, and answers the exit code: over a session, with confirms …
int produce_confirmed(const Common& common, const Produce& produce, Client client, MessageSource& source);
/// … or over a plain socket.
int produce_plain(const Common& common, const Produce& produce, Client client, MessageSource& source);

}  // namespace lightq::cli
