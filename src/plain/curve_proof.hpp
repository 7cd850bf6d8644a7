/// Tests that an encrypted authorizer refuses unauthorized peers. Layer: plain.
#pragma once

#include <lightq/base/result.hpp>

#include "access/connection_authorizer.hpp"

namespace lightq::broker {

/// Tests that `authorizer` refuses unauthorized peers where the broker encrypts, and admits an authorized
/// one. Runs in memory, with the code that connections use.
///
/// The authorizer must refuse:
/// - a peer that does not encrypt, with or without a valid ticket;
/// - a peer that uses another server's key;
/// - a peer with a key that is not registered, registered for another topic or role, expired, or that ends
///   too late;
/// - a peer with the key of a user without permission, or of another administrator's password;
/// - a peer that presents another client's key as its own.
///
/// It must admit a peer with a key that is registered for `grant`. `keys`: the keys that the authorizer
/// checks. The test registers keys there and removes them again. Errors: internal, which names the client
/// that was wrongly admitted or refused.
Result<void> prove_curve_gate(const ConnectionAuthorizer& authorizer, ClientKeys& keys,
                              const CurveKeyPair& server, const TicketKey& tickets, const Grant& grant,
                              Timestamp now);

/// Tests an encrypted authorizer that asks for no ticket, such as the control socket's. The authorizer must
/// refuse a peer that does not encrypt or uses another server's key. It must admit a peer with an unknown key
/// only if `anybody` is true, and then it must. Errors: internal, which names the client that was wrongly
/// admitted or refused.
Result<void> prove_open_curve_gate(const ConnectionAuthorizer& authorizer, const CurveKeyPair& server,
                                   bool anybody);

}  // namespace lightq::broker
