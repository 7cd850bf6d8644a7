/// What was given out before this start, and whether it still hangs on what there is. Layer: control.
#pragma once

#include <cstdint>

#include <lightq/base/result.hpp>

#include "broker/control/catalogue.hpp"
#include "broker/control/secret.hpp"
#include "broker/endpoint/log_sink.hpp"
#include "broker/endpoint/ticket_key.hpp"

namespace lightq::broker {

/// Ends the keys that clients have registered where the tickets of the same joins have ended: all of them
/// under another ticket key, and those of the administrator under another password of his. Answers the
/// generation that his tickets and keys have now: a new one, drawn at random, with each new password.
/// Blocks for a password's hash and the catalogue's flush; before anybody else works with the catalogue.
/// Errors: those of the catalogue's changes; internal (no memory for the hash).
Result<std::uint32_t> check_registrations(Catalogue& catalogue, const TicketKey& tickets,
                                          const Secret& admin_password, LogSink& sink);

}  // namespace lightq::broker
