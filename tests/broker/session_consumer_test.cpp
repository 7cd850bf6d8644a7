/// Tests of the client library's consumer on sessions against a broker in this process.
#include <lightq/client.hpp>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "broker/each_way.hpp"
#include "broker/embedded_broker.hpp"

namespace lightq::testing {
namespace {

using namespace std::chrono_literals;

class SessionConsumerTest : public ::testing::Test {
 protected:
  static std::string numbered(std::uint64_t number) { return "message " + std::to_string(number); }
  /// Sends messages with the numbers [begin, end).
  void produce(std::uint64_t begin, std::uint64_t end) {
    auto producer = broker.client().producer("orders", {.connection = connection}).value_or_throw();
    for (std::uint64_t i = begin; i < end; ++i) producer.send(numbered(i)).value_or_throw();
    producer.close(20s).value_or_throw();
  }
  Consumer consumer(ConsumerOptions options = {}) {
    options.connection = connection;
    return broker.client().consumer("orders", std::move(options)).value_or_throw();
  }
  /// Returns the next message. Fails the test if none arrives.
  static Delivered next(Consumer& consumer) {
    auto received = consumer.receive(10s).value_or_throw();
    EXPECT_TRUE(received.has_value()) << consumer.last_error().text();
    return received.value_or(Delivered{});
  }
  static void expect_in_order(Consumer& consumer, std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t i = begin; i < end; ++i) {
      const Delivered message = next(consumer);
      ASSERT_EQ(Offset{i}, message.offset);
      ASSERT_EQ(numbered(i), message.text());
      consumer.acknowledge(message);
    }
  }
  /// Waits until the broker knows that `group` has acknowledged everything before `offset`. A sent
  /// acknowledgement alone does not prove that (Consumer::flush).
  void wait_until_told(const std::string& group, Offset offset) {
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (std::chrono::steady_clock::now() < deadline) {
      for (const GroupStats& stats : broker.client().stats("orders").value_or_throw().groups)
        if (stats.group == group && stats.committed_offset == offset.value) return;
    }
    ADD_FAILURE() << group << " is not at " << offset.value;
  }

  EmbeddedBroker broker;
  ConnectionType connection = ConnectionType::socket;
};

class OnEachTopic : public SessionConsumerTest, public ::testing::WithParamInterface<Way> {};

TEST_P(OnEachTopic, AGroupReceivesEverythingInOrderAndContinuesAtItsCursor) {
  constexpr std::uint64_t messages = 20'000;
  const auto [type, transport, over] = GetParam();
  auto client = broker.client();
  client.create_topic("orders", {.broker_type = type}).value_or_throw();
  produce(0, messages);
  const ConsumerOptions options{.group = "billing", .connection = over};
  auto first = client.consumer("orders", options, transport).value_or_throw();
  EXPECT_EQ(Offset{0}, first.committed());
  expect_in_order(first, 0, messages / 2);
  first.close(10s).value_or_throw();
  auto second = client.consumer("orders", options, transport).value_or_throw();
  EXPECT_EQ(Offset{messages / 2}, second.committed());
  std::uint64_t at = messages / 2;
  while (at < messages) {
    const auto batch = second.receive_batch(10s).value_or_throw();
    ASSERT_TRUE(batch.has_value());
    for (const Delivered& message : *batch) ASSERT_EQ(numbered(at++), message.text());
    second.acknowledge(*batch);
  }
  EXPECT_FALSE(second.receive(0ms).value_or_throw().has_value());
  EXPECT_EQ(0U, second.unacknowledged());
  EXPECT_EQ(0U, second.stats().violations);
  second.close(10s).value_or_throw();
}

INSTANTIATE_TEST_SUITE_P(Topics, OnEachTopic, each_way(), way_name);

class ConsumerOverEach : public SessionConsumerTest, public ::testing::WithParamInterface<ConnectionType> {
 protected:
  ConsumerOverEach() { connection = GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Connections, ConsumerOverEach, each_connection(), connection_name);

TEST_P(ConsumerOverEach, ADirectTopicDeliversOnlyToConnectedConsumers) {
  broker.client().create_topic("orders", {.broker_type = BrokerType::direct}).value_or_throw();
  auto group = consumer({.group = "billing"});
  auto own = consumer({.mode = ConsumeMode::own, .acknowledgement = Acknowledgement::automatic});
  produce(0, 1000);
  expect_in_order(group, 0, 1000);
  expect_in_order(own, 0, 1000);
}

TEST_P(ConsumerOverEach, AcknowledgementsArriveBeforeTheDestructorEnds) {
  constexpr std::uint64_t messages = 500;
  auto client = broker.client();
  client.create_topic("orders").value_or_throw();
  produce(0, messages);
  {
    auto one = consumer({.group = "billing"});
    expect_in_order(one, 0, messages);
  }
  const auto is_told = [&] {
    const auto groups = client.stats("orders").value_or_throw().groups;
    return std::any_of(groups.begin(), groups.end(), [](const GroupStats& group) {
      return group.group == "billing" && group.committed_offset == messages && group.consumers == 0;
    });
  };
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (!is_told()) ASSERT_LT(std::chrono::steady_clock::now(), deadline);
}

TEST_P(ConsumerOverEach, SurvivesRestartsOfTheBroker) {
  broker.client().create_topic("orders", {.broker_type = BrokerType::file}).value_or_throw();
  produce(0, 3000);
  auto group = consumer({.group = "billing"});
  auto own = consumer({.mode = ConsumeMode::own});
  expect_in_order(group, 0, 1000);
  group.acknowledge(OffsetRange{{1500}, {1600}});  // not delivered yet, or delivered and waiting
  group.flush(10s).value_or_throw();
  expect_in_order(own, 0, 1234);
  broker.stop();
  broker.start();
  produce(3000, 4000);
  // The cursor of an `own` consumer continues after the delivered batch: no message is missing or repeated.
  expect_in_order(own, 1234, 4000);
  // The group may deliver some messages again, but skips none.
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 1000; ++i) seen.insert(i);
  for (std::uint64_t i = 1500; i < 1600; ++i) seen.insert(i);
  while (seen.size() < 4000) {
    const Delivered message = next(group);
    ASSERT_EQ(numbered(message.offset.value), message.text());
    seen.insert(message.offset.value);
    group.acknowledge(message);
  }
  EXPECT_GE(own.stats().opens, 2U);
  EXPECT_EQ(0U, own.stats().lost);
  EXPECT_EQ(0U, own.stats().violations + group.stats().violations);
}

TEST_P(ConsumerOverEach, AnOwnCursorBeginsAnewWithATransientTopicsNewLog) {
  broker.client().create_topic("orders").value_or_throw();
  produce(0, 10);
  auto own = consumer({.mode = ConsumeMode::own});
  expect_in_order(own, 0, 10);
  broker.stop();
  broker.start();
  produce(0, 5);
  expect_in_order(own, 0, 5);
  EXPECT_EQ(1U, own.stats().new_logs);
}

TEST_P(ConsumerOverEach, AMemberReceivesTheMessagesThatAnotherMemberLeaves) {
  constexpr std::uint64_t messages = 2000;
  broker.client().create_topic("orders", {.broker_type = BrokerType::file}).value_or_throw();
  auto first = consumer({.group = "billing", .prefetch_messages = 50});
  auto second = consumer({.group = "billing", .prefetch_messages = 50});
  produce(0, messages);
  std::set<std::uint64_t> done;
  std::uint64_t by_first = 0;
  const auto take = [&](Consumer& member) {
    const auto message = member.receive(5ms).value_or_throw();
    if (!message) return;
    EXPECT_EQ(numbered(message->offset.value), message->text());
    EXPECT_TRUE(done.insert(message->offset.value).second) << "twice";
    member.acknowledge(*message);
    if (&member == &first) ++by_first;
  };
  while (done.size() < messages / 2) {
    take(first);
    take(second);
  }
  EXPECT_GT(by_first, 100U);
  EXPECT_GT(done.size() - by_first, 100U);
  first.close(10s).value_or_throw();
  while (done.size() < messages) {
    take(second);
    ASSERT_TRUE(second.connected());
  }
  second.close(10s).value_or_throw();
}

TEST_P(ConsumerOverEach, RejectedAndTimedOutMessagesAreRedelivered) {
  broker.client().create_topic("orders").value_or_throw();
  produce(0, 3);
  auto group = consumer({.group = "billing", .ack_timeout = 300ms});
  EXPECT_EQ(Offset{0}, next(group).offset);
  EXPECT_EQ(Offset{1}, next(group).offset);
  EXPECT_EQ(Offset{2}, next(group).offset);
  group.acknowledge(Offset{0});
  group.reject(Offset{1});
  const Delivered rejected = next(group);
  EXPECT_EQ(Offset{1}, rejected.offset);
  EXPECT_EQ(2U, rejected.delivery);
  EXPECT_EQ(numbered(1), rejected.text());
  group.acknowledge(rejected);
  const Delivered late = next(group);
  EXPECT_EQ(Offset{2}, late.offset);
  EXPECT_EQ(2U, late.delivery);
  group.acknowledge(late);
  group.close(10s).value_or_throw();
}

TEST_P(ConsumerOverEach, MessagesOfSeveralFramesAreRejectedTogether) {
  broker.client().create_topic("orders").value_or_throw();
  for (std::uint64_t i = 0; i < 30; i += 10) produce(i, i + 10);  // at least one batch each
  auto consumer = this->consumer();
  for (std::uint64_t i = 0; i < 30; ++i) (void)next(consumer);
  consumer.extend({{7}, {7}}, 1s);  // an empty range: ignored
  consumer.reject({{7}, {7}});
  consumer.reject({{9}, {4}});
  consumer.acknowledge({{9}, {4}});
  consumer.reject({{5}, {25}});
  for (std::uint64_t i = 5; i < 25; ++i) {
    const Delivered message = next(consumer);
    EXPECT_EQ(Offset{i}, message.offset);
    EXPECT_EQ(2U, message.delivery);
  }
  EXPECT_EQ(30U, consumer.unacknowledged());
  EXPECT_EQ(1U, consumer.stats().opens) << consumer.last_error().text();
}

TEST_P(ConsumerOverEach, SeeksBackAndForth) {
  broker.client().create_topic("orders", {.broker_type = BrokerType::file}).value_or_throw();
  produce(0, 100);
  for (const ConsumeMode mode : {ConsumeMode::group, ConsumeMode::own}) {
    auto one = consumer({.mode = mode, .group = mode == ConsumeMode::own ? "mine" : "ours"});
    expect_in_order(one, 0, 50);
    EXPECT_EQ(Offset{7}, one.seek(From::offset({7}), 10s).value_or_throw());
    expect_in_order(one, 7, 20);
    EXPECT_EQ(Offset{99}, one.seek(From::last(), 10s).value_or_throw());
    expect_in_order(one, 99, 100);
    EXPECT_EQ(Offset{100}, one.seek(From::next(), 10s).value_or_throw());
    EXPECT_FALSE(one.receive(0ms).value_or_throw().has_value());
    EXPECT_EQ(Offset{0}, one.seek(From::time({0}), 10s).value_or_throw());
    expect_in_order(one, 0, 100);
    EXPECT_EQ(0U, one.stats().violations);
    one.close(10s).value_or_throw();
  }
}

TEST_P(ConsumerOverEach, StartsAtTheRequestedPosition) {
  broker.client().create_topic("orders").value_or_throw();
  produce(0, 10);
  const auto first_of = [&](const session::Place& from, const std::string& group) {
    auto one = consumer({.group = group, .from = from});
    const auto message = one.receive(200ms).value_or_throw();
    return message ? message->offset.value : 1000;
  };
  EXPECT_EQ(0U, first_of(From::first(), "a"));
  EXPECT_EQ(9U, first_of(From::last(), "b"));
  EXPECT_EQ(1000U, first_of(From::next(), "c"));
  EXPECT_EQ(4U, first_of(From::offset({4}), "d"));
  EXPECT_EQ(0U, first_of(From::time({1}), "e"));
}

TEST_P(ConsumerOverEach, ANamedPlaceIsTakenOverAndAGroupOfTheOtherKindRefused) {
  broker.client().create_topic("orders").value_or_throw();
  produce(0, 10);
  auto first = consumer({.mode = ConsumeMode::own, .group = "mine"});
  expect_in_order(first, 0, 5);
  first.flush(10s).value_or_throw();
  wait_until_told("mine", Offset{5});
  auto second = consumer({.mode = ConsumeMode::own, .group = "mine"});
  EXPECT_EQ(Offset{5}, next(second).offset);
  while (first.receive(1s).ok()) continue;
  EXPECT_EQ(ErrorCode::in_use, first.last_error().code);
  EXPECT_EQ(SessionState::failed, first.state());
  const auto refused = broker.client().consumer("orders", {.group = "mine", .connection = connection});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(ErrorCode::not_supported, refused.error().code) << refused.error().text();
}

TEST_P(ConsumerOverEach, PlainAndSessionProducersAndConsumersMix) {
  broker.client().create_topic("orders").value_or_throw();
  auto client = broker.client();
  auto plain = client.plain_producer("orders").value_or_throw();
  for (int i = 0; i < 100; ++i) plain.send(numbered(static_cast<std::uint64_t>(i))).value_or_throw();
  plain.close(10s).value_or_throw();
  auto in = consumer();
  expect_in_order(in, 0, 100);
  in.close(10s).value_or_throw();
  produce(100, 101);
  auto pull = client.plain_consumer("orders").value_or_throw();
  const auto message = pull.receive(10s).value_or_throw();
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(numbered(100), message->text()) << "the default group is one";
}

TEST_P(ConsumerOverEach, LargeMessagesArriveComplete) {
  broker.client().create_topic("orders", {.broker_type = BrokerType::file}).value_or_throw();
  auto producer = broker.client().producer("orders", {.connection = connection}).value_or_throw();
  for (const char c : {'a', 'b', 'c'}) producer.send(std::string(9'000'000, c)).value_or_throw();
  producer.close(20s).value_or_throw();
  auto in = consumer({.prefetch_bytes = 1'000'000});
  for (const char c : {'a', 'b', 'c'}) {
    const Delivered message = next(in);
    EXPECT_TRUE(message.text() == std::string(9'000'000, c));
    in.acknowledge(message);
  }
}

TEST_P(ConsumerOverEach, ReportsAFailedJoinImmediately) {
  auto client = broker.client();
  client.create_topic("orders").value_or_throw();
  EXPECT_EQ(ErrorCode::topic_not_found, client.consumer("others", {.connection = connection}).error().code);
  EXPECT_EQ(ErrorCode::invalid_argument, client.consumer("orders", {.prefetch_messages = 0}).error().code);
}

}  // namespace
}  // namespace lightq::testing
