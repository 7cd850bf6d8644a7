/// Who may come in by ZeroMQ: at a topic's plain endpoint, at the control socket, and at the sessions' door.
/// Layer: endpoint.
#pragma once

#include <optional>
#include <set>
#include <string_view>

#include "broker/delivery/topic_definition.hpp"
#include "broker/endpoint/access_table.hpp"
#include "broker/endpoint/client_keys.hpp"
#include "broker/endpoint/connection_quota.hpp"
#include "broker/endpoint/curve_box.hpp"
#include "broker/endpoint/reactor_context.hpp"

namespace lightq::broker {

/// Everybody, or who shows a ticket for one topic and role; encrypted or not. An encrypted gate takes the
/// mechanism CURVE alone, and where it asks for a ticket, the client's key is the ticket. The reactor's
/// thread.
class Gate {
 public:
  /// Everybody may.
  Gate() = default;
  /// Who shows a ticket that is good for `grant` may. The others outlive it.
  Gate(const TicketKey& tickets, const WallClock& now, const Grant& grant)
      : tickets_(&tickets), now_(&now), grant_(grant) {}
  /// … as long as its holder may, by `access`, do that with the topic of this name; the one before knows of
  /// nobody.
  Gate(const TicketKey& tickets, const WallClock& now, const Grant& grant, const AccessTable& access,
       const TopicName& topic)
      : tickets_(&tickets), now_(&now), grant_(grant), access_(&access), topic_(topic) {}

  /// From now on everybody may. Who shows what would let him in comes as its holder, anybody else as one of
  /// the strangers (FairShare).
  void open() { open_ = true; }
  /// Nobody comes in any more but by CURVE, to the server with this key. `keys`: those that clients have
  /// registered, for a gate that is not open; all outlive it.
  void encrypt(const CurveKeyPair& server, const ClientKeys* keys) {
    curve_ = &server;
    keys_ = keys;
  }
  /// Of an encrypted gate that is open: who has one of these keys may. They outlive it.
  void allow_only(const std::set<CurvePublicKey>& keys) { allowed_ = &keys; }

  /// Who is let in takes one of the connections of its user; whoever ends the connection gives it back, where
  /// the connection has a holder. It outlives the gate.
  void count(ConnectionQuota& quota) { quota_ = &quota; }

  [[nodiscard]] bool is_open() const { return open_ || tickets_ == nullptr; }
  /// Null: nothing is encrypted.
  [[nodiscard]] const CurveKeyPair* curve() const { return curve_; }
  /// Why the ticket does not let its bearer in, for the log; empty: it does, and it is `holder`'s. Lives as
  /// long as the program.
  [[nodiscard]] std::string_view objection(std::string_view id, std::string_view secret,
                                           TicketHolder& holder) const;
  /// The same of the key that a client has shown to have.
  [[nodiscard]] std::string_view key_objection(const CurvePublicKey& key, TicketHolder& holder) const;
  /// The same of who shows nothing, at a gate that is open.
  [[nodiscard]] std::string_view stranger_objection(TicketHolder& holder) const;
  /// Whether who came in with a ticket of this holder may still be there.
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
  const CurveKeyPair* curve_ = nullptr;
  const ClientKeys* keys_ = nullptr;
  const std::set<CurvePublicKey>* allowed_ = nullptr;
  ConnectionQuota* quota_ = nullptr;
};

/// The gate of a topic's endpoints for a role: open if the topic is, or all are; encrypted if all are.
Gate gate_of(const TicketKey& tickets, const WallClock& now, const EndpointSettings& settings,
             const AccessTable& access, const TopicDefinition& topic, EndpointRole role);

}  // namespace lightq::broker
