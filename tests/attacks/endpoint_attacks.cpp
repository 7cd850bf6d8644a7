/// Plays the clients that endpoints and control sockets must refuse or admit.
#include "attacks/endpoint_attacks.hpp"

#include <chrono>
#include <functional>
#include <utility>

#include "attacks/zmtp_client.hpp"

namespace lightq::test {

namespace {

using namespace std::chrono_literals;
using broker::CurveKeyPair;
using broker::EndpointRole;
using broker::TicketKey;

/// Collects the clients that a server has wrongly admitted or refused.
class Faults {
 public:
  explicit Faults(const Connect& connect) : connect_(connect) {}

  using Attempt = std::function<Admission(Line&)>;
  void must_refuse(const std::string& whom, const Attempt& attempt) {
    const auto line = connect_();
    if (attempt(*line) != Admission::refused) found_.push_back("admits a client " + whom);
  }
  void must_admit(const std::string& whom, const Attempt& attempt) {
    const auto line = connect_();
    const Admission result = attempt(*line);
    if (result == Admission::broken) found_.push_back("sends an invalid reply to a client " + whom);
    if (result == Admission::refused) found_.push_back("refuses a client " + whom);
  }
  std::vector<std::string> take() { return std::move(found_); }

 private:
  const Connect& connect_;
  std::vector<std::string> found_;
};

constexpr auto lifetime = 1min;  // a lifetime that every ticket_ms permits
constexpr auto too_long = std::chrono::milliseconds(limits::ticket_ms_max) + 1h;

EndpointRole other_than(EndpointRole role) {
  return role == EndpointRole::sub ? EndpointRole::pull : EndpointRole::sub;
}

}  // namespace

std::vector<std::string> attack_with_tickets(const EndpointTarget& target) {
  const auto& [connect, type, tickets, grant, now, holder] = target;
  const TicketKey other_key(TicketKey::random_bytes());
  const auto good = tickets.issue(grant, lifetime, now, holder);
  const auto of_other_key = other_key.issue(grant, lifetime, now, holder);
  const broker::Grant other_topic{TopicId{~grant.topic.value}, grant.role};
  const broker::Grant other_role{grant.topic, other_than(grant.role)};
  const auto with = [type = type](const std::string& id, const std::string& secret) {
    return [=](Line& line) { return connect_by_plain(line, type, id, secret); };
  };
  const auto showing = [&](const protocol::Ticket& ticket) {
    return with(ticket.id, ticket.secret.expose());
  };

  Faults faults(connect);
  faults.must_refuse("without a ticket", [type = type](Line& line) { return connect_by_null(line, type); });
  faults.must_refuse("with an empty ticket", with("", ""));
  faults.must_refuse("with a wrong secret", with(good.id, of_other_key.secret.expose()));
  faults.must_refuse("with another broker's ticket", showing(of_other_key));
  faults.must_refuse("with a ticket of another topic",
                     showing(tickets.issue(other_topic, lifetime, now, holder)));
  faults.must_refuse("with a ticket of another role",
                     showing(tickets.issue(other_role, lifetime, now, holder)));
  faults.must_refuse("with a ticket that has expired", showing(tickets.issue(grant, -1h, now, holder)));
  faults.must_refuse("of a user who has lost the right",
                     showing(tickets.issue(grant, lifetime, now, unknown_user)));
  faults.must_refuse("with a ticket of another administrator's password",
                     showing(tickets.issue(grant, lifetime, now, old_administrator)));
  faults.must_refuse("with a ticket that expires too late",
                     showing(tickets.issue(grant, too_long, now, holder)));
  faults.must_admit("with a good ticket", showing(good));
  return faults.take();
}

std::vector<std::string> attack_with_keys(const EndpointTarget& target, const CurvePublicKey& server_key,
                                          const CurveKeyPair& good,
                                          const std::vector<KeyAttacker>& attackers) {
  const std::string_view type = target.peer_type;
  const CurveKeyPair unknown, other_server;
  const auto ticket = target.tickets.issue(target.grant, lifetime, target.now, target.holder);
  const auto with = [&](const CurveKeyPair& key) {
    return [&](Line& line) { return connect_by_curve(line, type, key, server_key); };
  };

  Faults faults(target.connect);
  faults.must_refuse("that does not encrypt", [&](Line& line) { return connect_by_null(line, type); });
  faults.must_refuse("that does not encrypt, with a good ticket", [&](Line& line) {
    return connect_by_plain(line, type, ticket.id, ticket.secret.expose());
  });
  faults.must_refuse("that has another server's key", [&](Line& line) {
    return connect_by_curve(line, type, good, other_server.public_key());
  });
  faults.must_refuse("with a key that is not registered", with(unknown));
  faults.must_refuse("that presents another client's public key", [&](Line& line) {
    return connect_by_curve(line, type, unknown, server_key, good.public_key());
  });
  for (const KeyAttacker& attacker : attackers) faults.must_refuse(attacker.name, with(attacker.key));
  faults.must_admit("with a registered key", with(good));
  return faults.take();
}

std::vector<std::string> attack_without_tickets(const Connect& connect, std::string_view peer_type,
                                                const CurvePublicKey& server_key,
                                                const CurveKeyPair* listed) {
  const CurveKeyPair unknown, other_server;
  const auto with = [&](const CurvePublicKey& server, const CurveKeyPair& own) {
    return [&](Line& line) { return connect_by_curve(line, peer_type, own, server); };
  };
  Faults faults(connect);
  faults.must_refuse("that does not encrypt", [&](Line& line) { return connect_by_null(line, peer_type); });
  faults.must_refuse("that does not encrypt, with an empty ticket",
                     [&](Line& line) { return connect_by_plain(line, peer_type, "", ""); });
  faults.must_refuse("that has another server's key", with(other_server.public_key(), unknown));
  if (listed == nullptr) {
    faults.must_admit("with an unknown key", with(server_key, unknown));
  } else {
    faults.must_refuse("with a key that allowed_client_keys does not list", with(server_key, unknown));
    faults.must_admit("with a key that allowed_client_keys lists", with(server_key, *listed));
  }
  return faults.take();
}

}  // namespace lightq::test
