/// Tests of PlainConsumer: pull and sub, ranges, leaving without loss.
#include <lightq/plain_consumer.hpp>

#include <poll.h>

#include <gtest/gtest.h>

#include <lightq/client.hpp>

#include "client/fake_broker.hpp"

#include "support/planted.hpp"

namespace lightq::testing {
namespace {

using namespace std::chrono_literals;

Client client_of(const FakeBroker& broker) {
  return Client::connect(broker.uri(),
                         {.user = {"alice", planted::user_password}, .discover_credentials = false})
      .value_or_throw();
}

/// Waits until a subscription has reached an XPUB endpoint.
void await_subscription(FakeEndpoint& endpoint, const std::string& topic) {
  ASSERT_EQ(endpoint.receive(), "\1" + topic);
}

TEST(Consumer, PullsMessagesAndAnswersNothingOnATimeout) {
  FakeEndpoint endpoint(zmq::socket_type::push);
  FakeBroker broker(answers_with(endpoint.uri()));
  auto client = client_of(broker);
  auto consumer = client.plain_consumer("orders").value_or_throw();
  endpoint.send("one");
  endpoint.send("");
  const auto one = consumer.receive(10s).value_or_throw();
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(one->text(), "one");
  EXPECT_EQ(consumer.receive(10s).value_or_throw()->size(), 0U);
  EXPECT_FALSE(consumer.receive(20ms).value_or_throw().has_value());
  EXPECT_FALSE(consumer.receive(0ms).value_or_throw().has_value());
  EXPECT_EQ(consumer.received(), 2U);
}

TEST(Consumer, StripsTheTopicFrameOfASubscription) {
  FakeEndpoint endpoint(zmq::socket_type::xpub);
  FakeBroker broker(answers_with(endpoint.uri()));
  auto client = client_of(broker);
  auto consumer = client.plain_consumer("orders", {.mode = Mode::sub}).value_or_throw();
  await_subscription(endpoint, "orders");
  endpoint.send("orders", zmq::send_flags::sndmore);
  endpoint.send("payload");
  EXPECT_EQ(consumer.receive(10s).value_or_throw()->text(), "payload");
}

TEST(Consumer, DropsMessagesWithAnUnexpectedNumberOfFrames) {
  FakeEndpoint endpoint(zmq::socket_type::xpub);
  FakeBroker broker(answers_with(endpoint.uri()));
  auto client = client_of(broker);
  auto consumer = client.plain_consumer("orders", {.mode = Mode::sub}).value_or_throw();
  await_subscription(endpoint, "orders");
  endpoint.send("orders alone");
  endpoint.send("orders", zmq::send_flags::sndmore);
  endpoint.send("good");
  EXPECT_EQ(consumer.receive(10s).error().code, ErrorCode::corrupt);
  EXPECT_EQ(consumer.receive(10s).value_or_throw()->text(), "good");
}

TEST(Consumer, IteratesUntilItIsQuiet) {
  FakeEndpoint endpoint(zmq::socket_type::push);
  FakeBroker broker(answers_with(endpoint.uri()));
  auto client = client_of(broker);
  auto consumer = client.plain_consumer("orders").value_or_throw();
  for (int i = 0; i < 100; ++i) endpoint.send(std::to_string(i));
  int next = 0;
  auto messages = consumer.messages(300ms);
  for (const Message& message : messages) EXPECT_EQ(message.text(), std::to_string(next++));
  EXPECT_EQ(next, 100);
  EXPECT_TRUE(messages.result().ok());
}

TEST(Consumer, StopsIteratingWhenAsked) {
  FakeEndpoint endpoint(zmq::socket_type::push);
  FakeBroker broker(answers_with(endpoint.uri()));
  auto client = client_of(broker);
  auto consumer = client.plain_consumer("orders").value_or_throw();
  endpoint.send("one");
  std::stop_source stop;
  int seen = 0;
  for (const Message& message : consumer.messages(1h, stop.get_token())) {
    EXPECT_EQ(message.text(), "one");
    ++seen;
    stop.request_stop();
  }
  EXPECT_EQ(seen, 1);
}

TEST(Consumer, ReceivesAllItWasHandedAfterItLeft) {
  FakeEndpoint endpoint(zmq::socket_type::push);
  FakeBroker broker(answers_with(endpoint.uri(), 3));
  auto client = client_of(broker);
  auto consumer = client.plain_consumer("orders").value_or_throw();
  endpoint.send("1");
  EXPECT_EQ(consumer.receive(10s).value_or_throw()->text(), "1");
  consumer.leave().value_or_throw();
  EXPECT_FALSE(consumer.finished());
  EXPECT_EQ(consumer.outstanding(), 2U);
  endpoint.send("2");
  endpoint.send("3");
  endpoint.send("of the next life");
  int seen = 0;
  for (const Message& message : consumer.messages(10s)) EXPECT_EQ(message.size(), 1U) << ++seen;
  EXPECT_TRUE(consumer.finished());
  EXPECT_EQ(consumer.received(), 3U);
  EXPECT_FALSE(consumer.receive(10s).value_or_throw().has_value());
}

TEST(Consumer, StaysAsItWasWhenLeavingFails) {
  FakeEndpoint endpoint(zmq::socket_type::push);
  FakeBroker broker([&](const protocol::Request& request) -> std::optional<protocol::Reply> {
    if (std::holds_alternative<protocol::Leave>(request)) {
      return protocol::ErrorReply{"leave", ErrorCode::endpoint_not_found, "endpoint not found"};
    }
    return answers_with(endpoint.uri())(request);
  });
  auto client = client_of(broker);
  auto consumer = client.plain_consumer("orders").value_or_throw();
  EXPECT_EQ(consumer.leave().error().code, ErrorCode::endpoint_not_found);
  endpoint.send("still");
  EXPECT_EQ(consumer.receive(10s).value_or_throw()->text(), "still");
}

TEST(Consumer, RejoinsAtANewEndpoint) {
  FakeEndpoint first(zmq::socket_type::push);
  FakeEndpoint second(zmq::socket_type::push);
  std::atomic<int> joins{0};
  FakeBroker broker([&](const protocol::Request& request) {
    const bool join = std::holds_alternative<protocol::Join>(request);
    const int nth = join ? ++joins : 0;
    return answers_with(nth == 1 ? first.uri() : second.uri())(request);
  });
  auto client = client_of(broker);
  auto consumer = client.plain_consumer("orders").value_or_throw();
  consumer.rejoin().value_or_throw();
  EXPECT_TRUE(consumer.wait_connected(10s));
  second.send("here");
  EXPECT_EQ(consumer.receive(10s).value_or_throw()->text(), "here");
}

TEST(Consumer, WakesAnEventLoopThroughItsDescriptor) {
  FakeEndpoint endpoint(zmq::socket_type::push);
  FakeBroker broker(answers_with(endpoint.uri()));
  auto client = client_of(broker);
  auto consumer = client.plain_consumer("orders").value_or_throw();
  endpoint.send("one");
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  std::optional<Message> message = consumer.receive(0ms).value_or_throw();
  while (!message && std::chrono::steady_clock::now() < deadline) {
    pollfd waiting{consumer.descriptor(), POLLIN, 0};
    ASSERT_EQ(::poll(&waiting, 1, 10'000), 1);
    message = consumer.receive(0ms).value_or_throw();
  }
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(message->text(), "one");
}

TEST(Consumer, ReportsClosedAfterItsClose) {
  FakeEndpoint endpoint(zmq::socket_type::push);
  FakeBroker broker(answers_with(endpoint.uri()));
  auto client = client_of(broker);
  auto consumer = client.plain_consumer("orders").value_or_throw();
  consumer.close();
  EXPECT_EQ(consumer.receive(10s).error().code, ErrorCode::closed);
  auto messages = consumer.messages(10s);
  EXPECT_FALSE(messages.begin() != messages.end());
  EXPECT_EQ(messages.result().error().code, ErrorCode::closed);
}

}  // namespace
}  // namespace lightq::testing
