/// Attacks on sessions: clients that the broker must refuse, and one that it must admit.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "access/ticket_key.hpp"
#include "attacks/line.hpp"
#include "crypto/curve_box.hpp"

namespace lightq::test {

/// A listener for sessions, and the way to talk to it.
struct SessionTarget {
  Connect connect;
  bool over_zeromq = false;
  std::optional<CurvePublicKey> server_key;  ///< of a listener that encrypts with CURVE
  bool uses_tls = false;                     ///< the listener encrypts with TLS
  const broker::TicketKey& tickets;          ///< the key of valid tickets
  broker::Grant grant;                       ///< to a topic that exists
  Timestamp now;
  broker::TicketHolder holder = {};  ///< a user with the right to `grant`
};

/// Attacks a listener. Returns one text for each client that was wrongly admitted or refused: `admits a
/// client …`, `refuses a client …`.
///
/// The broker must refuse:
/// - a client without a ticket, with a malformed one, or with a wrong secret;
/// - a client with another broker's ticket, or with a ticket for a topic that does not exist;
/// - a client with a ticket that has expired or ends too late;
/// - a client with a ticket of another administrator's password, or of a user without the right;
/// - a client that sends no hello;
/// - if the listener encrypts, a client that does not, with a valid ticket.
///
/// It must admit a client with a valid ticket.
std::vector<std::string> attack_sessions(const SessionTarget& target);

}  // namespace lightq::test
