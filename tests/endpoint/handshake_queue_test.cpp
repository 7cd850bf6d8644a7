/// Tests of unauthenticated connections: which of them are evicted for others.
#include "net/handshake_queue.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "endpoint/endpoint_set_harness.hpp"
#include "endpoint/stranger.hpp"

namespace lightq::broker {
namespace {

using namespace std::chrono_literals;
using protocol::JoinType;
using test::EndpointSetTest;
using test::Stranger;

class FewStrangersTest : public EndpointSetTest {
 protected:
  explicit FewStrangersTest(std::size_t most = 3) : EndpointSetTest(false, with(most)) {}

 private:
  static EndpointSettings with(std::size_t most) {
    EndpointSettings settings;
    settings.unauthenticated.handshakes_max = most;
    return settings;
  }
};

class SixteenStrangersTest : public FewStrangersTest {
 protected:
  SixteenStrangersTest() : FewStrangersTest(16) {}
};

TEST_F(FewStrangersTest, BeyondTheLimitTheOldestUnauthenticatedPeerIsEvictedAndAClientGetsIn) {
  settings_.idle_time_max = 1h;
  const auto uri = join(JoinType::push);
  std::vector<Stranger> strangers;
  for (std::size_t i = 0; i < settings_.unauthenticated.handshakes_max; ++i) strangers.emplace_back(uri);
  ASSERT_TRUE(run_until([&] {
    return std::all_of(strangers.begin(), strangers.end(), [](auto& stranger) { return stranger.greeted(); });
  }));
  Stranger one_more(uri);
  ASSERT_TRUE(run_until([&] { return one_more.greeted(); }));
  EXPECT_TRUE(strangers[0].closed());
  EXPECT_FALSE(strangers[1].closed() || strangers[2].closed() || one_more.closed());
  EXPECT_EQ(context_.handshakes.evicted(), 1U);
  // Peers that fill the queue do not keep a client out either.
  auto producer = connect(zmq::socket_type::push, uri);
  EXPECT_TRUE(run_until([&] { return stats().publishers_count == 1; }));
  EXPECT_EQ(context_.handshakes.evicted(), 2U);
  EXPECT_EQ(context_.handshakes.size(), 2U) << "who is in waits no longer";
}

TEST_F(FewStrangersTest, ASourceThatFillsTheQueueEvictsItsOwnConnections) {
  const auto uri = join(JoinType::push);
  Stranger slow(uri, INADDR_LOOPBACK + 1);
  ASSERT_TRUE(run_until([&] { return slow.greeted(); }));
  std::vector<Stranger> many;
  for (int i = 0; i < 6; ++i) {
    Stranger& one = many.emplace_back(uri);
    ASSERT_TRUE(run_until([&] { return one.greeted(); }));
  }
  EXPECT_FALSE(slow.closed()) << "though it came first";
  EXPECT_EQ(context_.handshakes.evicted(), 4U);
  Stranger other(uri, INADDR_LOOPBACK + 2);
  ASSERT_TRUE(run_until([&] { return other.greeted(); }));
  Stranger another(uri, INADDR_LOOPBACK + 3);
  ASSERT_TRUE(run_until([&] { return another.greeted(); }));
  EXPECT_TRUE(slow.closed()) << "where each address has one the oldest goes";
  EXPECT_FALSE(many.back().closed());
  EXPECT_EQ(context_.handshakes.evicted(), 6U);
  EXPECT_EQ(context_.handshakes.size(), 3U);
}

TEST_F(SixteenStrangersTest, WithoutAFreeDescriptorAnEighthIsEvicted) {
  const auto uri = join(JoinType::push);
  std::vector<Stranger> waiting;
  for (in_addr_t i = 0; i < 9; ++i) {
    Stranger& one = waiting.emplace_back(uri, INADDR_LOOPBACK + 1 + i);
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

TEST_F(SixteenStrangersTest, ManySourcesEvictNoConnectionOfASourceWithFew) {
  const auto uri = join(JoinType::push);
  std::vector<Stranger> each_from_elsewhere;
  for (in_addr_t i = 0; i < 16; ++i) {
    Stranger& one = each_from_elsewhere.emplace_back(uri, INADDR_LOOPBACK + 1 + i);
    ASSERT_TRUE(run_until([&] { return one.greeted(); }));
  }
  Stranger first(uri, INADDR_LOOPBACK + 100);
  ASSERT_TRUE(run_until([&] { return first.greeted(); }));
  Stranger second(uri, INADDR_LOOPBACK + 100);
  ASSERT_TRUE(run_until([&] { return second.greeted(); }));
  Stranger other(uri, INADDR_LOOPBACK + 101);
  ASSERT_TRUE(run_until([&] { return other.greeted(); }));
  EXPECT_FALSE(first.closed()) << "an eighth is two";
  Stranger third(uri, INADDR_LOOPBACK + 100);
  ASSERT_TRUE(run_until([&] { return third.greeted(); }));
  EXPECT_TRUE(first.closed());
  EXPECT_FALSE(second.closed());
  EXPECT_TRUE(each_from_elsewhere[2].closed());
  EXPECT_FALSE(each_from_elsewhere[3].closed());
}

}  // namespace
}  // namespace lightq::broker
