/// Proves that sessions keep strangers out. Layer: session.
#pragma once

#include <lightq/base/result.hpp>

#include "broker/endpoint/curve_box.hpp"
#include "broker/endpoint/reactor_context.hpp"
#include "broker/session/session_connection.hpp"

namespace lightq::broker {

/// What a broker's sessions are made of.
struct SessionProof {
  EndpointSettings endpoints;
  SessionSettings sessions;
  const TicketKey& tickets;
  WallClock now;
  AccessTable access = {};
};

/// Plays the strangers that must not get in, on each way that sessions come (over TCP, Unix sockets, and
/// ZeroMQ on both): one whose hello has no ticket, one whose ticket is nonsense, one whose ticket is another
/// broker's, of a topic that is not there, expired or somebody's who may not any more, and one that does
/// without a hello; and where `encrypted_by` is given, one with a good ticket in clear. One with a good
/// ticket of `issuer` must get in. By the code that sessions run, over sockets that nobody else has. Error:
/// internal, naming who was let in or not.
Result<void> prove_session_gates(const SessionProof& of, const TicketKey& issuer,
                                 const CurveKeyPair* encrypted_by);

}  // namespace lightq::broker
