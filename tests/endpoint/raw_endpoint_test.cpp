/// Tests of a topic's endpoints with raw consumers as clients.
#include <algorithm>

#include <gmock/gmock.h>

#include "endpoint/endpoint_set_harness.hpp"
#include "endpoint/raw_consumer.hpp"

namespace lightq::broker {
namespace {

using namespace std::chrono_literals;
using lightq::test::RawConsumer;
using protocol::ConnectionType;
using protocol::JoinType;
using protocol::Transport;
using test::manager;
using testing::ElementsAre;

/// Consumers that must become full quickly connect through a Unix socket. The system buffers about 200 KiB of
/// it, but up to several MiB of a TCP connection.
class RawEndpointTest : public test::EndpointSetTest {
 protected:
  RawEndpointTest() : EndpointSetTest(true) { settings_.idle_time_max = 10s; }

  std::string join_raw(Transport transport = Transport::tcp) {
    return join(JoinType::pull, transport, ConnectionType::socket);
  }
  bool connected(std::size_t pullers) {
    return run_until([&] { return topic_.groups().pullers() == pullers; });
  }
  std::vector<std::string> receive(RawConsumer& consumer, std::size_t count) {
    std::vector<std::string> payloads;
    EXPECT_TRUE(run_until([&] {
      for (auto& payload : consumer.receive()) payloads.push_back(std::move(payload));
      return payloads.size() >= count;
    }));
    return payloads;
  }
};

TEST_F(RawEndpointTest, RawConsumersReceiveAllMessagesOverTcpAndUnixSockets) {
  for (const Transport transport : {Transport::tcp, Transport::ipc}) {
    RawConsumer consumer(join_raw(transport));
    ASSERT_TRUE(connected(1));
    EXPECT_EQ(stats().subscribers_count, 1U);
    put("a");
    put("");
    put(std::string(300'000, 'x'));
    EXPECT_THAT(receive(consumer, 3), ElementsAre("a", "", std::string(300'000, 'x')));
    consumer.close();
    ASSERT_TRUE(connected(0));
  }
}

TEST_F(RawEndpointTest, ConnectionsEndpointsAndZeroMqPullersShareWholeMessages) {
  const std::string shared = join_raw();
  RawConsumer first(shared);
  RawConsumer second(shared);
  RawConsumer third(join_raw(Transport::ipc));
  auto puller = connect(zmq::socket_type::pull, join(JoinType::pull));
  ASSERT_TRUE(connected(4));
  std::vector<std::string> sent;
  for (int i = 0; i < 40; ++i) sent.push_back(std::to_string(100 + i) + std::string(1000, 'x'));
  for (const auto& payload : sent) put(payload);
  std::vector<std::string> all;
  for (const auto& part : {receive(first, 10), receive(second, 10), receive(third, 10),
                           test::EndpointSetTest::receive(puller, 10)}) {
    EXPECT_EQ(part.size(), 10U);
    EXPECT_TRUE(std::is_sorted(part.begin(), part.end()));
    all.insert(all.end(), part.begin(), part.end());
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, sent);
}

TEST_F(RawEndpointTest, APartlySentMessageIsRedeliveredWholeToAnother) {
  RawConsumer doomed(join_raw(Transport::ipc));
  ASSERT_TRUE(connected(1));
  const std::string large(800'000, 'x');
  put(large);
  ASSERT_EQ(topic_.groups().plain()->committed(), Offset{0}) << "the system took all of it";
  RawConsumer heir(join_raw());
  ASSERT_TRUE(connected(2));
  doomed.close();
  ASSERT_TRUE(connected(1));
  put("newer");
  EXPECT_THAT(receive(heir, 2), ElementsAre(large, "newer"));
  EXPECT_EQ(topic_.groups().plain()->committed(), Offset{2});
}

TEST_F(RawEndpointTest, ASlowConsumerDelaysNoOther) {
  RawConsumer stalled(join_raw(Transport::ipc));
  RawConsumer reading(join_raw());
  ASSERT_TRUE(connected(2));
  const std::string payload(10'000, 'x');
  // Half of the messages exceed the buffers of the system and the broker for the consumer that does not read.
  std::size_t received = 0;
  constexpr std::size_t count = 80;
  for (std::size_t i = 0; i < count; ++i) {
    put(payload);
    received += reading.receive().size();
  }
  ASSERT_TRUE(run_until([&] {
    received += reading.receive().size();
    return stats().queue_size == 0;
  }));
  EXPECT_GT(received, count / 2);
  EXPECT_EQ(received + receive(stalled, count - received).size(), count);
}

TEST_F(RawEndpointTest, AConsumerThatSendsIsCutAndItsShareGoesToTheOthers) {
  RawConsumer talking(join_raw(Transport::ipc));
  ASSERT_TRUE(connected(1));
  const std::string large(800'000, 'x');
  put(large);
  ASSERT_EQ(topic_.groups().plain()->committed(), Offset{0});
  talking.send("GET / HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(run_until([&] { return talking.closed(); }));
  RawConsumer quiet(join_raw());
  EXPECT_THAT(receive(quiet, 1), ElementsAre(large));
}

TEST_F(RawEndpointTest, ARememberedEndpointIsRawAgainAtItsOldPort) {
  EndpointRecord record{.id = 100, .topic = TopicId{1}, .role = EndpointRole::pull};
  record.connection_type = ConnectionType::socket;
  record.port = listen_tcp("127.0.0.1", 0)->port;
  ASSERT_TRUE(set_->reopen(record, std::nullopt).ok());
  EXPECT_TRUE(changed_.empty());
  put("kept for the first puller");
  RawConsumer consumer("tcp://127.0.0.1:" + std::to_string(record.port));
  EXPECT_THAT(receive(consumer, 1), ElementsAre("kept for the first puller"));
}

TEST_F(RawEndpointTest, AConsumerKeepsItsEndpointOpenUntilItGoes) {
  settings_.idle_time_max = 50ms;
  RawConsumer consumer(join_raw());
  ASSERT_TRUE(connected(1));
  const auto later = EventLoop::Clock::now() + 2 * settings_.idle_time_max;
  ASSERT_TRUE(run_until([&] { return EventLoop::Clock::now() > later; }));
  EXPECT_TRUE(closed_.empty());
  consumer.close();
  EXPECT_TRUE(run_until([&] { return closed_.size() == 1; }));
}

TEST_F(RawEndpointTest, ALeavingConsumerLearnsItsDeliveredCountAndReceivesThemAll) {
  const std::string uri = join_raw();
  RawConsumer consumer(uri);
  ASSERT_TRUE(connected(1));
  for (int i = 0; i < 10; ++i) put(std::to_string(i));
  const auto handed = set_->leave(uri, manager);
  ASSERT_TRUE(handed.ok());
  EXPECT_EQ(*handed, 10U);
  put("too late");
  EXPECT_EQ(receive(consumer, 10).size(), 10U);
  consumer.close();
  ASSERT_TRUE(run_until([&] { return closed_.size() == 1; }));
  RawConsumer next(join_raw());
  EXPECT_THAT(receive(next, 1), ElementsAre("too late"));
}

TEST_F(RawEndpointTest, ConnectionsBeyondTheLimitAreClosedAndGivenNothing) {
  settings_.connections_max = 2;
  const std::string uri = join_raw();
  RawConsumer first(uri);
  RawConsumer second(uri);
  ASSERT_TRUE(connected(2));
  RawConsumer refused(uri);
  ASSERT_TRUE(run_until([&] { return refused.closed(); }));
  EXPECT_EQ(stats().subscribers_count, 2U);
  first.close();
  ASSERT_TRUE(connected(1));
  RawConsumer third(uri);
  EXPECT_TRUE(connected(2));
}

}  // namespace
}  // namespace lightq::broker
