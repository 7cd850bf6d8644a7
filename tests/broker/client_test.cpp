/// Tests of the client library against a broker in this process: options out of range, closed handles, and
/// rejoining a broker that has lost its endpoints.
#include <lightq/client.hpp>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "broker/embedded_broker.hpp"

namespace lightq::testing {
namespace {

using namespace std::chrono_literals;

template <typename Handle>
constexpr bool is_move_only =
    std::is_nothrow_move_constructible_v<Handle> && std::is_nothrow_move_assignable_v<Handle> &&
    !std::is_copy_constructible_v<Handle> && !std::is_copy_assignable_v<Handle>;

static_assert(is_move_only<Client>);
static_assert(is_move_only<PlainProducer>);
static_assert(is_move_only<PlainConsumer>);

TEST(Handles, RefuseAHighWaterMarkOutOfItsRange) {
  const EmbeddedBroker broker;
  auto client = broker.client();
  client.create_topic("orders").value_or_throw();
  for (const int mark : {-1, 0, limits::high_water_messages_max + 1}) {
    for (const Mode mode : {Mode::pull, Mode::sub}) {
      const auto consumer = client.plain_consumer("orders", {.mode = mode, .high_water_messages = mark});
      ASSERT_FALSE(consumer.ok()) << mark;
      EXPECT_EQ(consumer.error().code, ErrorCode::invalid_argument);
      EXPECT_NE(consumer.error().message.find(std::to_string(mark)), std::string::npos);
    }
    const auto producer = client.plain_producer("orders", {.high_water_messages = mark});
    ASSERT_FALSE(producer.ok()) << mark;
    EXPECT_EQ(producer.error().code, ErrorCode::invalid_argument);
  }
  EXPECT_TRUE(client.stats("orders").value_or_throw().groups.empty()) << "a refused consumer joined";
  EXPECT_TRUE(client.plain_consumer("orders", {.high_water_messages = limits::high_water_messages_min}).ok());
  EXPECT_TRUE(client.plain_consumer("orders", {.high_water_messages = limits::high_water_messages_max}).ok());
}

TEST(Handles, AnswerClosedOnceClosedOrMovedFrom) {
  const EmbeddedBroker broker;
  auto client = broker.client();
  client.create_topic("orders").value_or_throw();

  auto consumer = client.plain_consumer("orders").value_or_throw();
  EXPECT_GE(consumer.descriptor(), 0);
  PlainConsumer kept = std::move(consumer);
  EXPECT_EQ(consumer.descriptor(), -1);  // NOLINT(bugprone-use-after-move): a mistake that a user can make
  EXPECT_EQ(consumer.receive(0ms).error().code, ErrorCode::closed);
  EXPECT_EQ(consumer.leave().error().code, ErrorCode::closed);
  EXPECT_EQ(consumer.rejoin().error().code, ErrorCode::closed);
  EXPECT_EQ(consumer.topic(), "");
  EXPECT_GE(kept.descriptor(), 0);
  kept.close();
  EXPECT_EQ(kept.descriptor(), -1);
  EXPECT_EQ(kept.receive(0ms).error().code, ErrorCode::closed);
  EXPECT_EQ(kept.topic(), "orders");

  auto producer = client.plain_producer("orders").value_or_throw();
  const PlainProducer moved = std::move(producer);
  EXPECT_EQ(producer.send("x").error().code, ErrorCode::closed);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(producer.unsent_bytes(), 0U);
  EXPECT_EQ(producer.topic(), "");
  EXPECT_TRUE(producer.close().ok());
}

TEST(Handles, RejoinABrokerThatHasLostTheirEndpoints) {
  auto broker = std::make_unique<EmbeddedBroker>();
  const std::string uri = broker->uri();
  auto client = broker->client();
  client.create_topic("orders").value_or_throw();
  auto producer = client.plain_producer("orders").value_or_throw();
  auto consumer = client.plain_consumer("orders").value_or_throw();
  producer.send("before").value_or_throw();
  ASSERT_EQ(consumer.receive(20s).value_or_throw()->text(), "before");
  const std::string former = consumer.bind_uri();

  broker.reset();
  broker = std::make_unique<EmbeddedBroker>(uri);  // at the same address, without data
  client.create_topic("orders").value_or_throw();
  EXPECT_EQ(consumer.leave().error().code, ErrorCode::endpoint_not_found);
  EXPECT_FALSE(consumer.finished());
  consumer.rejoin().value_or_throw();
  producer.rejoin().value_or_throw();
  EXPECT_NE(consumer.bind_uri(), former);
  ASSERT_TRUE(producer.wait_connected(20s));
  ASSERT_TRUE(consumer.wait_connected(20s));

  producer.send("after").value_or_throw();
  ASSERT_EQ(consumer.receive(20s).value_or_throw()->text(), "after");
  consumer.leave().value_or_throw();
  EXPECT_TRUE(consumer.finished());
}

/// A broker that restarts with another ticket key refuses the earlier tickets.
class Refused : public ::testing::Test {
 protected:
  Refused() { client.create_topic("orders", {.broker_type = BrokerType::file}).value_or_throw(); }
  void restart_with_another_key(const std::function<void()>& meanwhile = {}) {
    broker.stop();
    std::filesystem::remove(broker.data_dir() / "ticket.key");
    if (meanwhile) meanwhile();
    broker.start();
  }
  [[nodiscard]] std::uint64_t refused() {
    return client.stats("orders").value_or_throw().refused_connections;
  }
  /// Polls `condition` until it holds, for at most 20 s.
  template <typename Condition>
  static ::testing::AssertionResult comes(Condition&& condition) {
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return ::testing::AssertionFailure() << "not in time";
      std::this_thread::yield();
    }
    return ::testing::AssertionSuccess();
  }

  EmbeddedBroker broker;
  Client client = broker.client();
};

TEST_F(Refused, AProducerJoinsAgainAndResendsMessagesSentWithoutAConnection) {
  auto producer = client.plain_producer("orders").value_or_throw();
  producer.send("before").value_or_throw();
  ASSERT_TRUE(comes([&] { return client.stats("orders").value_or_throw().messages_received == 1; }));
  const std::string large(10'000, 'x');
  restart_with_another_key([&] {
    ASSERT_TRUE(comes([&] { return !producer.connected(); }));
    for (int i = 0; i < 100; ++i) producer.send("small " + std::to_string(i)).value_or_throw();
    producer.send(large).value_or_throw();
  });
  ASSERT_TRUE(comes([&] { return !producer.connected() && producer.refused(); }));
  producer.send("after").value_or_throw();
  ASSERT_TRUE(producer.wait_connected(20s));
  producer.send("and on").value_or_throw();
  EXPECT_EQ(producer.sent(), 104U);

  auto consumer = client.plain_consumer("orders").value_or_throw();
  const auto next = [&] { return std::string(consumer.receive(20s).value_or_throw()->text()); };
  EXPECT_EQ(next(), "before");
  for (int i = 0; i < 100; ++i) ASSERT_EQ(next(), "small " + std::to_string(i));
  EXPECT_EQ(next(), large);
  EXPECT_EQ(next(), "after");
  EXPECT_EQ(next(), "and on");
  EXPECT_EQ(refused(), 1U);
}

/// The topic and the producer's socket are full when the broker stops. Messages that libzmq had passed to the
/// system are lost with the connection. Messages that libzmq still had arrive, once and in order.
TEST_F(Refused, AProducerResendsMessagesThatWaitedWhenTheConnectionFailed) {
  for (const std::size_t size : {20U, 100U, 2000U}) {
    TopicSettings full{.broker_type = BrokerType::file};
    full.capacity_bytes = limits::segment_bytes_min;
    full.segment_bytes = limits::segment_bytes_min;
    const std::string topic = "full-" + std::to_string(size);
    client.create_topic(topic, full).value_or_throw();
    // Creates the group that keeps all messages.
    client.join(topic, protocol::JoinType::pull).value_or_throw();
    auto producer = client.plain_producer(topic, {.high_water_messages = 1000}).value_or_throw();
    const auto message = [&](std::uint64_t number) {
      const std::string text = std::to_string(number) + " ";
      return text + std::string(size - text.size(), 'x');
    };
    // On a busy machine a call may also time out before the topic and the connection are full.
    for (bool is_full = false; !is_full;) {
      is_full = !client.stats(topic).value_or_throw().blocked_by.empty();
      while (producer.send(message(producer.sent()), 1s)) ASSERT_LT(producer.sent(), 2'000'000U);
    }
    // libzmq reports free space once half of its queue has been sent.
    const std::uint64_t waiting =
        size < limits::counted_message_bytes_min ? 500 : producer.unsent_bytes() / size;
    ASSERT_GT(waiting, 0U);
    restart_with_another_key();

    auto consumer = client.plain_consumer(topic).value_or_throw();
    std::uint64_t expected = 0;
    std::uint64_t lost = 0;
    const std::uint64_t sent = producer.sent();
    std::jthread sending([&] {
      EXPECT_TRUE(producer.send(message(sent), 20s).ok());
      EXPECT_TRUE(producer.close(20s).ok());
    });
    while (expected <= sent) {
      const auto next = consumer.receive(20s).value_or_throw();
      ASSERT_TRUE(next.has_value()) << "after " << expected << " of " << sent;
      const std::uint64_t number = std::stoull(std::string(next->text()));
      ASSERT_GE(number, expected) << "again, or out of order";
      if (number > expected) {
        EXPECT_EQ(lost, 0U) << "lost at two places";
        EXPECT_LE(number, sent - waiting + 1) << "but one whose first bytes had left";
        lost = number - expected;
      }
      expected = number + 1;
    }
    EXPECT_EQ(expected, sent + 1);
  }
}

TEST_F(Refused, AProducerThatOnlyClosesStillSendsThem) {
  auto producer = client.plain_producer("orders").value_or_throw();
  restart_with_another_key([&] {
    ASSERT_TRUE(comes([&] { return !producer.connected(); }));
    for (int i = 0; i < 10; ++i) producer.send(std::to_string(i)).value_or_throw();
  });
  producer.close(20s).value_or_throw();
  EXPECT_TRUE(comes([&] { return client.stats("orders").value_or_throw().messages_received == 10; }));
}

TEST_F(Refused, AConsumerJoinsAgainAndContinuesAtItsCursor) {
  for (const Mode mode : {Mode::pull, Mode::sub}) {
    auto producer = client.plain_producer("orders").value_or_throw();
    auto consumer = client.plain_consumer("orders", {.mode = mode}).value_or_throw();
    const std::string place = consumer.bind_uri();
    ASSERT_TRUE(comes([&] { return client.stats("orders").value_or_throw().subscribers_count == 1; }));
    producer.send("before").value_or_throw();
    ASSERT_EQ(consumer.receive(20s).value_or_throw()->text(), "before");
    restart_with_another_key();
    ASSERT_TRUE(comes([&] { return refused() >= 1; }));
    auto another = client.plain_producer("orders").value_or_throw();
    another.send("meanwhile").value_or_throw();
    ASSERT_EQ(consumer.receive(20s).value_or_throw()->text(), "meanwhile");
    EXPECT_EQ(consumer.bind_uri(), place);
    consumer.leave().value_or_throw();
    consumer.close();
    EXPECT_TRUE(comes([&] { return client.stats("orders").value_or_throw().subscribers.empty(); }))
        << "the endpoint of the second join is left behind";
  }
}

TEST(Tickets, BeingRefusedRightAfterAJoinIsAnErrorOfTheCallAndOfThatCallAlone) {
  // Simulates a defective broker: the endpoint asks for another ticket than the one that the broker gives.
  EmbeddedBroker broker;
  EmbeddedBroker other;
  auto client = broker.client();
  auto other_client = other.client();
  client.create_topic("orders").value_or_throw();
  other_client.create_topic("orders").value_or_throw();
  const auto wrong = other_client.join("orders", protocol::JoinType::push).value_or_throw();
  const auto right = client.join("orders", protocol::JoinType::push).value_or_throw();

  class Misled final : public Membership {
   public:
    explicit Misled(EndpointAddress address) : address_(std::move(address)) {}
    [[nodiscard]] const std::string& topic() const override { return topic_; }
    Result<EndpointAddress> join() override {
      ++joins;
      return address_;
    }
    Result<std::uint64_t> leave(const std::string&) override { return std::uint64_t{0}; }
    int joins = 0;

   private:
    const EndpointAddress address_;
    const std::string topic_ = "orders";
  };
  const EndpointAddress address{right.uri, wrong.ticket};
  auto membership = std::make_unique<Misled>(address);
  const Misled& misled = *membership;
  auto producer =
      PlainProducer::open(std::make_shared<zmq::context_t>(), std::move(membership), address, {.linger = 0ms})
          .value_or_throw();
  for (int round = 1; round <= 3; ++round) {
    EXPECT_FALSE(producer.wait_connected(20s));
    ASSERT_TRUE(producer.refused());
    EXPECT_TRUE(producer.send("joins again").ok());
    EXPECT_EQ(misled.joins, round);
    EXPECT_FALSE(producer.wait_connected(20s));
    ASSERT_TRUE(producer.refused());
    const Result<void> sent = producer.send("x");
    ASSERT_FALSE(sent.ok());
    EXPECT_EQ(sent.error().code, ErrorCode::unauthorized_access);
    EXPECT_EQ(misled.joins, round) << "an error, and no further attempt";
  }
  EXPECT_EQ(client.stats("orders").value_or_throw().messages_received, 0U);

  auto consuming = std::make_unique<Misled>(address);
  const Misled& misled_too = *consuming;
  auto consumer = PlainConsumer::open(std::make_shared<zmq::context_t>(), std::move(consuming), address, {})
                      .value_or_throw();
  const auto got = consumer.receive(20s);
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code, ErrorCode::unauthorized_access);
  EXPECT_EQ(misled_too.joins, 1);
}

TEST(Topics, ArePausedResumedAndPurged) {
  const EmbeddedBroker broker;
  auto client = broker.client();
  client.create_topic("orders").value_or_throw();
  auto producer = client.plain_producer("orders").value_or_throw();
  auto consumer = client.plain_consumer("orders").value_or_throw();
  const auto stored = [&](std::uint64_t messages) {
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (client.stats("orders").value_or_throw().messages_received < messages) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      std::this_thread::yield();
    }
  };
  client.pause("orders", "default").value_or_throw();
  client.pause("orders").value_or_throw();
  producer.send("one").value_or_throw();
  stored(1);
  const auto stats = client.stats("orders").value_or_throw();
  EXPECT_TRUE(stats.paused);
  EXPECT_TRUE(stats.groups.at(0).paused);
  EXPECT_EQ(stats.queue_size, 1U);
  client.resume("orders").value_or_throw();
  client.resume("orders", "default").value_or_throw();
  ASSERT_EQ(consumer.receive(20s).value_or_throw()->text(), "one");
  client.pause("orders").value_or_throw();
  producer.send("two").value_or_throw();
  producer.send("three").value_or_throw();
  stored(3);
  EXPECT_EQ(client.purge("orders", "default").value_or_throw(), 2U);
  client.purge("orders").value_or_throw();
  client.resume("orders").value_or_throw();
  producer.send("four").value_or_throw();
  ASSERT_EQ(consumer.receive(20s).value_or_throw()->text(), "four");
  EXPECT_EQ(client.pause("orders", "absent").error().code, ErrorCode::group_not_found);
  EXPECT_EQ(client.resume("absent").error().code, ErrorCode::topic_not_found);
  EXPECT_EQ(client.purge("no topic's name").error().code, ErrorCode::invalid_argument);
}

/// Uses and deletes a topic repeatedly. Returns the first error.
Result<void> come_and_go(Client client, const std::string& topic) {
  const std::vector<std::string> payloads(500, "x");
  for (int round = 0; round < 100; ++round) {
    client.create_topic(topic).value_or_throw();
    {
      auto consumer = client.plain_consumer(topic).value_or_throw();
      auto producer = client.plain_producer(topic).value_or_throw();
      std::jthread sender([&] {
        for (const auto& payload : payloads) producer.send(payload).value_or_throw();
        producer.close(10s).value_or_throw();
      });
      for (std::size_t i = 0; i < payloads.size(); ++i) {
        if (!consumer.receive(10s).value_or_throw()) return Error{ErrorCode::timeout, "a message is missing"};
      }
      consumer.leave().value_or_throw();
    }
    if (auto deleted = client.delete_topic(topic); !deleted) return deleted;
  }
  return {};
}

/// The broker closes the connection just when the consumer closes. libzmq's thread must not wait for a peer
/// that is gone.
TEST(Handles, AConsumerThatEndsDuringADeletionBlocksNoOther) {
  const EmbeddedBroker broker;
  std::vector<Result<void>> results(4);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < results.size(); ++i) {
      threads.emplace_back(
          [&, i] { results[i] = come_and_go(broker.client(), "topic" + std::to_string(i)); });
    }
  }
  for (const auto& result : results) EXPECT_TRUE(result.ok()) << result.error().text();
}

}  // namespace
}  // namespace lightq::testing
