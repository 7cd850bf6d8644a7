/// The two implementations of `lightq produce`: over a session and over a plain socket. Layer: cli.
#pragma once

#include <lightq/client.hpp>

#include "client/commands/message_source.hpp"
#include "client/invocation.hpp"

namespace lightq::cli {

/// Sends the messages of `source` over a session, with confirms. Returns the exit code.
int produce_confirmed(const Common& common, const Produce& produce, Client client, MessageSource& source);
/// Sends the messages of `source` over a plain socket. Returns the exit code.
int produce_plain(const Common& common, const Produce& produce, Client client, MessageSource& source);

}  // namespace lightq::cli
