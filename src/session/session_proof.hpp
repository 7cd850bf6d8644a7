/// Checks at the start of the broker that sessions refuse unauthorized clients. Layer: session.
#pragma once

#include <lightq/base/result.hpp>

#include "crypto/curve_box.hpp"
#include "session/session_connection.hpp"
#include "topic/reactor_context.hpp"

namespace lightq::broker {

/// The settings and keys of the sessions to check.
struct SessionProof {
  EndpointSettings endpoints;
  SessionSettings sessions;
  const TicketKey& tickets;
  WallClock now;
  AccessTable access = {};
};

/// Attacks each kind of session: over TCP, over Unix sockets, and over ZeroMQ on both. Uses the code that
/// sessions run, on private socket pairs.
/// The broker must refuse clients without a ticket, with a malformed ticket, and with a wrong secret. It must
/// refuse tickets of another broker, of a topic that does not exist, that have expired, and that end too
/// late. It must refuse tickets of another administrator's password, and of a user without the right.
/// It must also refuse a client that sends no hello. With `encrypted_by` it must refuse an unencrypted client
/// with a valid ticket.
/// It must admit a client with a valid ticket of `issuer`. Errors: internal, which names the client that was
/// wrongly admitted or refused.
Result<void> prove_session_gates(const SessionProof& of, const TicketKey& issuer,
                                 const CurveKeyPair* encrypted_by);

}  // namespace lightq::broker
