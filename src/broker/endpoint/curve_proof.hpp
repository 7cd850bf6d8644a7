/// Proves that an encrypted gate keeps strangers out. Layer: endpoint.
#pragma once

#include <lightq/base/result.hpp>

#include "broker/endpoint/gate.hpp"

namespace lightq::broker {

/// Plays the strangers that must not get in by `gate` where the broker encrypts: peers that do not encrypt, a
/// good ticket of theirs or not, one that has another server's key, one whose key nobody has registered, or
/// registered for something else, or that has expired, or is of somebody who may not, one that says another's
/// key is its own; and one whose key is registered for `grant`, who must. In memory, by the code that
/// connections run. `keys`: those that the gate asks; what is registered there for the proof is gone after
/// it. Error: internal, naming who was let in or not.
Result<void> prove_curve_gate(const Gate& gate, ClientKeys& keys, const CurveKeyPair& server,
                              const TicketKey& tickets, const Grant& grant, Timestamp now);

/// The same of an encrypted gate that asks for no ticket, as the control socket's is: nobody gets in who does
/// not encrypt, or has another server's key; and who has a key that nobody knows does if `anybody` may.
Result<void> prove_open_curve_gate(const Gate& gate, const CurveKeyPair& server, bool anybody);

}  // namespace lightq::broker
