/// Tests of choosing the ports of endpoints.
#include "topic/port_book.hpp"

#include <unistd.h>

#include <vector>

#include <gtest/gtest.h>

namespace lightq::broker {
namespace {

using namespace std::chrono_literals;

TEST(ListenTcp, AcceptsOnlyAddressesSoThatNoNameServerDelaysIt) {
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

/// Returns consecutive free ports. None of them is in the system's range for automatic ports.
PortBook::Range free_ports(std::uint16_t count) {
  static int first = 10'000 + getpid() % 300 * 64;
  for (;; first += count) {
    bool free = true;
    for (int port = first; free && port < first + count; ++port)
      free = listen_tcp("127.0.0.1", static_cast<std::uint16_t>(port)).ok();
    if (!free) continue;
    const PortBook::Range range{static_cast<std::uint16_t>(first),
                                static_cast<std::uint16_t>(first + count - 1)};
    first += count;
    return range;
  }
}

/// Returns a range of one free port.
PortBook::Range free_port() {
  return free_ports(1);
}

constexpr PortUse open_pull{.topic = TopicId{1}, .role = EndpointRole::pull};
constexpr PortUse pull{.topic = TopicId{2}, .role = EndpointRole::pull, .guarded = true};
constexpr PortUse sub{.topic = TopicId{2}, .role = EndpointRole::sub, .guarded = true};
constexpr PortUse produce{.topic = TopicId{2}, .role = EndpointRole::produce, .guarded = true};
constexpr PortUse other_produce{.topic = TopicId{3}, .role = EndpointRole::produce, .guarded = true};
constexpr bool unused = true;
constexpr bool used = false;

/// Returns the port, or 0 if none is available.
std::uint16_t port_for(PortBook& ports, const PortUse& use) {
  const auto socket = ports.listen(use);
  if (socket) return socket->port;
  EXPECT_EQ(socket.error().code, ErrorCode::limit_reached) << socket.error().text();
  return 0;
}

TEST(PortBook, WithoutTicketsAReleasedPortIsQuarantinedBeforeAnotherGetsIt) {
  const auto range = free_port();
  LimitCounts counts;
  PortBook ports("127.0.0.1", range, 1h);
  ports.count_in(&counts);
  EXPECT_EQ(port_for(ports, open_pull), range.first);
  for (const bool was : {unused, used}) {
    ports.release(range.first, pull, was);
    const auto second = ports.listen(open_pull);
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code, ErrorCode::limit_reached);
    EXPECT_NE(second.error().message.find("1 are quarantined"), std::string::npos) << second.error().message;
  }
  EXPECT_EQ(counts.of(Limit::ports), 2U);
}

TEST(PortBook, WithTicketsAQuarantinedPortIsTakenWhenThereIsNoOther) {
  const auto range = free_port();
  PortBook ports("127.0.0.1", range, 1h);
  ports.release(range.first, open_pull, used);
  EXPECT_EQ(port_for(ports, pull), range.first);
  ports.rest_until(range.first, PortBook::Clock::now() + 1h);
  EXPECT_EQ(port_for(ports, {.guarded = true}), range.first);
}

TEST(PortBook, TheSameTopicGetsItsPortBack) {
  const auto range = free_port();
  PortBook ports("127.0.0.1", range, 1h);
  ports.release(range.first, open_pull, used);
  auto asked = open_pull;
  asked.connection_type = protocol::ConnectionType::socket;
  EXPECT_EQ(port_for(ports, asked), 0U);
  asked = open_pull;
  asked.topic = TopicId{7};
  EXPECT_EQ(port_for(ports, asked), 0U);
  EXPECT_EQ(port_for(ports, open_pull), range.first);
}

TEST(PortBook, OfATopicsPortsThoseOfTheSameRoleAreTakenFirst) {
  const auto range = free_ports(3);
  PortBook ports("127.0.0.1", range, 1h);
  const auto at = [&](int i) { return static_cast<std::uint16_t>(range.first + i); };
  auto open_sub = open_pull;
  open_sub.role = EndpointRole::sub;
  ports.release(at(0), open_pull, used);
  ports.release(at(1), open_sub, used);
  ports.release(at(2), open_pull, used);
  const auto first = ports.listen(open_sub);
  EXPECT_EQ(first->port, at(1));
  const auto second = ports.listen(open_sub);
  EXPECT_EQ(second->port, at(0)) << "the longest rested of the topic";
}

TEST(PortBook, ProducersGetTheirTopicsPortBackThoughOthersAreFree) {
  const auto range = free_ports(8);
  PortBook ports("127.0.0.1", range, 1h);
  const auto had = static_cast<std::uint16_t>(range.first + 5);
  ports.release(had, produce, used);
  EXPECT_EQ(port_for(ports, other_produce), range.first);
  EXPECT_EQ(port_for(ports, produce), had);
}

TEST(PortBook, NoQuarantinedPortIsTakenWhileHalfOfThePortsAreFree) {
  const auto range = free_ports(8);
  PortBook ports("127.0.0.1", range, 1h);
  for (std::uint16_t i = 0; i < 4; ++i)
    ports.release(static_cast<std::uint16_t>(range.first + i), pull, unused);
  EXPECT_GE(port_for(ports, pull), range.first + 4);
  EXPECT_EQ(port_for(ports, pull), range.first);
}

TEST(PortBook, UnusedQuarantinedPortsAreTakenFirstThenOnesOwnThenTheOldest) {
  const auto range = free_ports(8);
  PortBook ports("127.0.0.1", range, 1h);
  const auto at = [&](int i) { return static_cast<std::uint16_t>(range.first + i); };
  for (int i = 0; i < 2; ++i) ports.release(at(i), pull, used);
  for (int i = 2; i < 4; ++i) ports.release(at(i), sub, used);
  for (int i = 4; i < 6; ++i) ports.release(at(i), produce, unused);
  ports.release(at(6), open_pull, used);
  std::vector<ListeningSocket> kept;
  std::vector<std::uint16_t> got;
  const auto take = [&](const PortUse& use) {
    auto socket = ports.listen(use);
    got.push_back(socket ? socket->port : std::uint16_t{0});
    if (socket) kept.push_back(std::move(*socket));
  };
  take(sub);
  take(sub);
  take(sub);
  take(open_pull);
  take(open_pull);  // a port that was never used is left
  take(sub);
  take(sub);
  take(sub);
  take(sub);
  EXPECT_EQ(got, (std::vector<std::uint16_t>{at(4), at(5), at(2), at(6), at(7), at(3), at(0), at(1), 0}));
}

TEST(PortBook, AUserThatTakesAndLeavesPortsRepeatedlyLeavesThemToOthers) {
  const auto range = free_ports(32);
  LimitCounts counts;
  PortBook ports("127.0.0.1", range, 1h);
  ports.count_in(&counts);
  for (const auto& use : {pull, sub, open_pull}) {
    for (int i = 0; i < 500; ++i) {
      const auto port = port_for(ports, use);
      ASSERT_NE(port, 0);
      ports.release(port, use, i % 2 == 0);
      ASSERT_NE(port_for(ports, other_produce), 0);
    }
  }
  EXPECT_EQ(counts.of(Limit::ports), 0U);
}

TEST(PortBook, APortOfAnotherProgramIsSkipped) {
  const auto range = free_ports(4);
  PortBook ports("127.0.0.1", range, 1h);
  for (std::uint16_t i = 0; i < 4; ++i)
    ports.release(static_cast<std::uint16_t>(range.first + i), pull, used);
  const auto taken = listen_tcp("127.0.0.1", range.first);
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(port_for(ports, pull), range.first + 1);
}

TEST(PortBook, APortMayBeUsedAgainAfterItsQuarantine) {
  const auto range = free_port();
  PortBook ports("127.0.0.1", range, 0ms);
  ports.release(range.first, pull, used);
  EXPECT_EQ(port_for(ports, open_pull), range.first);
}

TEST(PortBook, AnEndpointGetsItsQuarantinedPortBack) {
  const auto range = free_port();
  PortBook ports("127.0.0.1", range, 1h);
  ports.release(range.first, pull, used);
  EXPECT_TRUE(ports.listen_again(range.first).ok());
}

TEST(PortBook, APortThatIsAboutToBeUsedAgainIsNotGivenToAnother) {
  const auto range = free_port();
  PortBook ports("127.0.0.1", range, 1h);
  ports.reserve(range.first);
  EXPECT_EQ(port_for(ports, pull), 0U);
  EXPECT_TRUE(ports.listen_again(range.first).ok());
  EXPECT_NE(port_for(ports, pull), 0U) << "once it was opened and closed again it is a port like any other";
}

TEST(PortBook, APortInUseIsReportedSeparately) {
  const auto taken = listen_tcp("127.0.0.1", 0);
  ASSERT_TRUE(taken.ok());
  PortBook ports("127.0.0.1", std::nullopt, 1h);
  const auto again = ports.listen_again(taken->port);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, ErrorCode::address_in_use);
}

TEST(PortBook, AQuarantinedPortIsNotTakenFromTheSystemsOffers) {
  PortBook ports("127.0.0.1", std::nullopt, 1h);
  const auto first = port_for(ports, pull);
  ports.release(first, pull, used);
  for (int i = 0; i < 200; ++i) ASSERT_NE(port_for(ports, pull), first);
}

TEST(PortBook, WithSystemPortsQuarantinedOnesAreTakenWhenTheyAreMoreThanHalf) {
  PortBook ports("127.0.0.1", std::nullopt, 1h);
  const std::size_t all = PortBook::count_of(std::nullopt);
  ASSERT_GE(all, 64U);
  const auto first = port_for(ports, sub);
  for (std::size_t i = 0; i <= all / 2; ++i) ports.release(static_cast<std::uint16_t>(1'024 + i), pull, used);
  ports.release(first, sub, used);
  EXPECT_EQ(port_for(ports, sub), first);
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

}  // namespace
}  // namespace lightq::broker
