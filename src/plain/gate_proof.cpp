/// The connection attempts by which authorizers are tested at the broker's start. Layer: plain.
#include "plain/gate_proof.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "zmtp/zmtp_handshake.hpp"

namespace lightq::broker {

namespace {

constexpr std::string_view our_type = "PULL";
constexpr std::string_view peer_type = "PUSH";

bool gets_in(const ConnectionAuthorizer& authorizer, const std::vector<std::byte>& says) {
  ZmtpHandshake handshake(our_type, {peer_type});
  handshake.guard(&authorizer);
  std::vector<std::byte> said;
  handshake.begin(said);
  handshake.take(says, said);
  return handshake.complete() && handshake.failure().empty();
}

bool gets_in_without_ticket(const ConnectionAuthorizer& authorizer) {
  const auto greeting = zmtp::greeting(zmtp::Mechanism::null);
  std::vector<std::byte> says(greeting.begin(), greeting.end());
  zmtp::append_ready(says, peer_type);
  return gets_in(authorizer, says);
}

bool gets_in_with(const ConnectionAuthorizer& authorizer, std::string_view id, std::string_view secret) {
  const auto greeting = zmtp::greeting(zmtp::Mechanism::plain);
  std::vector<std::byte> says(greeting.begin(), greeting.end());
  zmtp::append_hello(says, id, secret);
  zmtp::append_initiate(says, peer_type);
  return gets_in(authorizer, says);
}

}  // namespace

Result<void> prove_gate(const ConnectionAuthorizer& authorizer, const TicketKey& tickets, const Grant& grant,
                        Timestamp now) {
  using namespace std::chrono_literals;
  const auto lets_in = [](const std::string& whom) {
    return Error{ErrorCode::internal,
                 "data endpoints admit a client " + whom + ", so the broker does not start"};
  };
  constexpr auto lifetime = 1min;  // a lifetime that every ticket_ms permits
  const TicketKey other_key(TicketKey::random_bytes());
  const auto good = tickets.issue(grant, lifetime, now);
  const auto of_other_key = other_key.issue(grant, lifetime, now);
  const auto of_other_topic = tickets.issue({TopicId{~grant.topic.value}, grant.role}, lifetime, now);
  const auto of_other_role = tickets.issue(
      {grant.topic, grant.role == EndpointRole::sub ? EndpointRole::pull : EndpointRole::sub}, lifetime, now);
  const auto expired = tickets.issue(grant, -1h, now);
  const auto of_nobody_known =
      tickets.issue(grant, lifetime, now, {.user = ~std::uint64_t{0}, .generation = 1});
  const auto of_old_password = tickets.issue(grant, lifetime, now, {.user = 0, .generation = 1});
  const auto endless = tickets.issue(grant, std::chrono::milliseconds(limits::ticket_ms_max) + 1h, now);
  if (gets_in_without_ticket(authorizer)) return lets_in("without a ticket");
  if (gets_in_with(authorizer, "", "")) return lets_in("with an empty ticket");
  if (gets_in_with(authorizer, good.id, of_other_key.secret)) return lets_in("with a wrong secret");
  if (gets_in_with(authorizer, of_other_key.id, of_other_key.secret))
    return lets_in("with another broker's ticket");
  if (gets_in_with(authorizer, of_other_topic.id, of_other_topic.secret))
    return lets_in("with a ticket of another topic");
  if (gets_in_with(authorizer, of_other_role.id, of_other_role.secret))
    return lets_in("with a ticket of another role");
  if (gets_in_with(authorizer, expired.id, expired.secret)) return lets_in("with a ticket that has expired");
  if (gets_in_with(authorizer, of_nobody_known.id, of_nobody_known.secret))
    return lets_in("of a user who has lost the right");
  if (gets_in_with(authorizer, of_old_password.id, of_old_password.secret))
    return lets_in("with a ticket of another administrator's password");
  if (gets_in_with(authorizer, endless.id, endless.secret))
    return lets_in("with a ticket that expires too late");
  if (!gets_in_with(authorizer, good.id, good.secret))
    return Error{ErrorCode::internal, "data endpoints refuse a client with a good ticket"};
  return {};
}

}  // namespace lightq::broker
