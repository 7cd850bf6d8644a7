/// Tests of the client library's reader against a broker in this process.
#include <lightq/client.hpp>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "broker/each_way.hpp"
#include "broker/embedded_broker.hpp"

namespace lightq::testing {
namespace {

using namespace std::chrono_literals;
using Strings = std::vector<std::string>;

std::string numbered(std::uint64_t i) {
  return "message " + std::to_string(i);
}
Strings numbers(std::uint64_t from, std::uint64_t to) {
  Strings all;
  for (std::uint64_t i = from; i < to; ++i) all.push_back(numbered(i));
  return all;
}

class ReaderTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t messages = 5'000;
  void fill(BrokerType type, Codec codec = Codec::none) {
    auto client = broker.client();
    client.create_topic("orders", {.broker_type = type}).value_or_throw();
    auto producer = client.producer("orders", {.compression = codec}).value_or_throw();
    for (std::uint64_t i = 0; i < messages; ++i) producer.send(numbered(i)).value_or_throw();
    producer.close(20s).value_or_throw();
  }
  /// Reads the messages in [begin, end), and checks the offset of each. Returns their payloads and the next
  /// offset.
  static std::pair<Strings, Offset> read(Reader& reader, std::uint64_t begin, std::uint64_t end,
                                         std::uint64_t bytes = limits::read_bytes_max) {
    Strings payloads;
    Offset expected{begin};
    const Offset next = reader
                            .read(
                                {{begin}, {end}}, bytes,
                                [&](const Delivered& message) {
                                  EXPECT_EQ(expected, message.offset);
                                  expected = message.offset + 1;
                                  payloads.emplace_back(message.text());
                                },
                                20s)
                            .value_or_throw();
    return {payloads, next};
  }

  EmbeddedBroker broker;
};

class ReaderOnEachWay : public ReaderTest, public ::testing::WithParamInterface<Way> {};
INSTANTIATE_TEST_SUITE_P(Reader, ReaderOnEachWay, each_way(), way_name);

TEST_P(ReaderOnEachWay, ReadsRangesWithoutSideEffects) {
  const auto [type, transport, connection] = GetParam();
  fill(type, Codec::zstd);
  auto client = broker.client();
  const TopicStats before = client.stats("orders").value_or_throw();
  auto reader = client.reader("orders", {.connection = connection}, transport).value_or_throw();
  for (const auto& [begin, end] :
       {std::pair{0U, 1U}, {0U, 5000U}, {17U, 18U}, {1234U, 4321U}, {4999U, 5000U}, {7U, 7U}}) {
    EXPECT_EQ((std::pair{numbers(begin, end), Offset{end}}), read(reader, begin, end));
  }
  EXPECT_EQ((std::pair{numbers(4990, 5000), Offset{5000}}), read(reader, 4990, 1'000'000)) << "the log's end";
  EXPECT_EQ((std::pair{Strings(), Offset{6000}}), read(reader, 6000, 7000)) << "behind it";
  const TopicStats after = client.stats("orders").value_or_throw();
  EXPECT_EQ(before.messages_sent, after.messages_sent);
  EXPECT_EQ(before.queue_size, after.queue_size);
  EXPECT_TRUE(after.groups.empty());
}

TEST_F(ReaderTest, ReadsAsManyBytesAsAreAskedForAndOneMessageInAnyCase) {
  fill(BrokerType::queue);
  auto reader = broker.client().reader("orders").value_or_throw();
  const std::uint64_t size = numbered(100).size();
  EXPECT_EQ((std::pair{numbers(100, 101), Offset{101}}), read(reader, 100, 200, 0));
  EXPECT_EQ((std::pair{numbers(100, 101), Offset{101}}), read(reader, 100, 200, 2 * size - 1));
  EXPECT_EQ((std::pair{numbers(100, 102), Offset{102}}), read(reader, 100, 200, 2 * size));
  EXPECT_EQ((std::pair{numbers(100, 150), Offset{150}}), read(reader, 100, 200, 50 * size));
}

TEST_F(ReaderTest, WithoutBytesItReadsCompressedBatchesInParts) {
  auto client = broker.client();
  client.create_topic("orders", {.broker_type = BrokerType::queue}).value_or_throw();
  auto producer = client.producer("orders", {.compression = Codec::lz4}).value_or_throw();
  for (int i = 0; i < 200; ++i) producer.send("").value_or_throw();
  producer.send("x").value_or_throw();
  producer.close(20s).value_or_throw();
  auto reader = client.reader("orders").value_or_throw();
  Strings payloads;
  for (std::uint64_t at = 0; at < 201;) {
    const auto [some, next] = read(reader, at, 201, 0);
    ASSERT_FALSE(some.empty()) << at;
    payloads.insert(payloads.end(), some.begin(), some.end());
    at = next.value;
  }
  Strings expected(200);
  expected.push_back("x");
  EXPECT_EQ(payloads, expected);
}

TEST_F(ReaderTest, ContinuesOverARestartOfTheBroker) {
  fill(BrokerType::file);
  auto reader = broker.client().reader("orders").value_or_throw();
  EXPECT_EQ(numbers(0, 10), read(reader, 0, 10).first);
  broker.stop();
  broker.start();
  EXPECT_EQ(numbers(10, 5000), read(reader, 10, 5000).first);
}

TEST_F(ReaderTest, ContinuesAfterItsLastMessageIfTheBrokerRestarts) {
  fill(BrokerType::file);
  auto reader = broker.client().reader("orders", {.frame_bytes_max = 64 * limits::KiB}).value_or_throw();
  Strings payloads;
  const Offset next = reader
                          .read(
                              {{0}, {messages}},
                              [&](const Delivered& message) {
                                payloads.emplace_back(message.text());
                                if (payloads.size() != 100) return;
                                broker.stop();
                                broker.start();
                              },
                              20s)
                          .value_or_throw();
  EXPECT_EQ(Offset{messages}, next);
  EXPECT_EQ(numbers(0, messages), payloads);
}

TEST_F(ReaderTest, ReportsUnreadableMessages) {
  auto client = broker.client();
  client.create_topic("orders", {}).value_or_throw();
  {
    auto producer = client.producer("orders").value_or_throw();
    producer.send("small").value_or_throw();
    producer.send(std::string(100'000, 'x')).value_or_throw();
    producer.send("small").value_or_throw();
    producer.close(20s).value_or_throw();
  }
  auto reader = client.reader("orders", {.frame_bytes_max = 64 * limits::KiB}).value_or_throw();
  EXPECT_EQ((std::pair{Strings{"small"}, Offset{1}}), read(reader, 0, 3)) << "up to the one that is too long";
  const auto ignore = [](const Delivered&) {};
  EXPECT_EQ(ErrorCode::too_large, reader.read({{1}, {3}}, ignore, 10s).error().code);
  EXPECT_EQ(ErrorCode::invalid_argument, reader.read({{3}, {1}}, ignore, 10s).error().code);
  EXPECT_EQ((std::pair{Strings{"small"}, Offset{3}}), read(reader, 2, 3)) << "it goes on";
  client.delete_topic("orders").value_or_throw();
  client.create_topic("orders", {}).value_or_throw();
  EXPECT_EQ((std::pair{Strings(), Offset{0}}), read(reader, 0, 0)) << "another topic of that name";
  client.delete_topic("orders").value_or_throw();
  EXPECT_EQ(ErrorCode::unauthorized_access, reader.read({{0}, {1}}, ignore, 10s).error().code)
      << "who may not know which topics there are";
  EXPECT_FALSE(client.reader("orders"));
}

TEST_F(ReaderTest, TimesOut) {
  fill(BrokerType::file);
  auto reader = broker.client().reader("orders").value_or_throw();
  broker.stop();
  const auto given_up = reader.read({{0}, {10}}, [](const Delivered&) {}, 100ms);
  EXPECT_EQ(ErrorCode::timeout, given_up.error().code);
  broker.start();
  EXPECT_EQ(numbers(0, 10), read(reader, 0, 10).first);
}

TEST_F(ReaderTest, RefusesOptionsOutOfTheirRanges) {
  broker.client().create_topic("orders", {}).value_or_throw();
  EXPECT_EQ(ErrorCode::invalid_argument,
            broker.client().reader("orders", {.frame_bytes_max = 1000}).error().code);
  EXPECT_EQ(ErrorCode::invalid_argument, broker.client().reader("orders", {.heartbeat = 1ms}).error().code);
}

}  // namespace
}  // namespace lightq::testing
