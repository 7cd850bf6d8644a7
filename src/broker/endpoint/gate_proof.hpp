/// Proves that a gate keeps strangers out. Layer: endpoint.
#pragma once

#include <lightq/base/result.hpp>

#include "broker/endpoint/gate.hpp"

namespace lightq::broker {

/// Plays the strangers that must not get in: one without a ticket, one whose ticket is nonsense, one whose
/// ticket has another key, and one whose ticket is for something else; and one with a good ticket for
/// `grant`, who must. In memory, by the code that connections run. Error: internal, naming who was let in or
/// not.
Result<void> prove_gate(const Gate& gate, const TicketKey& tickets, const Grant& grant, Timestamp now);

}  // namespace lightq::broker
