/// Tests of keys, headers, times and compression from the client library's producer to its consumer, through
/// a broker in this process.
#include <lightq/client.hpp>

#include <chrono>
#include <cstdint>
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

/// The payload and the attributes of a message, as sent and as expected.
struct Sent {
  std::string payload;
  std::string key;
  std::vector<std::pair<std::string, std::string>> headers;
  Timestamp time;
};

Sent numbered(int i) {
  Sent sent{"the payload with the number " + std::to_string(i), {}, {}, {}};
  if (i % 3 == 1) sent.key = "key " + std::to_string(i);
  if (i % 5 == 2) sent.headers = {{"kind", "json"}, {"number", std::to_string(i)}, {"kind", ""}};
  if (i % 7 == 3) sent.time = {1'700'000'000'000'000 + i};
  if (i % 100 == 50) sent.payload.clear();
  if (i % 1000 == 600) sent.payload.assign(300'000, static_cast<char>('a' + i / 1000));
  return sent;
}

void send(Producer& producer, const Sent& sent) {
  std::vector<Header> headers;
  for (const auto& [name, value] : sent.headers) headers.push_back({name, value});
  producer.send(sent.payload, {.key = sent.key, .headers = headers, .time = sent.time}).value_or_throw();
}

void expect_is(const Delivered& message, const Sent& sent) {
  ASSERT_EQ(sent.payload, message.text());
  ASSERT_EQ(sent.key, message.key());
  ASSERT_EQ(sent.time, message.producer_time());
  std::vector<std::pair<std::string, std::string>> headers;
  for (const Header header : message.headers()) headers.emplace_back(header.name, header.value);
  ASSERT_EQ(sent.headers, headers);
}

class AttributesOnEachWay : public ::testing::TestWithParam<std::tuple<BrokerType, ConnectionType, Codec>> {
 protected:
  EmbeddedBroker broker;
};
INSTANTIATE_TEST_SUITE_P(
    SessionAttributes, AttributesOnEachWay,
    ::testing::Combine(::testing::Values(BrokerType::queue, BrokerType::file, BrokerType::queue_file),
                       each_connection(), ::testing::Values(Codec::none, Codec::lz4, Codec::zstd)),
    [](const auto& tested) {
      return std::string(protocol::to_word(std::get<BrokerType>(tested.param))) + "_" +
             std::string(protocol::to_word(std::get<ConnectionType>(tested.param))) + "_" +
             std::string(to_word(std::get<Codec>(tested.param)));
    });

TEST_P(AttributesOnEachWay, ComeWithTheirMessages) {
  const auto [type, connection, codec] = GetParam();
  constexpr int messages = 3'000;
  auto client = broker.client();
  client.create_topic("orders", {.broker_type = type}).value_or_throw();
  auto producer =
      client.producer("orders", {.compression = codec, .connection = connection}).value_or_throw();
  for (int i = 0; i < messages; ++i) send(producer, numbered(i));
  producer.flush(20s).value_or_throw();
  EXPECT_EQ(static_cast<std::uint64_t>(messages), producer.confirmed());
  // With little credit, the consumer receives parts of batches.
  auto slow = client
                  .consumer("orders", {.mode = ConsumeMode::own,
                                       .from = From::first(),
                                       .prefetch_messages = 3,
                                       .connection = connection})
                  .value_or_throw();
  for (int i = 0; i < 1'000; ++i) {
    const auto message = slow.receive(10s).value_or_throw();
    ASSERT_TRUE(message) << slow.last_error().text();
    expect_is(*message, numbered(i));
    slow.acknowledge(*message);
  }
  auto group = client.consumer("orders", {.connection = connection}).value_or_throw();
  for (int i = 0; i < messages; ++i) {
    const auto message = group.receive(10s).value_or_throw();
    ASSERT_TRUE(message) << group.last_error().text();
    ASSERT_EQ(static_cast<std::uint64_t>(i), message->offset.value);
    expect_is(*message, numbered(i));
    group.acknowledge(*message);
  }
  const TopicStats stats = client.stats("orders").value_or_throw();
  EXPECT_EQ(0U, stats.corrupt);
  EXPECT_EQ(static_cast<std::uint64_t>(messages), stats.messages_received);
}

TEST_P(AttributesOnEachWay, AreOmittedForAPlainConsumer) {
  const auto [type, connection, codec] = GetParam();
  auto client = broker.client();
  client.create_topic("orders", {.broker_type = type}).value_or_throw();
  auto producer =
      client.producer("orders", {.compression = codec, .connection = connection}).value_or_throw();
  for (int i = 0; i < 500; ++i) send(producer, numbered(i));
  producer.flush(20s).value_or_throw();
  auto plain = client.plain_consumer("orders").value_or_throw();
  for (int i = 0; i < 500; ++i) {
    const auto message = plain.receive(10s).value_or_throw();
    ASSERT_TRUE(message) << i;
    ASSERT_EQ(numbered(i).payload, as_text(message->payload())) << i;
  }
}

class SessionAttributes : public ::testing::Test {
 protected:
  EmbeddedBroker broker;
};

TEST_F(SessionAttributes, AttributesBeyondTheirLimitsAreRefusedAndLaterMessagesAccepted) {
  auto client = broker.client();
  client.create_topic("orders", {}).value_or_throw();
  auto producer = client.producer("orders", {}).value_or_throw();
  const std::string key(limits::key_bytes_max + 1, 'k');
  EXPECT_EQ(ErrorCode::too_large, producer.send("one", {.key = key}).error().code);
  const Header nameless[] = {{"", "value"}};
  EXPECT_EQ(ErrorCode::invalid_argument, producer.send("one", {.headers = nameless}).error().code);
  EXPECT_EQ(0U, producer.send("one", {.key = "tea"}).value_or_throw());
  producer.flush(10s).value_or_throw();
  EXPECT_EQ(1U, producer.confirmed());
}

TEST_F(SessionAttributes, CallBackForTheirMessage) {
  auto client = broker.client();
  client.create_topic("orders", {}).value_or_throw();
  auto producer = client.producer("orders", {}).value_or_throw();
  std::vector<Fate> fates;
  const auto note = [&](Fate fate, const Error* /*error*/) { fates.push_back(fate); };
  (void)producer.send("one", {.key = "tea"}, note).value_or_throw();
  (void)producer.send("two", note).value_or_throw();
  producer.flush(10s).value_or_throw();
  EXPECT_EQ((std::vector<Fate>{Fate::confirmed, Fate::confirmed}), fates);
}

TEST_F(SessionAttributes, MessagesOfDifferentKindsDoNotEndEachOthersBatch) {
  auto client = broker.client();
  client.create_topic("orders", {.broker_type = BrokerType::file, .segment_bytes = 64 * limits::KiB})
      .value_or_throw();
  const auto send_all = [&](bool in_turn) {
    auto producer = client.producer("orders", {.eager_batches = 0}).value_or_throw();
    const Header headers[] = {{"kind", "json"}};
    for (int i = 0; i < 30'000; ++i) {
      Attributes attributes{.key = "tea", .headers = headers};
      if (in_turn && i % 3 != 0) attributes.key = {};
      if (in_turn && i % 3 != 1) attributes.headers = {};
      producer.send("payload", attributes).value_or_throw();
    }
    producer.close(20s).value_or_throw();
    return client.stats("orders").value_or_throw().log_bytes;
  };
  const std::uint64_t alike = send_all(false);
  EXPECT_LT(send_all(true) - alike, alike) << "a header of 64 bytes for each would be more";
}

TEST_F(SessionAttributes, AMessageTooLongForCompressionIsSentUncompressed) {
  auto client = broker.client();
  client.create_topic("orders", {.broker_type = BrokerType::file}).value_or_throw();
  auto producer =
      client.producer("orders", {.batch_bytes = 8 * limits::MiB, .compression = Codec::lz4}).value_or_throw();
  const std::string longest(limits::compressed_batch_bytes_max, 'x');
  const std::string alike(100'000, 'y');
  producer.send(longest).value_or_throw();
  producer.send(alike).value_or_throw();
  producer.close(20s).value_or_throw();
  auto consumer = client.consumer("orders").value_or_throw();
  for (const std::string& sent : {longest, alike}) {
    const auto message = consumer.receive(10s).value_or_throw();
    ASSERT_TRUE(message);
    EXPECT_TRUE(sent == message->text()) << message->text().size() << " bytes";
    consumer.acknowledge(*message);  // gives back the credit for the next message
  }
}

TEST_F(SessionAttributes, CompressedBatchesAreStoredSo) {
  auto client = broker.client();
  for (const char* topic : {"plain", "packed"})
    client.create_topic(topic, {.broker_type = BrokerType::file, .segment_bytes = 64 * limits::KiB})
        .value_or_throw();
  const auto fill = [&](const char* topic, Codec codec) {
    auto producer = client.producer(topic, {.compression = codec}).value_or_throw();
    for (int i = 0; i < 20'000; ++i)
      producer.send("the same words again and again, but for " + std::to_string(i)).value_or_throw();
    producer.close(20s).value_or_throw();
    return client.stats(topic).value_or_throw();
  };
  const TopicStats plain = fill("plain", Codec::none);
  const TopicStats packed = fill("packed", Codec::zstd);
  EXPECT_EQ(plain.total_bytes_written, packed.total_bytes_written) << "what the messages are";
  EXPECT_LT(packed.log_bytes * 3, plain.log_bytes) << "what is on the disk";
}

}  // namespace
}  // namespace lightq::testing
