/// Tests of which ports endpoints get.
#include "broker/endpoint/port_book.hpp"

#include <gtest/gtest.h>

namespace lightq::broker {
namespace {

using namespace std::chrono_literals;

/// A range of one port that is free now.
PortBook::Range free_port() {
  const auto socket = listen_tcp("127.0.0.1", 0);
  return {socket->port, socket->port};
}

TEST(ListenTcp, TakesAddressesOnlySoThatNoNameServerIsWaitedFor) {
  EXPECT_TRUE(listen_tcp("127.0.0.1", 0).ok());
  const auto named = listen_tcp("localhost", 0);
  ASSERT_FALSE(named.ok());
  EXPECT_EQ(named.error().code, ErrorCode::invalid_argument);
}

TEST(ResolveHost, AnswersAnAddressToListenOn) {
  EXPECT_EQ(resolve_host("127.0.0.1").value_or_throw(), "127.0.0.1");
  EXPECT_EQ(resolve_host("::1").value_or_throw(), "::1");
  EXPECT_TRUE(listen_tcp(resolve_host("localhost").value_or_throw(), 0).ok());
  const auto unknown = resolve_host("no host of this name");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::invalid_argument);
}

TEST(PortBook, AReleasedPortRestsBeforeSomebodyElseGetsIt) {
  const auto range = free_port();
  PortBook ports("127.0.0.1", range, 1h);
  {
    const auto first = ports.listen();
    ASSERT_TRUE(first.ok()) << first.error().text();
    EXPECT_EQ(first->port, range.first);
  }
  ports.release(range.first);
  const auto second = ports.listen();
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::limit_reached);
  EXPECT_NE(second.error().message.find("1 rest"), std::string::npos) << second.error().message;
}

TEST(PortBook, APortMayBeTakenAgainAfterItsRest) {
  const auto range = free_port();
  PortBook ports("127.0.0.1", range, 0ms);
  ports.release(range.first);
  EXPECT_TRUE(ports.listen().ok());
}

TEST(PortBook, AnEndpointGetsItsOwnPortBackWhileItRests) {
  const auto range = free_port();
  PortBook ports("127.0.0.1", range, 1h);
  ports.release(range.first);
  EXPECT_TRUE(ports.listen_again(range.first).ok());
}

TEST(PortBook, APortThatIsAboutToBeUsedAgainIsGivenToNobodyElse) {
  const auto range = free_port();
  PortBook ports("127.0.0.1", range, 1h);
  ports.reserve(range.first);
  EXPECT_FALSE(ports.listen().ok());
  EXPECT_TRUE(ports.listen_again(range.first).ok());
  EXPECT_TRUE(ports.listen().ok()) << "once it was opened and closed again it is a port like any other";
}

TEST(PortBook, ATakenPortIsToldApart) {
  const auto taken = listen_tcp("127.0.0.1", 0);
  ASSERT_TRUE(taken.ok());
  PortBook ports("127.0.0.1", std::nullopt, 1h);
  const auto again = ports.listen_again(taken->port);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, ErrorCode::address_in_use);
}

TEST(PortBook, APortThatRestsIsNotTakenFromTheSystemsOffersEither) {
  PortBook ports("127.0.0.1", std::nullopt, 1h);
  std::uint16_t first = 0;
  {
    const auto socket = ports.listen();
    ASSERT_TRUE(socket.ok());
    first = socket->port;
  }
  ports.release(first);
  for (int i = 0; i < 200; ++i) {
    const auto socket = ports.listen();
    ASSERT_TRUE(socket.ok());
    ASSERT_NE(socket->port, first);
  }
}

TEST(ListenUnix, APathTooLongForTheSystemIsRefusedByName) {
  const auto socket = listen_unix("/tmp/" + std::string(120, 'x'));
  ASSERT_FALSE(socket.ok());
  EXPECT_EQ(socket.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(socket.error().message.find("125 bytes, at most 107"), std::string::npos)
      << socket.error().message;
}

TEST(ListenTcp, AnUnknownHostIsRefusedByName) {
  const auto socket = listen_tcp("no such host", 0);
  ASSERT_FALSE(socket.ok());
  EXPECT_NE(socket.error().message.find("no such host"), std::string::npos);
}

TEST(PortBook, CountsWhoFindsNoPort) {
  const auto range = free_port();
  LimitCounts counts;
  PortBook book("127.0.0.1", range, 1h, &counts);
  {
    const auto first = book.listen();
    ASSERT_TRUE(first.ok()) << first.error().text();
    EXPECT_EQ(counts.of(Limit::ports), 0U);
    EXPECT_EQ(book.listen().error().code, ErrorCode::limit_reached);
    EXPECT_EQ(counts.of(Limit::ports), 1U);
  }
  book.release(range.first);
  EXPECT_EQ(book.listen().error().code, ErrorCode::limit_reached) << "it rests";
  EXPECT_EQ(counts.of(Limit::ports), 2U);
  EXPECT_EQ(counts.of(Limit::descriptors_reserved), 0U);
}

}  // namespace
}  // namespace lightq::broker
