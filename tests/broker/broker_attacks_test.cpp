/// Attacks the endpoints, sessions and control sockets of a running broker over its own sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <lightq/client.hpp>
#include <lightq/impl/control_connection.hpp>

#include "access/ticket_key_file.hpp"
#include "attacks/endpoint_attacks.hpp"
#include "attacks/session_attacks.hpp"
#include "attacks/socket_line.hpp"
#include "broker/embedded_broker.hpp"
#include "broker/wall_clock.hpp"
#include "support/temp_dir.hpp"

namespace lightq {
namespace {

using namespace std::chrono_literals;
using protocol::Delivery;
using protocol::JoinType;
using ::testing::Contains;
using ::testing::IsEmpty;

/// A broker with two topics, and the key of its tickets, which the attacker knows.
class AttackedBroker {
 public:
  explicit AttackedBroker(std::function<void(broker::Config&)> adjust = {})
      : broker_("tcp://127.0.0.1:0", std::move(adjust)) {
    Client client = broker_.client();
    for (const char* topic : {"orders", "other"}) client.create_topic(topic).value_or_throw();
    if (!broker_.server_key().empty()) identity_ = CurveIdentity::make(broker_.server_key()).value_or_throw();
    control_.emplace(std::make_shared<zmq::context_t>(), broker_.uri(), identity_);
  }

  /// Joins as a user that has the right.
  protocol::JoinReply join(JoinType type, Transport transport, Delivery delivery = Delivery::plain,
                           ConnectionType connection = ConnectionType::zmq,
                           const std::optional<CurvePublicKey>& client_key = {},
                           const char* topic = "orders") {
    const protocol::Join asked{{"alice", planted::user_password},
                               *TopicName::parse(topic),
                               type,
                               connection,
                               transport,
                               false,
                               delivery,
                               client_key};
    return std::get<protocol::JoinReply>(control_->ask(asked, 30s).value_or_throw());
  }
  /// Returns the endpoint of a plain client as a target.
  lightq::test::EndpointTarget endpoint(JoinType type, const protocol::JoinReply& reply) {
    const auto claims = broker::decode_ticket_id(reply.ticket.value().id).value();
    const char* const peer = type == JoinType::push ? "PUSH" : type == JoinType::pull ? "PULL" : "SUB";
    return {lightq::test::connect_to(reply.bind_uri),
            peer,
            *tickets_,
            claims.grant,
            broker::wall_clock_now(),
            claims.holder};
  }
  [[nodiscard]] CurvePublicKey server_key() const { return curve_key(broker_.server_key()); }
  [[nodiscard]] const broker::TicketKey& tickets() const { return *tickets_; }
  static CurvePublicKey curve_key(const std::string& text) { return curve_key_of_z85(text).value(); }

 private:
  testing::EmbeddedBroker broker_;
  std::shared_ptr<const CurveIdentity> identity_;
  std::optional<ControlConnection> control_;
  const std::unique_ptr<broker::TicketKey> tickets_ =
      broker::open_ticket_key(broker_.data_dir() / "ticket.key").value_or_throw();
};

void encrypt(broker::Config& config) {
  config.encrypt = true;
}

/// A client's role and transport.
using PlainWay = std::tuple<JoinType, Transport>;
class PlainAttacks : public ::testing::TestWithParam<PlainWay> {};
INSTANTIATE_TEST_SUITE_P(Ways, PlainAttacks,
                         ::testing::Combine(::testing::Values(JoinType::push, JoinType::pull, JoinType::sub),
                                            ::testing::Values(Transport::tcp, Transport::ipc)),
                         [](const auto& tested) {
                           return std::string(protocol::to_word(std::get<0>(tested.param))) + "_" +
                                  std::string(protocol::to_word(std::get<1>(tested.param)));
                         });

TEST_P(PlainAttacks, EndpointsWithstandThem) {
  const auto [type, transport] = GetParam();
  AttackedBroker attacked;
  EXPECT_THAT(attack_with_tickets(attacked.endpoint(type, attacked.join(type, transport))), IsEmpty());
}

TEST_P(PlainAttacks, EncryptedEndpointsWithstandThem) {
  const auto [type, transport] = GetParam();
  AttackedBroker attacked(encrypt);
  const broker::CurveKeyPair good, of_other_topic, of_other_role;
  const JoinType other = type == JoinType::sub ? JoinType::pull : JoinType::sub;
  const auto join = [&, where = transport](JoinType as, const broker::CurveKeyPair& key, const char* topic) {
    return attacked.join(as, where, Delivery::plain, ConnectionType::zmq, key.public_key(), topic);
  };
  join(type, of_other_topic, "other");
  join(other, of_other_role, "orders");
  EXPECT_THAT(
      attack_with_keys(
          attacked.endpoint(type, join(type, good, "orders")), attacked.server_key(), good,
          {{"with a key of another topic", of_other_topic}, {"with a key of another role", of_other_role}}),
      IsEmpty());
}

TEST(BrokerAttacks, NoticeABrokerWithOpenTopics) {
  AttackedBroker attacked([](broker::Config& config) { config.open_topics = true; });
  const auto faults =
      attack_with_tickets(attacked.endpoint(JoinType::push, attacked.join(JoinType::push, Transport::tcp)));
  EXPECT_EQ(faults.size(), 10U);
  EXPECT_THAT(faults, Contains("admits a client without a ticket"));
}

TEST(BrokerAttacks, NoticeABrokerThatDoesNotEncrypt) {
  AttackedBroker attacked;
  const broker::CurveKeyPair server, good;
  const auto target = attacked.endpoint(JoinType::push, attacked.join(JoinType::push, Transport::tcp));
  EXPECT_THAT(attack_with_keys(target, server.public_key(), good, {}),
              ::testing::ElementsAre("admits a client that does not encrypt, with a good ticket",
                                     "refuses a client with a registered key"));
}

/// The carrier and transport of a session.
using SessionWay = std::tuple<ConnectionType, Transport>;
class BrokerSessionAttacks : public ::testing::TestWithParam<SessionWay> {
 protected:
  static void withstand(AttackedBroker& attacked, bool encrypts) {
    const auto [connection, transport] = GetParam();
    const bool zeromq = connection == ConnectionType::zmq;
    const auto reply = attacked.join(JoinType::push, transport, Delivery::session, connection);
    const auto claims = broker::decode_ticket_id(reply.ticket.value().id).value();
    EXPECT_EQ(reply.tls.has_value(), encrypts && !zeromq && transport == Transport::tcp);
    EXPECT_EQ(reply.server_key.empty(), !(encrypts && zeromq));
    EXPECT_THAT(lightq::test::attack_sessions(
                    {.connect = lightq::test::connect_to(reply.bind_uri),
                     .over_zeromq = zeromq,
                     .server_key = encrypts && zeromq ? std::optional(attacked.server_key()) : std::nullopt,
                     .uses_tls = encrypts && !zeromq && transport == Transport::tcp,
                     .tickets = attacked.tickets(),
                     .grant = claims.grant,
                     .now = broker::wall_clock_now(),
                     .holder = claims.holder}),
                IsEmpty());
  }
};
INSTANTIATE_TEST_SUITE_P(Ways, BrokerSessionAttacks,
                         ::testing::Combine(::testing::Values(ConnectionType::socket, ConnectionType::zmq),
                                            ::testing::Values(Transport::tcp, Transport::ipc)),
                         [](const auto& tested) {
                           return std::string(protocol::to_word(std::get<0>(tested.param))) + "_" +
                                  std::string(protocol::to_word(std::get<1>(tested.param)));
                         });

TEST_P(BrokerSessionAttacks, SessionsWithstandThem) {
  AttackedBroker attacked;
  withstand(attacked, false);
}

TEST_P(BrokerSessionAttacks, EncryptedSessionsWithstandThem) {
  AttackedBroker attacked(encrypt);
  withstand(attacked, true);
}

TEST(ControlAttacks, EncryptedControlSocketsWithstandThem) {
  const testing::EmbeddedBroker attacked("tcp://127.0.0.1:0", encrypt);
  const auto key = AttackedBroker::curve_key(attacked.server_key());
  for (const std::string& uri : {attacked.uri(), "ipc://" + (attacked.data_dir() / "control.sock").string()})
    EXPECT_THAT(attack_without_tickets(lightq::test::connect_to(uri), "DEALER", key, nullptr), IsEmpty())
        << uri;
}

TEST(ControlAttacks, ControlSocketsWithAListOfKeysWithstandThem) {
  const lightq::test::TempDir directory;
  const broker::CurveKeyPair listed;
  const testing::EmbeddedBroker attacked("tcp://127.0.0.1:0", [&](broker::Config& config) {
    config.encrypt = true;
    config.allowed_client_keys = directory / "allowed";
    std::ofstream(directory / "allowed") << to_z85(listed.public_key()) << "\n";
  });
  const auto key = AttackedBroker::curve_key(attacked.server_key());
  for (const std::string& uri : {attacked.uri(), "ipc://" + (attacked.data_dir() / "control.sock").string()})
    EXPECT_THAT(attack_without_tickets(lightq::test::connect_to(uri), "DEALER", key, &listed), IsEmpty())
        << uri;
}

}  // namespace
}  // namespace lightq
