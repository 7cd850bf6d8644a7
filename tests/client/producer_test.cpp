/// Tests of PlainProducer: order, back-pressure, closing, rejoining.
#include <lightq/plain_producer.hpp>

#include <atomic>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

#include <lightq/client.hpp>
#include <lightq/detail/deadline.hpp>

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

/// Sends until no message has left in three attempts: then the kernel's buffers are full, and more messages
/// wait in the producer. After a single attempt libzmq's thread may only have been slow.
void fill(PlainProducer& producer, const std::string& text, Timeout attempt,
          std::uint64_t high_water_bytes = limits::high_water_bytes_default) {
  for (int refused = 0; refused < 3;) {
    refused = producer.send(text, attempt).ok() ? 0 : refused + 1;
    ASSERT_LT(producer.sent(), 1000U);
    ASSERT_LT(producer.unsent_bytes(), high_water_bytes + text.size());
  }
}

TEST(Producer, SendsAnyBytesInOrder) {
  FakeEndpoint endpoint(zmq::socket_type::pull);
  FakeBroker broker(answers_with(endpoint.uri()));
  auto client = client_of(broker);
  auto producer = client.plain_producer("orders").value_or_throw();
  const std::string binary("\0\xff\n", 3);
  producer.send("first").value_or_throw();
  producer.send("").value_or_throw();
  producer.send(binary).value_or_throw();
  EXPECT_EQ(endpoint.receive(), "first");
  EXPECT_EQ(endpoint.receive(), "");
  EXPECT_EQ(endpoint.receive(), binary);
  EXPECT_EQ(producer.sent(), 3U);
  EXPECT_TRUE(producer.connected());
}

TEST(Producer, TimesOutWhileNoConsumerReads) {
  FakeEndpoint endpoint(zmq::socket_type::pull, 2, 4096);
  FakeBroker broker(answers_with(endpoint.uri()));
  auto client = client_of(broker);
  PlainProducerOptions options;
  options.linger = 0ms;
  auto producer = client.plain_producer("orders", options).value_or_throw();
  const std::string large(1 << 20, 'x');
  fill(producer, large, 500ms);
  const std::uint64_t sent = producer.sent();
  const Result<void> refused = producer.send(large, 50ms);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::timeout);
  EXPECT_NE(refused.error().message.find("full"), std::string::npos);
  std::jthread reader([&] {
    for (std::uint64_t i = 0; i < sent; ++i) (void)endpoint.receive();
  });
  EXPECT_TRUE(producer.send(large, 10s).ok());
}

TEST(Producer, ContinuesWhenSmallMessagesAreFollowedByLargeOnes) {
  // A high-water mark that followed the message sizes made libzmq's writer wait forever in this case.
  FakeEndpoint endpoint(zmq::socket_type::pull);
  FakeBroker broker(answers_with(endpoint.uri()));
  constexpr int small_count = 20'000;
  constexpr int count = 23'000;
  int received = 0;
  std::jthread reader([&] {
    while (received < count && endpoint.receive() != "(nothing)") ++received;
  });
  PlainProducerOptions options;
  options.high_water_messages = 1000;
  auto client = client_of(broker);
  auto producer = client.plain_producer("orders", options).value_or_throw();
  const std::string large(100'000, 'x');
  for (int i = 0; i < count; ++i) {
    const std::string_view payload = i < small_count ? std::string_view("small") : std::string_view(large);
    ASSERT_TRUE(producer.send(payload, 10s).ok()) << "message " << i;
  }
  reader.join();
  EXPECT_EQ(received, count);
}

TEST(Producer, LimitsItsBytesWhileThePeerDoesNotReadAndContinuesAfterwards) {
  FakeEndpoint endpoint(zmq::socket_type::pull, 2, 4096);
  FakeBroker broker(answers_with(endpoint.uri()));
  auto client = client_of(broker);
  PlainProducerOptions options;
  options.high_water_bytes = 300'000;
  auto producer = client.plain_producer("orders", options).value_or_throw();
  const std::string large(100'000, 'x');
  fill(producer, large, 500ms, options.high_water_bytes);
  EXPECT_EQ(producer.try_send(large), SendOutcome::would_block);
  EXPECT_EQ(producer.try_send("small"), SendOutcome::would_block);
  const std::uint64_t stuck = producer.sent();
  std::atomic<std::uint64_t> received{0};
  std::jthread reader([&] {
    while (endpoint.receive() != "end") ++received;
  });
  for (int i = 0; i < 200; ++i) producer.send(large, 10s).value_or_throw();
  producer.send("end", 10s).value_or_throw();
  reader.join();
  EXPECT_EQ(received, stuck + 200);
}

TEST(Producer, AcceptsOneMessageLargerThanItsLimit) {
  FakeEndpoint endpoint(zmq::socket_type::pull);
  FakeBroker broker(answers_with(endpoint.uri()));
  auto client = client_of(broker);
  PlainProducerOptions options;
  options.high_water_bytes = 1;
  auto producer = client.plain_producer("orders", options).value_or_throw();
  const std::string large(3 << 20, 'x');
  for (int i = 0; i < 3; ++i) producer.send(large, 10s).value_or_throw();
  for (int i = 0; i < 3; ++i) ASSERT_EQ(endpoint.receive(), large);
}

TEST(Producer, MayEndWithMessagesUnsentInAnyOrder) {
  FakeEndpoint endpoint(zmq::socket_type::pull, 2, 4096);
  FakeBroker broker(answers_with(endpoint.uri()));
  std::optional<Client> client = client_of(broker);
  PlainProducerOptions options;
  options.linger = 50ms;
  std::optional<PlainProducer> first = client->plain_producer("orders", options).value_or_throw();
  std::optional<PlainProducer> second = client->plain_producer("orders", options).value_or_throw();
  const std::string large(1 << 20, 'x');
  fill(*first, large, 100ms);
  fill(*second, large, 100ms);
  first.reset();  // libzmq's thread drops its messages later
  client.reset();
  second.reset();
}

TEST(Producer, IsNotBlockedByMessagesForAFormerEndpoint) {
  FakeEndpoint first(zmq::socket_type::pull, 2, 4096);
  FakeEndpoint second(zmq::socket_type::pull);
  std::atomic<int> joins{0};
  FakeBroker broker([&](const protocol::Request& request) {
    const int nth = std::holds_alternative<protocol::Join>(request) ? ++joins : 0;
    return answers_with(nth == 1 ? first.uri() : second.uri())(request);
  });
  auto client = client_of(broker);
  auto producer = client.plain_producer("orders").value_or_throw();
  const std::string large(1 << 20, 'x');
  fill(producer, large, 300ms);
  producer.rejoin().value_or_throw();
  producer.send(large, 10s).value_or_throw();
  EXPECT_EQ(second.receive(), large);
}

TEST(Producer, RefusesBoundsOutOfRange) {
  FakeEndpoint endpoint(zmq::socket_type::pull);
  FakeBroker broker(answers_with(endpoint.uri()));
  auto client = client_of(broker);
  for (const int messages : {-1, 0, 1'000'001}) {
    PlainProducerOptions options;
    options.high_water_messages = messages;
    EXPECT_EQ(client.plain_producer("orders", options).error().code, ErrorCode::invalid_argument) << messages;
  }
}

TEST(Producer, HandsEverythingOverWhenItCloses) {
  FakeEndpoint endpoint(zmq::socket_type::pull);
  FakeBroker broker(answers_with(endpoint.uri()));
  auto client = client_of(broker);
  auto producer = client.plain_producer("orders").value_or_throw();
  for (int i = 0; i < 500; ++i) producer.send(std::to_string(i)).value_or_throw();
  EXPECT_TRUE(producer.close(10s).ok());
  for (int i = 0; i < 500; ++i) ASSERT_EQ(endpoint.receive(), std::to_string(i));
  EXPECT_EQ(producer.send("late").error().code, ErrorCode::closed);
  EXPECT_EQ(producer.try_send("late"), SendOutcome::closed);
  EXPECT_TRUE(producer.close(10s).ok());
}

TEST(Producer, ReportsUnsentMessagesAtItsEnd) {
  FakeEndpoint endpoint(zmq::socket_type::pull, 2, 4096);
  FakeBroker broker(answers_with(endpoint.uri()));
  auto client = client_of(broker);
  auto producer = client.plain_producer("orders").value_or_throw();
  const std::string large(1 << 20, 'x');
  fill(producer, large, 500ms);
  ASSERT_GE(producer.unsent_bytes(), limits::high_water_bytes_default);
  const Result<void> closed = producer.close(100ms);
  ASSERT_FALSE(closed.ok());
  EXPECT_EQ(closed.error().code, ErrorCode::timeout);
}

TEST(Producer, ReconnectsWhenItsEndpointIsOpenAgain) {
  auto endpoint = std::make_unique<FakeEndpoint>(zmq::socket_type::pull);
  const std::string uri = endpoint->uri();
  FakeBroker broker(answers_with(uri));
  auto client = client_of(broker);
  auto producer = client.plain_producer("orders").value_or_throw();
  endpoint.reset();
  zmq::context_t context;
  zmq::socket_t again(context, zmq::socket_type::pull);
  again.set(zmq::sockopt::linger, 0);
  again.set(zmq::sockopt::rcvtimeo, 100);
  again.bind(uri);
  // A message that is sent before libzmq notices the end of the old connection is lost with it.
  zmq::message_t message;
  bool received = false;
  for (const auto deadline = deadline_after(10s); !received && time_left(deadline) > 0ms;) {
    EXPECT_TRUE(producer.wait_connected(10s));
    producer.send("after the restart").value_or_throw();
    received = again.recv(message).has_value();
  }
  ASSERT_TRUE(received);
  EXPECT_EQ(message.to_string(), "after the restart");
}

TEST(Producer, RejoinsAtANewEndpoint) {
  FakeEndpoint first(zmq::socket_type::pull);
  FakeEndpoint second(zmq::socket_type::pull);
  std::atomic<int> joins{0};
  FakeBroker broker([&](const protocol::Request& request) {
    const bool join = std::holds_alternative<protocol::Join>(request);
    const int nth = join ? ++joins : 0;
    return answers_with(nth == 1 ? first.uri() : second.uri())(request);
  });
  auto client = client_of(broker);
  auto producer = client.plain_producer("orders").value_or_throw();
  EXPECT_EQ(producer.bind_uri(), first.uri());
  producer.rejoin().value_or_throw();
  EXPECT_EQ(producer.bind_uri(), second.uri());
  EXPECT_TRUE(producer.wait_connected(10s));
  producer.send("here").value_or_throw();
  EXPECT_EQ(second.receive(), "here");
}

TEST(Producer, OutlivesItsClient) {
  FakeEndpoint endpoint(zmq::socket_type::pull);
  FakeBroker broker(answers_with(endpoint.uri()));
  std::optional<Client> client = client_of(broker);
  std::optional<PlainProducer> producer = client->plain_producer("orders").value_or_throw();
  client.reset();
  producer->send("still here").value_or_throw();
  PlainProducer moved = std::move(*producer);
  producer.reset();
  moved.send("moved").value_or_throw();
  EXPECT_EQ(endpoint.receive(), "still here");
  EXPECT_EQ(endpoint.receive(), "moved");
}

}  // namespace
}  // namespace lightq::testing
