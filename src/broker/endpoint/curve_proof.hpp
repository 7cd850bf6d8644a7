/// Tests that an encrypted gate refuses unauthorized peers. Layer: endpoint.
#pragma once

#include <lightq/base/result.hpp>

#include "broker/endpoint/gate.hpp"

namespace lightq::broker {

/// Tests that `gate` refuses unauthorized peers where the broker encrypts, and admits an authorized one. Runs
/// in memory, with the code that connections use.
///
/// The gate must refuse:
/// - a peer that does not encrypt, with or without a valid ticket;
/// - a peer that uses another server's key;
/// - a peer with a key that is not registered, registered for another topic or role, expired, or that ends
///   too late;
/// - a peer with the key of a user without permission, or of another administrator's password;
/// - a peer that presents another client's key as its own.
///
/// It must admit a peer with a key that is registered for `grant`. `keys`: the keys that the gate checks. The
/// test registers keys there and removes them again. Errors: internal, which names the client that was
/// wrongly admitted or refused.
Result<void> prove_curve_gate(const Gate& gate, ClientKeys& keys, const CurveKeyPair& server,
                              const TicketKey& tickets, const Grant& grant, Timestamp now);

/// Tests an encrypted gate that asks for no ticket, such as the control socket's. The gate must refuse a peer
/// that does not encrypt or uses another server's key. It must admit a peer with an unknown key only if
/// `anybody` is true, and then it must. Errors: internal, which names the client that was wrongly admitted or
/// refused.
Result<void> prove_open_curve_gate(const Gate& gate, const CurveKeyPair& server, bool anybody);

}  // namespace lightq::broker
