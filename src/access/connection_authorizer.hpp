/// Decides which ZeroMQ peers are admitted: at a topic's plain endpoint, at the control socket, and at the
/// sessions' listener. Layer: access.
#pragma once

#include <optional>
#include <set>
#include <string_view>

#include "access/access_table.hpp"
#include "access/client_keys.hpp"
#include "access/ticket_key.hpp"
#include "admission/connection_quota.hpp"
#include "crypto/curve_keys.hpp"
#include "net/call_clock.hpp"

namespace lightq::broker {

/// Admits all peers, or only peers that show a ticket for one topic and role. A authorizer may require
/// encryption: then it accepts only the mechanism CURVE, and where it asks for a ticket, the client's
/// registered key is the ticket. Thread: the reactor's.
class ConnectionAuthorizer {
 public:
  /// Makes a authorizer that admits all peers.
  ConnectionAuthorizer() = default;
  /// Makes a authorizer that admits peers with a valid ticket for `grant` that names no user. Lifetime:
  /// `tickets` and `now` outlive the authorizer.
  ConnectionAuthorizer(const TicketKey& tickets, const WallClock& now, const Grant& grant)
      : tickets_(&tickets), now_(&now), grant_(grant) {}
  /// Makes a authorizer that admits peers with a valid ticket for `grant`, as long as `access` permits
  /// `grant` to the ticket's holder. `topic`: the topic's name. Lifetime: `tickets`, `now` and `access`
  /// outlive the authorizer.
  ConnectionAuthorizer(const TicketKey& tickets, const WallClock& now, const Grant& grant,
                       const AccessTable& access, const TopicName& topic)
      : tickets_(&tickets), now_(&now), grant_(grant), access_(&access), topic_(topic) {}

  /// Admits all peers from now on. A peer with a valid ticket or key is admitted as its holder. Any other
  /// peer is admitted as an unauthenticated client; together these have the quota of one user.
  void open() { open_ = true; }
  /// From now on admits only CURVE peers that use a key of `server`. `keys`: the keys that clients have
  /// registered, for a authorizer that is not open. Lifetime: both outlive the authorizer.
  void encrypt(const CurveKeys& server, const ClientKeys* keys) {
    curve_ = &server;
    keys_ = keys;
  }
  /// Restricts an open authorizer that encrypts to clients with one of these keys. Lifetime: they outlive the
  /// authorizer.
  void allow_only(const std::set<CurvePublicKey>& keys) { allowed_ = &keys; }

  /// From now on counts each admitted peer as a connection of its user. The code that ends the connection
  /// gives it back to the quota if the connection has a holder. Lifetime: `quota` outlives the authorizer.
  void count(ConnectionQuota& quota) { quota_ = &quota; }

  [[nodiscard]] bool is_open() const { return open_ || tickets_ == nullptr; }
  /// Returns the server's keys. Null: the authorizer does not encrypt.
  [[nodiscard]] const CurveKeys* curve() const { return curve_; }
  /// Checks a ticket. Returns the reason for a refusal, for the log, as static text. Returns an empty text,
  /// and sets `holder`, if the peer is admitted.
  [[nodiscard]] std::string_view objection(std::string_view id, std::string_view secret,
                                           TicketHolder& holder) const;
  /// Checks a key that the client has proved to own. Returns the reason for a refusal, for the log, as static
  /// text. Returns an empty text, and sets `holder`, if the peer is admitted.
  [[nodiscard]] std::string_view key_objection(const CurvePublicKey& key, TicketHolder& holder) const;
  /// Checks a peer that shows no ticket, at an open authorizer. Returns the reason for a refusal, for the
  /// log, as static text. Returns an empty text, and sets `holder`, if the peer is admitted.
  [[nodiscard]] std::string_view objection_to_anonymous(TicketHolder& holder) const;
  /// Returns true if a peer that was admitted with a ticket of this holder may stay connected.
  [[nodiscard]] bool permits(const TicketHolder& holder) const;

 private:
  [[nodiscard]] std::string_view fault_of_ticket(std::string_view id, std::string_view secret,
                                                 TicketHolder& shown) const;
  [[nodiscard]] std::string_view fault_of_key(const CurvePublicKey& key, TicketHolder& shown) const;
  [[nodiscard]] bool knows(const TicketHolder& holder) const;
  [[nodiscard]] std::string_view admit(const TicketHolder& shown, TicketHolder& holder) const;

  bool open_ = false;
  const TicketKey* tickets_ = nullptr;
  const WallClock* now_ = nullptr;
  Grant grant_;
  const AccessTable* access_ = nullptr;
  std::optional<TopicName> topic_;
  const CurveKeys* curve_ = nullptr;
  const ClientKeys* keys_ = nullptr;
  const std::set<CurvePublicKey>* allowed_ = nullptr;
  ConnectionQuota* quota_ = nullptr;
};

}  // namespace lightq::broker
