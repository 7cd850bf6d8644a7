/// The client library against a broker in this process: options out of range, closed handles, and the way
/// back to a broker that has lost its endpoints.
#include <lightq/client.hpp>

#include <chrono>
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
  EXPECT_EQ(consumer.descriptor(), -1);  // NOLINT(bugprone-use-after-move): what a user may do by mistake
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
  broker = std::make_unique<EmbeddedBroker>(uri);  // the same address, and nothing remembered
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

/// Uses a topic and deletes it, again and again; the first error.
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

/// The broker hangs up just as a consumer goes: libzmq's thread must not come to wait for who has gone.
TEST(Handles, AConsumerThatGoesWhileItsTopicIsDeletedStopsNobody) {
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
