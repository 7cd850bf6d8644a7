/// Tests of choosing the transport with which a session joins.
#include <lightq/detail/transport_choice.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "support/temp_dir.hpp"

namespace lightq {
namespace {

using protocol::Transport;
using namespace std::chrono_literals;

constexpr SessionTime start{1h};

TEST(TransportChoice, IsAUnixSocketOnTheSameMachine) {
  TransportChoice here({}, true);
  EXPECT_EQ(Transport::ipc, here.next(start));
  TransportChoice elsewhere({}, false);
  EXPECT_EQ(Transport::tcp, elsewhere.next(start));
}

TEST(TransportChoice, IsTcpIfTheUnixSocketCouldNotConnect) {
  TransportChoice choice({}, true);
  EXPECT_EQ(Transport::ipc, choice.next(start));
  static_cast<void>(choice.answered());
  EXPECT_EQ(Transport::tcp, choice.next(start + 1s));
  EXPECT_EQ(Transport::tcp, choice.next(start + 10s));
  EXPECT_EQ(Transport::ipc, choice.next(start + 11s)) << "the broker may be another one by now";
  static_cast<void>(choice.answered());
  EXPECT_EQ(Transport::tcp, choice.next(start + 12s));
}

TEST(TransportChoice, StaysAUnixSocketThatConnected) {
  TransportChoice choice({}, true);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Transport::ipc, choice.next(start + i * 1s));
    const auto opened = choice.answered();
    *opened = true;
  }
}

TEST(TransportChoice, KeepsAUnixSocketThatDoesNotAnswer) {
  TransportChoice choice({}, true);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Transport::ipc, choice.next(start + i * 1s));
}

TEST(TransportChoice, IsFixedIfATransportWasRequested) {
  TransportChoice tcp(Transport::tcp, true);
  TransportChoice ipc(Transport::ipc, false);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Transport::tcp, tcp.next(start));
    EXPECT_EQ(Transport::ipc, ipc.next(start));
  }
  EXPECT_FALSE(ipc.goes_on_with_tcp("ipc:///nobody/is/here"));
  EXPECT_FALSE(ipc.goes_on_with_tcp(Error{ErrorCode::invalid_argument, "the path is too long"}));
}

TEST(TransportChoice, FallsBackToTcpWithoutAUsableSocket) {
  const test::TempDir directory;
  const TransportChoice choice({}, true);
  EXPECT_TRUE(choice.goes_on_with_tcp("ipc://" + (directory / "missing")));
  ::close(::open((directory / "there").c_str(), O_CREAT | O_CLOEXEC, 0600));
  EXPECT_FALSE(choice.goes_on_with_tcp("ipc://" + (directory / "there")));
  EXPECT_FALSE(choice.goes_on_with_tcp("tcp://127.0.0.1:1"));
}

TEST(TransportChoice, FallsBackToTcpOnlyForErrorsOfTheAddress) {
  const TransportChoice choice({}, true);
  EXPECT_TRUE(choice.goes_on_with_tcp(Error{ErrorCode::invalid_argument, "the path is too long"}));
  EXPECT_TRUE(choice.goes_on_with_tcp(Error{ErrorCode::io_error, "no such directory"}));
  EXPECT_FALSE(choice.goes_on_with_tcp(Error{ErrorCode::topic_not_found, "no such topic"}));
  EXPECT_FALSE(choice.goes_on_with_tcp(Error{ErrorCode::unauthorized_access, "who are you"}));
}

}  // namespace
}  // namespace lightq
