/// Tests of unauthenticated connections: which of them are evicted for others.
#include "net/handshake_queue.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "endpoint/endpoint_set_harness.hpp"
#include "endpoint/unauthenticated_peer.hpp"

namespace lightq::broker {
namespace {

using namespace std::chrono_literals;
using protocol::JoinType;
using test::EndpointSetTest;
using test::UnauthenticatedPeer;

class FewUnauthenticatedPeersTest : public EndpointSetTest {
 protected:
  explicit FewUnauthenticatedPeersTest(std::size_t most = 3) : EndpointSetTest(false, with(most)) {}

 private:
  static EndpointSettings with(std::size_t most) {
    EndpointSettings settings;
    settings.unauthenticated.handshakes_max = most;
    return settings;
  }
};

class SixteenUnauthenticatedPeersTest : public FewUnauthenticatedPeersTest {
 protected:
  SixteenUnauthenticatedPeersTest() : FewUnauthenticatedPeersTest(16) {}
};

TEST_F(FewUnauthenticatedPeersTest, BeyondTheLimitTheOldestUnauthenticatedPeerIsEvictedAndAClientGetsIn) {
  settings_.idle_time_max = 1h;
  const auto uri = join(JoinType::push);
  std::vector<UnauthenticatedPeer> peers;
  for (std::size_t i = 0; i < settings_.unauthenticated.handshakes_max; ++i) peers.emplace_back(uri);
  ASSERT_TRUE(run_until(
      [&] { return std::all_of(peers.begin(), peers.end(), [](auto& peer) { return peer.greeted(); }); }));
  UnauthenticatedPeer one_more(uri);
  ASSERT_TRUE(run_until([&] { return one_more.greeted(); }));
  EXPECT_TRUE(peers[0].closed());
  EXPECT_FALSE(peers[1].closed() || peers[2].closed() || one_more.closed());
  EXPECT_EQ(context_.handshakes.evicted(), 1U);
  // Peers that fill the queue do not keep a client out either.
  auto producer = connect(zmq::socket_type::push, uri);
  EXPECT_TRUE(run_until([&] { return stats().publishers_count == 1; }));
  EXPECT_EQ(context_.handshakes.evicted(), 2U);
  EXPECT_EQ(context_.handshakes.size(), 2U) << "who is in waits no longer";
}

TEST_F(FewUnauthenticatedPeersTest, ASourceThatFillsTheQueueEvictsItsOwnConnections) {
  const auto uri = join(JoinType::push);
  UnauthenticatedPeer slow(uri, INADDR_LOOPBACK + 1);
  ASSERT_TRUE(run_until([&] { return slow.greeted(); }));
  std::vector<UnauthenticatedPeer> many;
  for (int i = 0; i < 6; ++i) {
    UnauthenticatedPeer& one = many.emplace_back(uri);
    ASSERT_TRUE(run_until([&] { return one.greeted(); }));
  }
  EXPECT_FALSE(slow.closed()) << "though it came first";
  EXPECT_EQ(context_.handshakes.evicted(), 4U);
  UnauthenticatedPeer other(uri, INADDR_LOOPBACK + 2);
  ASSERT_TRUE(run_until([&] { return other.greeted(); }));
  UnauthenticatedPeer another(uri, INADDR_LOOPBACK + 3);
  ASSERT_TRUE(run_until([&] { return another.greeted(); }));
  EXPECT_TRUE(slow.closed()) << "where each address has one the oldest goes";
  EXPECT_FALSE(many.back().closed());
  EXPECT_EQ(context_.handshakes.evicted(), 6U);
  EXPECT_EQ(context_.handshakes.size(), 3U);
}

TEST_F(SixteenUnauthenticatedPeersTest, WithoutAFreeDescriptorAnEighthIsEvicted) {
  const auto uri = join(JoinType::push);
  std::vector<UnauthenticatedPeer> waiting;
  for (in_addr_t i = 0; i < 9; ++i) {
    UnauthenticatedPeer& one = waiting.emplace_back(uri, INADDR_LOOPBACK + 1 + i);
    ASSERT_TRUE(run_until([&] { return one.greeted(); }));
  }
  context_.handshakes.make_room();
  EXPECT_EQ(context_.handshakes.size(), 7U);
  EXPECT_EQ(context_.handshakes.evicted(), 2U);
  ASSERT_TRUE(run_until([&] { return waiting[0].closed() && waiting[1].closed(); }));
  EXPECT_FALSE(waiting[2].closed());
  for (std::size_t left = 6;; --left) {
    context_.handshakes.make_room();
    EXPECT_EQ(context_.handshakes.size(), left);
    if (left == 0) break;
  }
  context_.handshakes.make_room();
  EXPECT_EQ(context_.handshakes.evicted(), 9U);
}

TEST_F(SixteenUnauthenticatedPeersTest, ManySourcesEvictNoConnectionOfASourceWithFew) {
  const auto uri = join(JoinType::push);
  std::vector<UnauthenticatedPeer> each_from_elsewhere;
  for (in_addr_t i = 0; i < 16; ++i) {
    UnauthenticatedPeer& one = each_from_elsewhere.emplace_back(uri, INADDR_LOOPBACK + 1 + i);
    ASSERT_TRUE(run_until([&] { return one.greeted(); }));
  }
  UnauthenticatedPeer first(uri, INADDR_LOOPBACK + 100);
  ASSERT_TRUE(run_until([&] { return first.greeted(); }));
  UnauthenticatedPeer second(uri, INADDR_LOOPBACK + 100);
  ASSERT_TRUE(run_until([&] { return second.greeted(); }));
  UnauthenticatedPeer other(uri, INADDR_LOOPBACK + 101);
  ASSERT_TRUE(run_until([&] { return other.greeted(); }));
  EXPECT_FALSE(first.closed()) << "an eighth is two";
  UnauthenticatedPeer third(uri, INADDR_LOOPBACK + 100);
  ASSERT_TRUE(run_until([&] { return third.greeted(); }));
  EXPECT_TRUE(first.closed());
  EXPECT_FALSE(second.closed());
  EXPECT_TRUE(each_from_elsewhere[2].closed());
  EXPECT_FALSE(each_from_elsewhere[3].closed());
}

}  // namespace
}  // namespace lightq::broker
