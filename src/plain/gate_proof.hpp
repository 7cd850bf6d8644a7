/// Tests that a authorizer refuses unauthorized peers. Layer: plain.
#pragma once

#include <lightq/base/result.hpp>

#include "access/connection_authorizer.hpp"

namespace lightq::broker {

/// Tests that `authorizer` refuses unauthorized peers and admits an authorized one. Runs in memory, with the
/// code that connections use.
///
/// The authorizer must refuse:
/// - a peer without a ticket, with an empty one, or with a wrong secret;
/// - a peer with another broker's ticket, or with a ticket for another topic or role;
/// - a peer with a ticket that has expired or ends too late;
/// - a peer with the ticket of a user without permission, or of another administrator's password.
///
/// It must admit a peer with a valid ticket for `grant`. Errors: internal, which names the client that was
/// wrongly admitted or refused.
Result<void> prove_gate(const ConnectionAuthorizer& authorizer, const TicketKey& tickets, const Grant& grant,
                        Timestamp now);

}  // namespace lightq::broker
