/// Attacks on plain ZeroMQ endpoints and on the control socket: clients that the server must refuse, and
/// clients that it must admit.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "access/ticket_key.hpp"
#include "attacks/line.hpp"
#include "crypto/curve_box.hpp"

namespace lightq::test {

/// A user that no broker has.
inline constexpr broker::TicketHolder unknown_user{.user = ~std::uint64_t{0}, .generation = 1};
/// The administrator, with a password that no broker under attack has.
inline constexpr broker::TicketHolder old_administrator{.user = 0, .generation = 1};

/// An endpoint that admits only clients with a ticket or a registered key for `grant`.
struct EndpointTarget {
  Connect connect;
  std::string_view peer_type;        ///< the socket type of its clients
  const broker::TicketKey& tickets;  ///< the key of valid tickets
  broker::Grant grant;
  Timestamp now;
  broker::TicketHolder holder = {};  ///< a user with the right to `grant`
};

/// Attacks an endpoint without encryption. Returns one text for each client that was wrongly admitted or
/// refused: `admits a client …`, `refuses a client …`.
///
/// The endpoint must refuse:
/// - a client without a ticket, with an empty one, or with a wrong secret;
/// - a client with another broker's ticket, or with a ticket for another topic or role;
/// - a client with a ticket that has expired or ends too late;
/// - a client with the ticket of a user without the right, or of another administrator's password.
///
/// It must admit a client with a valid ticket.
std::vector<std::string> attack_with_tickets(const EndpointTarget& target);

/// A client whose key is registered in a way that must not admit it.
struct KeyAttacker {
  std::string name;  ///< as in `admits a client NAME`
  const broker::CurveKeyPair& key;
};

/// Attacks an endpoint that encrypts. Returns the same as attack_with_tickets.
///
/// The endpoint must refuse:
/// - a client that does not encrypt, with or without a valid ticket;
/// - a client that uses another server's key;
/// - a client with a key that is not registered, which may present the key `good` as its own;
/// - each of `attackers`.
///
/// It must admit a client with the key `good`, which is registered.
std::vector<std::string> attack_with_keys(const EndpointTarget& target, const CurvePublicKey& server_key,
                                          const broker::CurveKeyPair& good,
                                          const std::vector<KeyAttacker>& attackers);

/// Attacks an encrypted server that asks for no ticket, such as the control socket. Returns the same as
/// attack_with_tickets. The server must refuse a client that does not encrypt or uses another server's key.
/// With `listed`, it must admit a client with that key and refuse one with an unknown key. Without, it must
/// admit any key.
std::vector<std::string> attack_without_tickets(const Connect& connect, std::string_view peer_type,
                                                const CurvePublicKey& server_key,
                                                const broker::CurveKeyPair* listed);

}  // namespace lightq::test
