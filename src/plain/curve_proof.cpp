/// The connection attempts by which encrypted authorizers are tested at the broker's start. Layer: plain.
#include "plain/curve_proof.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zmtp/zmtp_handshake.hpp"

namespace lightq::broker {

namespace {

constexpr std::string_view our_type = "PULL";
constexpr std::string_view peer_type = "PUSH";

/// The server's side of one handshake.
class Door {
 public:
  explicit Door(const ConnectionAuthorizer& authorizer) : handshake_(our_type, {peer_type}) {
    handshake_.guard(&authorizer);
    handshake_.begin(said_);
  }
  /// Passes `says` to the server, and returns the server's reply.
  std::vector<std::byte> hear(const std::vector<std::byte>& says) {
    come_.insert(come_.end(), says.begin(), says.end());
    const std::size_t used = handshake_.take(come_, said_);
    come_.erase(come_.begin(), come_.begin() + static_cast<std::ptrdiff_t>(used));
    return std::exchange(said_, {});
  }
  /// Returns true if the handshake is complete and everything after it must be encrypted.
  [[nodiscard]] bool lets_in() {
    return handshake_.complete() && handshake_.failure().empty() && handshake_.take_cipher() != nullptr;
  }

 private:
  ZmtpHandshake handshake_;
  std::vector<std::byte> come_;
  std::vector<std::byte> said_;
};

std::vector<std::byte> greeting_of(zmtp::Mechanism mechanism) {
  const auto greeting = zmtp::greeting(mechanism);
  return {greeting.begin(), greeting.end()};
}

/// Returns true if a peer that sends `says` without encryption completes the handshake, whether or not a
/// cipher results.
bool gets_in(const ConnectionAuthorizer& authorizer, const std::vector<std::byte>& says) {
  ZmtpHandshake handshake(our_type, {peer_type});
  handshake.guard(&authorizer);
  std::vector<std::byte> said;
  handshake.begin(said);
  handshake.take(says, said);
  return handshake.complete();
}

bool gets_in_by_null(const ConnectionAuthorizer& authorizer) {
  auto says = greeting_of(zmtp::Mechanism::null);
  zmtp::append_ready(says, peer_type);
  return gets_in(authorizer, says);
}

bool gets_in_by_plain(const ConnectionAuthorizer& authorizer, const protocol::Ticket& ticket) {
  auto says = greeting_of(zmtp::Mechanism::plain);
  zmtp::append_hello(says, ticket.id, ticket.secret);
  zmtp::append_initiate(says, peer_type);
  return gets_in(authorizer, says);
}

/// Returns the data of the first command frame in `said` if the command has this name; otherwise an empty
/// view.
ByteView data_of(ByteView said, std::string_view name) {
  zmtp::FrameHeader header;
  if (zmtp::parse_frame_header(said, header) != zmtp::FrameOutcome::complete || !header.command) return {};
  const auto body = said.subspan(header.header_bytes);
  if (body.size() < header.body_bytes) return {};
  const auto command = zmtp::parse_command(body.first(static_cast<std::size_t>(header.body_bytes)));
  return command && command->name == name ? command->data : ByteView{};
}

bool gets_in_by_curve(const ConnectionAuthorizer& authorizer, const CurveKeyPair& key,
                      const CurvePublicKey& server_key, const std::optional<CurvePublicKey>& claimed = {}) {
  Door door(authorizer);
  CurveClient client(key, server_key);
  door.hear(greeting_of(zmtp::Mechanism::curve));
  std::vector<std::byte> says;
  client.append_hello(says);
  const auto welcome = door.hear(says);
  if (!client.take_welcome(data_of(welcome, "WELCOME"))) return door.lets_in();
  says.clear();
  client.append_initiate(says, zmtp::metadata_of(peer_type), claimed);
  const auto ready = door.hear(says);
  return door.lets_in() && client.take_ready(data_of(ready, "READY")).has_value();
}

Error lets_in(const std::string& where, const std::string& whom) {
  return {ErrorCode::internal,
          "encrypted " + where + " admit a client " + whom + ", so the broker does not start"};
}

/// Registers keys, and removes them when the test ends.
class Registered {
 public:
  explicit Registered(ClientKeys& keys) : keys_(keys) {}
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;
  ~Registered() {
    for (const auto& [key, grant] : put_) keys_.remove(key, grant);
  }
  void put(const CurveKeyPair& key, const Grant& grant, std::uint64_t expires_ms,
           const TicketHolder& holder = {}) {
    keys_.put({key.public_key(), grant, expires_ms, holder});
    put_.emplace_back(key.public_key(), grant);
  }

 private:
  ClientKeys& keys_;
  std::vector<std::pair<CurvePublicKey, Grant>> put_;
};

}  // namespace

Result<void> prove_curve_gate(const ConnectionAuthorizer& authorizer, ClientKeys& keys,
                              const CurveKeyPair& server, const TicketKey& tickets, const Grant& grant,
                              Timestamp now) {
  using namespace std::chrono_literals;
  const auto gets = [](const std::string& whom) { return lets_in("data endpoints", whom); };
  const CurveKeyPair good, of_other_topic, of_other_role, expired, of_nobody_known, of_old_password, endless,
      unknown, other_server;
  const auto at = [now](std::chrono::milliseconds later) {
    return static_cast<std::uint64_t>(now.us / 1000 + later.count());
  };
  const std::uint64_t later_ms = at(1min);  // a lifetime that every ticket_ms permits
  const EndpointRole other_role = grant.role == EndpointRole::sub ? EndpointRole::pull : EndpointRole::sub;
  Registered registered(keys);
  registered.put(good, grant, later_ms);
  registered.put(of_other_topic, {TopicId{~grant.topic.value}, grant.role}, later_ms);
  registered.put(of_other_role, {grant.topic, other_role}, later_ms);
  registered.put(expired, grant, at(-1h));
  registered.put(of_nobody_known, grant, later_ms, {.user = ~std::uint64_t{0}, .generation = 1});
  registered.put(of_old_password, grant, later_ms, {.user = 0, .generation = 1});
  registered.put(endless, grant, at(std::chrono::milliseconds(limits::ticket_ms_max) + 1h));
  const auto enters = [&](const CurveKeyPair& key) {
    return gets_in_by_curve(authorizer, key, server.public_key());
  };

  if (gets_in_by_null(authorizer)) return gets("that does not encrypt");
  if (gets_in_by_plain(authorizer, tickets.issue(grant, 1min, now)))
    return gets("that does not encrypt, with a good ticket");
  if (gets_in_by_curve(authorizer, good, other_server.public_key()))
    return gets("that has another server's key");
  if (enters(unknown)) return gets("with a key that is not registered");
  if (gets_in_by_curve(authorizer, unknown, server.public_key(), good.public_key()))
    return gets("that presents another client's public key");
  if (enters(of_other_topic)) return gets("with a key of another topic");
  if (enters(of_other_role)) return gets("with a key of another role");
  if (enters(expired)) return gets("with a key that has expired");
  if (enters(of_nobody_known)) return gets("of a user who has lost the right");
  if (enters(of_old_password)) return gets("with a key of another administrator's password");
  if (enters(endless)) return gets("with a key that expires too late");
  if (!enters(good)) return Error{ErrorCode::internal, "encrypted data endpoints refuse a registered key"};
  return {};
}

Result<void> prove_open_curve_gate(const ConnectionAuthorizer& authorizer, const CurveKeyPair& server,
                                   bool anybody) {
  const std::string where = "control sockets";
  const CurveKeyPair unknown, other_server;
  if (gets_in_by_null(authorizer) || gets_in_by_plain(authorizer, {}))
    return lets_in(where, "that does not encrypt");
  if (gets_in_by_curve(authorizer, unknown, other_server.public_key()))
    return lets_in(where, "that has another server's key");
  const bool enters = gets_in_by_curve(authorizer, unknown, server.public_key());
  if (enters && !anybody) return lets_in(where, "with a key that allowed_client_keys does not list");
  if (!enters && anybody) return Error{ErrorCode::internal, "encrypted control sockets refuse every client"};
  return {};
}

}  // namespace lightq::broker
