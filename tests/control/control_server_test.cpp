/// Tests of the control socket: control/control_server.
#include "control/control_server.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>
#include <zmq.hpp>

#include <lightq/base/limits.hpp>

#include "control/catalogue_room.hpp"
#include "control/control_server_fixture.hpp"
#include "support/planted.hpp"

namespace lightq::broker {
namespace {

using test::Client;
using test::kept_request;
using test::ping;
using test::pong;
using test::Server;
using testing::HasSubstr;

/// A server with a stopped clock that permits five requests a second for each source. Two requests of each
/// connection are free.
class StingyServer {
 public:
  StingyServer() {
    const auto handle = [](const protocol::Request&, const ControlServer::Answer& answer) {
      EXPECT_EQ(answer.source().key.size(), 5U);
      answer(protocol::OkReply{"ping", {}, {}});
    };
    server_ = ControlServer::open(
                  loop_, sink_, "tcp://127.0.0.1:0", handle, {},
                  {.requests_per_second = 5, .requests_free = 2, .now = [this] { return now_.load(); }})
                  .value_or_throw();
    server_->accept().value_or_throw();
    thread_ = std::jthread([this](const std::stop_token& stop) { loop_.run(stop); });
  }
  ~StingyServer() { thread_ = {}; }
  [[nodiscard]] const std::string& uri() const { return server_->bound_uri(); }
  void pass(std::chrono::milliseconds time) { now_ = now_.load() + time; }
  [[nodiscard]] std::uint64_t throttled() {
    std::promise<std::uint64_t> told;
    loop_.post_answer([&] { told.set_value(server_->throttled()); });
    return told.get_future().get();
  }

 private:
  EventLoop loop_;
  test::RecordingSink sink_;
  std::atomic<Tokens::Time> now_ = Tokens::Time(std::chrono::hours(1));
  std::unique_ptr<ControlServer> server_;
  std::jthread thread_;
};

TEST(ControlServer, ReturnsTheEnvelopeOfReqAndDealerClients) {
  const Server server;
  EXPECT_THAT(server.uri(), testing::Not(testing::EndsWith(":0")));
  Client req(server, zmq::socket_type::req);
  EXPECT_EQ(req.ask(ping), pong);
  EXPECT_EQ(req.ask(ping), pong);
  Client dealer(server, zmq::socket_type::dealer);
  dealer.send({ping});
  EXPECT_EQ(dealer.receive(), std::vector<std::string>{pong});
  dealer.send({"", ping});
  EXPECT_EQ(dealer.receive(), (std::vector<std::string>{"", pong}));
}

TEST(ControlServer, SendsAllFramesOfAnEnvelopeBack) {
  const Server server;
  Client correlating(server, zmq::socket_type::req);
  correlating.socket().set(zmq::sockopt::req_correlate, true);
  EXPECT_EQ(correlating.ask(ping), pong);
  EXPECT_THAT(correlating.ask("no JSON"), HasSubstr("invalid_json"));
  Client dealer(server, zmq::socket_type::dealer);
  const std::string id = std::string(1, '\0') + "client";
  for (const std::vector<std::string>& envelope :
       {std::vector<std::string>{""}, {id, ""}, {"hop", "hop", id, ""}, {std::string(300, 'i'), ""}}) {
    std::vector<std::string> message = envelope;
    message.push_back(ping);
    dealer.send(message);
    message.back() = pong;
    EXPECT_EQ(dealer.receive(), message);
    message.back() = std::string(70'000, ' ');
    dealer.send(message);
    const auto refused = dealer.receive();
    ASSERT_EQ(refused.size(), message.size());
    EXPECT_TRUE(std::equal(envelope.begin(), envelope.end(), refused.begin()));
    EXPECT_THAT(refused.back(), HasSubstr("request_too_large"));
  }
  dealer.send({ping});
  EXPECT_EQ(dealer.receive(), std::vector<std::string>{pong}) << "nothing is left of those before";
}

TEST(ControlServer, BoundsAnEnvelope) {
  const Server server;
  Client dealer(server, zmq::socket_type::dealer);
  const std::size_t most = ControlConnection::envelope_bytes_max;
  std::vector<std::vector<std::string>> too_long = {{std::string(most, 'i'), "", ping}};
  too_long.emplace_back(most / 3 + 1, "i").insert(too_long.back().end(), {"", ping});
  too_long.push_back({"a", std::string(2 * limits::request_bytes_max, 'i'), "b", "", ping});
  for (const auto& message : too_long) {
    dealer.send(message);
    const auto refused = dealer.receive();
    ASSERT_EQ(refused.size(), 2U) << "the empty frame, by which a REQ knows an answer, and the error";
    EXPECT_EQ(refused[0], "");
    EXPECT_THAT(refused[1], HasSubstr("more than " + std::to_string(most) + " bytes"));
  }
  dealer.send({std::string(most - 20, 'i'), "", ping});
  EXPECT_EQ(dealer.receive(), (std::vector<std::string>{std::string(most - 20, 'i'), "", pong}));
}

TEST(ControlServer, ReportsTheSizeOfATooLargeRequest) {
  const Server server;
  Client dealer(server, zmq::socket_type::dealer);
  EXPECT_THAT(dealer.ask(std::string(limits::MiB, ' ')),
              HasSubstr("the document has 1048576 bytes; at most 65536 are accepted"));
}

TEST(ControlServer, AnswersInvalidRequestsWithAnError) {
  const Server server;
  Client dealer(server, zmq::socket_type::dealer);
  const std::vector<std::vector<std::string>> messages = {{""},
                                                          {"", ""},
                                                          {"x"},
                                                          {"", "x"},
                                                          {"a", "b"},
                                                          {"", ping, ping},
                                                          {"", "", ""},
                                                          {"{}"},
                                                          {"[]"},
                                                          {std::string(70'000, ' ')},
                                                          {std::string(65'000, '[')},
                                                          {std::string(1, '\0')}};
  for (const auto& message : messages) {
    dealer.send(message);
    const auto answer = dealer.receive();
    ASSERT_FALSE(answer.empty());
    EXPECT_THAT(answer.back(), HasSubstr(R"("status":"error")"));
  }
  Client req(server, zmq::socket_type::req);
  EXPECT_THAT(req.ask(""), HasSubstr("invalid_json"));
  EXPECT_THAT(req.ask(R"({"cmd":5})"), HasSubstr("invalid_cmd"));
  EXPECT_EQ(req.ask(ping), pong);
}

TEST(ControlServer, AnswersEachOfManyConcurrentRequests) {
  const Server server;
  Client dealer(server, zmq::socket_type::dealer);
  for (int i = 0; i < 900; ++i) dealer.send({ping});
  for (int i = 0; i < 900; ++i) ASSERT_EQ(dealer.receive(), std::vector<std::string>{pong}) << i;
}

TEST(ControlServer, LimitsTheRequestsOfOneSourceThatAreUnderWay) {
  Server server;
  Client dealer(server, zmq::socket_type::dealer);
  const auto limit = static_cast<int>(limits::requests_waiting_per_source_max);
  for (int i = 0; i < limit + 3; ++i) dealer.send({kept_request});
  for (int i = 0; i < 3; ++i)
    EXPECT_THAT(dealer.receive().at(0),
                HasSubstr("256 requests from this source address are under way already"));
  Client second(server, zmq::socket_type::dealer);
  EXPECT_THAT(second.ask(kept_request), HasSubstr(R"("code":"busy")")) << "it has the same address";
  Client other(server, zmq::socket_type::dealer, "127.0.0.2");
  other.send({kept_request});
  other.send({ping});
  EXPECT_EQ(other.receive().at(0), pong) << "what came before was taken";
  server.release();
  for (int i = 0; i < limit; ++i) ASSERT_THAT(dealer.receive().at(0), HasSubstr(R"("status":"ok")")) << i;
  EXPECT_THAT(other.receive().at(0), HasSubstr(R"("status":"ok")"));
  dealer.send({kept_request});
  dealer.send({ping});
  EXPECT_EQ(dealer.receive().at(0), pong) << "what is answered does not count";
}

TEST(ControlServer, RequestsThatWaitForAPasswordDoNotBlockOthers) {
  Server server;
  Client dealer(server, zmq::socket_type::dealer);
  const std::string aside = std::string(R"({"cmd":"pause","topic":"t","user_id":"u","password":")") +
                            planted::user_password + R"("})";
  const auto limit = static_cast<int>(limits::requests_waiting_per_source_max);
  for (int i = 0; i < limit + 3; ++i) dealer.send({aside});
  EXPECT_EQ(dealer.ask(ping), pong);
  Client second(server, zmq::socket_type::dealer);
  second.send({kept_request});
  EXPECT_EQ(second.ask(ping), pong) << "it was taken";
  server.release();
  for (int i = 0; i < limit + 3; ++i) ASSERT_THAT(dealer.receive().at(0), HasSubstr(R"("status":"ok")")) << i;
}

TEST(ControlServer, AnswersRequestsWithoutCredentialsWhenAllPlacesAreTaken) {
  Server server;
  Client dealer(server, zmq::socket_type::dealer);
  const auto limit = static_cast<int>(limits::requests_waiting_per_source_max);
  for (int i = 0; i < limit; ++i) dealer.send({kept_request});
  dealer.send({kept_request});
  EXPECT_THAT(dealer.receive().at(0), HasSubstr(R"("code":"busy")"));
  EXPECT_EQ(dealer.ask(ping), pong);
  EXPECT_EQ(dealer.ask(R"({"cmd":"version"})"), pong) << "this server says that to all";
}

TEST(ControlServer, IsBusyWithMoreRequestsUnderWayThanItsLimit) {
  Server server;
  std::vector<std::unique_ptr<Client>> sources;
  constexpr auto each = limits::requests_waiting_per_source_max;
  static_assert(limits::requests_waiting_max % each == 0);
  for (std::size_t from = 1; from <= limits::requests_waiting_max / each; ++from) {
    auto& source = *sources.emplace_back(
        std::make_unique<Client>(server, zmq::socket_type::dealer, "127.0.0." + std::to_string(from)));
    for (std::size_t i = 0; i <= each; ++i) source.send({kept_request});
    ASSERT_THAT(source.receive().at(0), HasSubstr(R"("code":"busy")")) << "its others are under way";
  }
  Client late(server, zmq::socket_type::dealer, "127.0.0.99");
  EXPECT_THAT(late.ask(kept_request), HasSubstr("1024 requests are under way already"));
  server.release();
  for (const auto& source : sources)
    for (std::size_t i = 0; i < each; ++i)
      ASSERT_THAT(source->receive().at(0), HasSubstr(R"("status":"ok")")) << i;
  late.send({kept_request});
  EXPECT_EQ(late.ask(ping), pong);
}

TEST(ControlServer, OutlivesAClientThatSendsMoreThanTheHardLimit) {
  const Server server;
  Client rude(server, zmq::socket_type::req);
  rude.send({std::string(3'000'000, 'x')});
  Client polite(server, zmq::socket_type::req);
  EXPECT_EQ(polite.ask(ping), pong);
}

/// Sends bytes as an unauthenticated peer. Returns true if the server closes the connection within 10 s.
bool is_hung_up_on(int port, const std::string& bytes, std::string& received) {
  const int stranger = socket(AF_INET, SOCK_STREAM, 0);
  const timeval patience{10, 0};
  setsockopt(stranger, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(stranger, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return false;
  [[maybe_unused]] const auto sent = send(stranger, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  char buffer[256];
  ssize_t got = 0;
  while ((got = recv(stranger, buffer, sizeof buffer, 0)) > 0) {
    received.append(buffer, static_cast<std::size_t>(got));
  }
  const bool hung_up = got == 0 || errno == ECONNRESET;
  close(stranger);
  return hung_up;
}

TEST(ControlServer, HangsUpOnPeersThatSpeakNoZmtp3) {
  const Server server;
  // An unversioned (ZMTP 1) peer: length, flags, identity, then a frame with a request. The server must not
  // accept the request.
  std::string zmtp1 = {1, 0};
  zmtp1 += static_cast<char>(ping.size() + 1);
  zmtp1 += '\0';
  zmtp1 += ping;
  // A ZMTP 2 peer: signature, revision 1, socket type DEALER, an empty identity, a frame.
  std::string zmtp2 = {static_cast<char>(0xff), 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 1, 5, 0, 0, 0};
  zmtp2 += static_cast<char>(ping.size());
  zmtp2 += ping;
  for (const auto& bytes : {zmtp1, zmtp2, std::string("GET / HTTP/1.1\r\n\r\n"), std::string()}) {
    std::string received;
    EXPECT_TRUE(is_hung_up_on(server.port(), bytes, received)) << bytes;
    EXPECT_THAT(received, testing::Not(HasSubstr("status"))) << "taken for a request: " << bytes;
  }
  Client req(server, zmq::socket_type::req);
  EXPECT_EQ(req.ask(ping), pong);
}

TEST(ControlServer, ReportsWhyAnAddressCannotBeBound) {
  EventLoop loop;
  test::RecordingSink sink;
  const auto open = [&](const std::string& uri) {
    const auto opened = ControlServer::open(loop, sink, uri, [](auto, auto) {});
    EXPECT_FALSE(opened.ok()) << uri;
    return opened.ok() ? Error{} : opened.error();
  };
  const Server server;
  const auto taken = open(server.uri());
  EXPECT_EQ(taken.code, ErrorCode::address_in_use);
  EXPECT_THAT(taken.text(), HasSubstr(server.uri()));
  EXPECT_THAT(taken.text(), HasSubstr("in use"));
  EXPECT_EQ(open("nonsense").code, ErrorCode::invalid_argument);
  EXPECT_EQ(open("tcp://127.0.0.1:99999").code, ErrorCode::invalid_argument);
}

TEST(ControlServer, RefusesRequestsBeyondTheRateOfTheirSource) {
  StingyServer server;
  Client greedy(server, zmq::socket_type::req);
  const auto word = [&](Client& client) {
    client.send({ping});
    const auto answer = client.receive();
    EXPECT_FALSE(answer.empty());
    const bool busy =
        answer.back().find(R"("cmd":"ping","status":"error","code":"busy")") != std::string::npos;
    return busy ? "busy" : answer.back().find(R"("status":"ok")") != std::string::npos ? "ok" : "?";
  };
  for (int i = 0; i < 5; ++i) EXPECT_STREQ(word(greedy), "ok");
  EXPECT_STREQ(word(greedy), "busy");
  EXPECT_STREQ(word(greedy), "busy");
  Client modest(server, zmq::socket_type::req);
  EXPECT_STREQ(word(modest), "ok") << "the first of each connection always go";
  EXPECT_STREQ(word(modest), "ok");
  EXPECT_STREQ(word(modest), "busy");
  EXPECT_EQ(server.throttled(), 3U);
  server.pass(std::chrono::milliseconds(1000));
  for (int i = 0; i < 5; ++i) EXPECT_STREQ(word(greedy), "ok");
  EXPECT_STREQ(word(greedy), "busy");
}

TEST(ControlServer, ClosesOnlyTheClientWithMostUnreadRepliesOfItsSource) {
  constexpr std::size_t answer_bytes = 1 * limits::MiB;
  Server server({.answers_unread_bytes_total = 64 * limits::MiB}, answer_bytes);
  Client hog(server, zmq::socket_type::dealer, "127.0.0.2");
  Client neighbour(server, zmq::socket_type::dealer, "127.0.0.2");
  Client other(server, zmq::socket_type::dealer, "127.0.0.3");
  for (Client* const client : {&hog, &neighbour, &other}) {
    client->send({ping});
    EXPECT_EQ(client->receive().at(0), pong);
    for (int i = 0; i < (client == &hog ? 50 : 3); ++i) client->send({kept_request});
    client->send({ping});
    EXPECT_EQ(client->receive().at(0), pong) << "what came before was taken";
  }
  server.release();
  for (Client* const client : {&neighbour, &other}) {
    for (int i = 0; i < 3; ++i) EXPECT_GT(client->receive().at(0).size(), answer_bytes);
  }
  EXPECT_EQ(server.count_of(Limit::answers_unread_bytes_total), 1U)
      << "the hog, as the others have all of theirs";
  EXPECT_EQ(server.count_of(Limit::answers_unread_bytes_max), 0U) << "it had not too much by itself";
}

TEST(ControlServer, CountsClientsWithTooManyUnreadRepliesSeparately) {
  constexpr std::size_t answer_bytes = 1 * limits::MiB;
  Server server({.answers_unread_bytes_max = 8 * limits::MiB}, answer_bytes);
  Client hog(server, zmq::socket_type::dealer, "127.0.0.2");
  for (int i = 0; i < 50; ++i) hog.send({kept_request});
  hog.send({ping});
  EXPECT_EQ(hog.receive().at(0), pong);
  server.release();
  EXPECT_EQ(server.count_of(Limit::answers_unread_bytes_max), 1U);
  EXPECT_EQ(server.count_of(Limit::answers_unread_bytes_total), 0U);
}

TEST(ControlServer, AClientThatIsReadingItsRepliesIsNotEvictedFirst) {
  constexpr std::size_t answer_bytes = 4 * limits::MiB;
  constexpr int answers = 8;  // more bytes than the buffers between server and client
  Server server({.connections_max = 3}, answer_bytes, 1'000'000);
  const std::string of_seven = std::string(R"("7","password":")") + planted::user_password + "\"}";
  Client reader(server, zmq::socket_type::dealer, "127.0.0.2");
  for (int i = 0; i < answers; ++i) reader.send({R"({"cmd":"stats","topic":"t","user_id":)" + of_seven});
  reader.send({ping});
  EXPECT_EQ(reader.receive().at(0), pong) << "what came before was taken";
  server.release();
  std::vector<std::unique_ptr<Client>> others;
  for (int i = 0; i < 5; ++i) {
    others.push_back(std::make_unique<Client>(server, zmq::socket_type::dealer));
    const auto answer =
        others.back()->ask(std::string(R"({"cmd":"list_topics","admin_user_id":"7","admin_password":")") +
                           planted::user_password + "\"}");
    EXPECT_THAT(answer, HasSubstr(R"("status":"ok")"));
  }
  EXPECT_EQ(server.count_of(Limit::control_connections_max), 3U);
  for (int i = 0; i < answers; ++i) {
    const auto answer = reader.receive();
    ASSERT_EQ(answer.size(), 1U) << "of answer " << i;
    EXPECT_GT(answer[0].size(), answer_bytes);
  }
}

TEST(ControlServer, ReadsOnlyTheCommandOfRequestsBeyondTheRateOfTheirSource) {
  StingyServer server;
  Client greedy(server, zmq::socket_type::dealer);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(greedy.ask(ping), pong);
  const std::string late = R"({"more":")" + std::string(2 * limits::KiB, 'x') + R"(","cmd":"ping"})";
  const std::string refused = R"("status":"error","code":"busy")";
  EXPECT_THAT(greedy.ask(R"({"more":1,"cmd" : "ping"})"), HasSubstr(R"({"cmd":"ping",)" + refused));
  EXPECT_THAT(greedy.ask(late), HasSubstr("{" + refused)) << "its command is not looked for so far behind";
  EXPECT_THAT(greedy.ask(R"({"cmd":"ping")"), HasSubstr(R"({"cmd":"ping",)" + refused));
  EXPECT_THAT(greedy.ask("no JSON"), HasSubstr("{" + refused));
  EXPECT_THAT(greedy.ask(std::string(limits::request_bytes_max + 1, ' ')), HasSubstr("{" + refused));
  greedy.send({ping, "one part more"});
  EXPECT_THAT(greedy.receive().at(0), HasSubstr(R"({"cmd":"ping",)" + refused));
  EXPECT_EQ(server.throttled(), 6U);
}

TEST(ControlServer, PermitsAsMuchAsItsLimits) {
  Server server({.request_bytes_max = 4096, .requests_waiting_max = 8, .connections_max = 2});
  Client dealer(server, zmq::socket_type::dealer, "127.0.0.2");
  dealer.send({ping + std::string(4096 - ping.size(), ' ')});
  EXPECT_EQ(dealer.receive().at(0), pong);
  dealer.send({ping + std::string(4097 - ping.size(), ' ')});
  EXPECT_THAT(dealer.receive().at(0), HasSubstr(R"("code":"request_too_large")"));
  for (int i = 0; i < 3; ++i) dealer.send({kept_request});
  EXPECT_THAT(dealer.receive().at(0), HasSubstr("2 requests from this source address are under way already"));
  Client other(server, zmq::socket_type::dealer, "127.0.0.3");
  EXPECT_EQ(other.ask(ping), pong);
  EXPECT_EQ(server.count_of(Limit::request_bytes_max), 1U);
  EXPECT_EQ(server.count_of(Limit::requests_waiting_per_source_max), 1U);
  server.release();
  for (int i = 0; i < 2; ++i) EXPECT_THAT(dealer.receive().at(0), HasSubstr(R"("status":"ok")"));
}

}  // namespace
}  // namespace lightq::broker
