/// Ends client keys if the tickets of the same joins have ended since the previous start. Layer: control.
#pragma once

#include <cstdint>

#include <lightq/base/result.hpp>
#include <lightq/base/secret.hpp>

#include "access/ticket_key.hpp"
#include "base/log_sink.hpp"
#include "control/catalogue/catalogue.hpp"

namespace lightq::broker {

/// Ends the registered client keys for which the tickets of the same joins have ended. Under another ticket
/// key those are all keys; under another administrator's password, the administrator's keys. Returns the
/// generation of the administrator's tickets and keys: each new password draws a new one at random. Blocks
/// for hashing a password and for the catalogue's flush. Requires: nothing else uses the catalogue yet.
/// Errors: those of the catalogue's changes; internal (no memory for the hash).
Result<std::uint32_t> check_registrations(Catalogue& catalogue, const TicketKey& tickets,
                                          const Secret& admin_password, LogSink& sink);

}  // namespace lightq::broker
