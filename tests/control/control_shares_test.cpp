/// Tests of the quotas of users on a control socket: control/control_server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "control/control_server_fixture.hpp"

namespace lightq::broker {
namespace {

using test::Client;
using test::ping;
using test::pong;
using test::Server;
using testing::HasSubstr;

/// Returns a request of the user with this number that the server keeps until `release`.
std::string kept_of(int number) {
  return R"({"cmd":"stats","topic":"t","user_id":")" + std::to_string(number) + R"(","password":"p"})";
}

/// Returns a request of the user with this number that the server answers immediately.
std::string answered_of(int number) {
  return R"({"cmd":"list_topics","admin_user_id":")" + std::to_string(number) + R"(","admin_password":"p"})";
}

TEST(ControlServer, LimitsTheRequestsOfOneUserThatAreUnderWayFromAllSources) {
  Server server({.requests_waiting_max = 8});
  Client here(server, zmq::socket_type::dealer, "127.0.0.2");
  Client there(server, zmq::socket_type::dealer, "127.0.0.3");
  Client elsewhere(server, zmq::socket_type::dealer, "127.0.0.4");
  for (Client* const client : {&here, &there}) {
    client->send({kept_of(7)});
    EXPECT_EQ(client->ask(ping), pong) << "what came before was taken";
  }
  EXPECT_THAT(elsewhere.ask(kept_of(7)), HasSubstr("2 requests of this user are under way already"));
  elsewhere.send({kept_of(8)});
  EXPECT_EQ(elsewhere.ask(ping), pong) << "another user's was taken";
  EXPECT_EQ(server.count_of(Limit::requests_waiting_per_user_max), 1U);
  EXPECT_EQ(server.count_of(Limit::requests_waiting_per_source_max), 0U);
  server.release();
  for (Client* const client : {&here, &there, &elsewhere})
    EXPECT_THAT(client->receive().at(0), HasSubstr(R"("status":"ok")"));
  elsewhere.send({kept_of(7)});
  EXPECT_EQ(elsewhere.ask(ping), pong);
}

TEST(ControlServer, OneUserLeavesPlacesForOthersOfItsSource) {
  Server server;
  Client ann(server, zmq::socket_type::dealer);
  for (std::size_t i = 0; i <= limits::requests_waiting_per_source_max; ++i) ann.send({kept_of(7)});
  EXPECT_THAT(ann.receive().at(0), HasSubstr("224 requests of this user are under way already"));
  Client bob(server, zmq::socket_type::dealer);
  bob.send({kept_of(8)});
  EXPECT_EQ(bob.ask(ping), pong) << "it was taken";
  EXPECT_EQ(server.count_of(Limit::requests_waiting_per_source_max), 0U);
  server.release();
  EXPECT_THAT(bob.receive().at(0), HasSubstr(R"("status":"ok")"));
}

TEST(ControlServer, ChargesTheWorkOfARequestWhoseClientHasGone) {
  Server server({}, 0, 10);
  Client bob(server, zmq::socket_type::dealer);
  {
    Client ann(server, zmq::socket_type::dealer);
    ann.send({kept_of(7)});
    EXPECT_EQ(ann.ask(ping), pong) << "it was taken";
  }
  for (int i = 0; i < 2; ++i) EXPECT_EQ(bob.ask(ping), pong) << "the server has seen that the client left";
  server.release(1 * limits::MiB);
  EXPECT_EQ(bob.ask(ping), pong) << "the request was answered";
  EXPECT_THAT(bob.ask(kept_of(7)), HasSubstr("too many long replies to this user"));
}

TEST(ControlServer, EvictsIdleConnectionsOfTheUserWithMost) {
  Server server({.connections_max = 4});
  Client bobs(server, zmq::socket_type::dealer);
  EXPECT_THAT(bobs.ask(answered_of(8)), HasSubstr(R"("status":"ok")"));
  std::vector<std::unique_ptr<Client>> anns;
  const auto ann = [&] {
    return anns.emplace_back(std::make_unique<Client>(server, zmq::socket_type::dealer)).get();
  };
  Client& waits = *ann();
  waits.send({kept_of(7)});
  EXPECT_EQ(waits.ask(ping), pong);
  for (int i = 0; i < 6; ++i) EXPECT_THAT(ann()->ask(answered_of(7)), HasSubstr(R"("status":"ok")"));
  EXPECT_EQ(server.count_of(Limit::control_connections_max), 4U);
  bobs.send({kept_of(8)});
  EXPECT_EQ(bobs.ask(ping), pong);
  EXPECT_EQ(server.count_of(Limit::control_connections_max), 4U) << "it was there still";
  server.release();
  EXPECT_THAT(waits.receive().at(0), HasSubstr(R"("status":"ok")"));
  EXPECT_THAT(bobs.receive().at(0), HasSubstr(R"("status":"ok")"));
}

TEST(ControlServer, WhileAllConnectionsWaitForRepliesMoreAreAccepted) {
  Server server({.connections_max = 2});
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 4; ++i) {
    Client& client = *clients.emplace_back(std::make_unique<Client>(server, zmq::socket_type::dealer));
    client.send({kept_of(7)});
    EXPECT_EQ(client.ask(ping), pong);
  }
  EXPECT_EQ(server.count_of(Limit::control_connections_max), 0U);
  server.release();
  for (const auto& client : clients) EXPECT_THAT(client->receive().at(0), HasSubstr(R"("status":"ok")"));
  EXPECT_THAT(clients.front()->ask(answered_of(7)), HasSubstr(R"("status":"ok")"));
  EXPECT_EQ(server.count_of(Limit::control_connections_max), 2U);
}

}  // namespace
}  // namespace lightq::broker
