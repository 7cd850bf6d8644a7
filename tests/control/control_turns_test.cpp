/// Tests of how long one client of the control socket makes others wait. They count requests in a turn, and
/// measure no times.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "control/control_connection.hpp"
#include "control/control_server_fixture.hpp"
#include "endpoint/connection_harness.hpp"

namespace lightq::broker {
namespace {

using lightq::test::command;
using lightq::test::FakeOwner;
using lightq::test::frame;
using lightq::test::opening;
using lightq::test::Wire;

/// Answers each request with its own body.
class Echo final : public ControlConnection::Requests {
 public:
  explicit Echo(EventLoop& loop) : loop_(loop) {}
  void requested(const ControlConnection::Envelope& from,
                 const ControlConnection::Message& message) override {
    ++taken;
    ++taken_in_turn[loop_.turn()];
    connection->answer(from, message.body);
  }
  void limit_reached(Limit) override {}
  ControlConnection* connection = nullptr;
  std::size_t taken = 0;
  std::map<std::uint64_t, std::size_t> taken_in_turn;

 private:
  EventLoop& loop_;
};

class ControlTurnsTest : public testing::Test {
 protected:
  ControlTurnsTest() {
    int pair[2] = {-1, -1};  // a socket that keeps each send separate
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    wire_.peer = UniqueFd(pair[1]);
    connection_ = std::make_unique<ControlConnection>(wire_.loop, UniqueFd(pair[0]), owner_, wire_.scratch, 1,
                                                      requests_);
    requests_.connection = connection_.get();
    EXPECT_TRUE(connection_->start());
    wire_.send(opening("DEALER"));
    std::string greeting;
    EXPECT_TRUE(wire_.run_until([&] {
      greeting += wire_.received();
      return owner_.opened && greeting.find("ROUTER") != std::string::npos;
    }));
  }
  Wire wire_;
  FakeOwner owner_;
  Echo requests_{wire_.loop};
  std::unique_ptr<ControlConnection> connection_;
};

TEST_F(ControlTurnsTest, SmallRequestsOfOneInputAreTakenInSharesAndAnsweredTogether) {
  constexpr std::size_t requests = 3000;
  constexpr std::size_t share = TurnShare::call_work_max / TurnWork::control_request + 1;
  std::string all;
  std::string answers;
  for (std::size_t i = 0; i < requests; ++i) all += frame("number " + std::to_string(i));
  wire_.send(all);
  std::size_t sends = 0;
  ASSERT_TRUE(wire_.run_until([&] {
    for (std::string piece = wire_.received(); !piece.empty(); piece = wire_.received(), ++sends)
      answers += piece;
    return answers.size() >= all.size();
  }));
  EXPECT_EQ(answers, all);
  EXPECT_GE(requests_.taken_in_turn.size(), requests / (2 * share));
  for (const auto& [turn, taken] : requests_.taken_in_turn) EXPECT_LE(taken, 2 * share) << "in turn " << turn;
  EXPECT_LE(sends, 2 * requests_.taken_in_turn.size()) << "one for all answers of a share";
}

TEST_F(ControlTurnsTest, RequestsBeforeMalformedDataAreAnswered) {
  wire_.send(frame("first") + frame("second") + "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
  ASSERT_TRUE(wire_.run_until([&] { return owner_.closed; }));
  EXPECT_EQ(wire_.received(), frame("first") + frame("second"));
}

TEST_F(ControlTurnsTest, RequestsBeforeAMalformedCommandAreAnswered) {
  wire_.send(frame("first") + command("PING", ""));
  ASSERT_TRUE(wire_.run_until([&] { return owner_.closed; }));
  EXPECT_EQ(wire_.received(), frame("first"));
}

TEST(ControlServerTurns, WritesOnlyAFewOfAClientsLongRepliesInATurn) {
  constexpr int requests = 20;
  constexpr std::size_t answer_bytes = TurnShare::call_work_max / TurnWork::answer_byte_written;
  EventLoop loop;
  test::RecordingSink sink;
  std::map<std::uint64_t, int> made_in_turn;
  const auto handle = [&](const protocol::Request&, const ControlServer::Answer& answer) {
    ++made_in_turn[loop.turn()];
    answer(protocol::OkReply{"ping", std::string(answer_bytes, 'x'), {}});
  };
  const auto server = ControlServer::open(loop, sink, "tcp://127.0.0.1:0", handle).value_or_throw();
  server->accept().value_or_throw();
  {
    const std::jthread thread([&](const std::stop_token& stop) { loop.run(stop); });
    struct {
      std::string bound;
      [[nodiscard]] const std::string& uri() const { return bound; }
    } const at{server->bound_uri()};
    test::Client client(at, zmq::socket_type::dealer);
    for (int i = 0; i < requests; ++i) client.send({test::ping});
    for (int i = 0; i < requests; ++i) ASSERT_EQ(client.receive().size(), 1U);
  }
  for (const auto& [turn, made] : made_in_turn) EXPECT_LE(made, 2) << "in turn " << turn;
}

}  // namespace
}  // namespace lightq::broker
