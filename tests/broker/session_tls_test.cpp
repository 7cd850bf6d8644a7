/// Tests of the client library's sessions over TLS against a broker in this process.
#include <lightq/client.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "broker/embedded_broker.hpp"

namespace lightq::testing {
namespace {

using namespace std::chrono_literals;

class SessionTlsTest : public ::testing::Test {
 protected:
  EmbeddedBroker broker{"tcp://127.0.0.1:0", [](broker::Config& config) { config.encrypt = true; }};
  Client client = broker.client();
};

std::string numbered(int number, std::size_t bytes) {
  std::string message = std::to_string(number) + " ";
  message.resize(std::max(message.size(), bytes), static_cast<char>('a' + number % 26));
  return message;
}

TEST_F(SessionTlsTest, MessagesOfEverySizePassBothWays) {
  client.create_topic("orders", {.broker_type = BrokerType::file}).value_or_throw();
  const std::size_t sizes[] = {0, 1, 100, 16'000, 16'384, 17'000, 70'000, 1'000'000, 5'000'000, 16'000'000};
  auto producer = client.producer("orders").value_or_throw();
  int sent = 0;
  for (int round = 0; round < 2; ++round) {
    for (const std::size_t size : sizes) producer.send(numbered(sent++, size)).value_or_throw();
    for (int i = 0; i < 3'000; ++i) producer.send(numbered(sent++, 150)).value_or_throw();
  }
  producer.close(60s).value_or_throw();
  auto consumer = client.consumer("orders").value_or_throw();
  for (int i = 0; i < sent; ++i) {
    const auto message = consumer.receive(60s).value_or_throw();
    ASSERT_TRUE(message.has_value()) << i;
    const int in_round = i % (sent / 2);
    const std::size_t size = in_round < 10 ? sizes[in_round] : 150;
    ASSERT_TRUE(message->text() == numbered(i, size)) << i;
    consumer.acknowledge(*message);
  }
  consumer.close(10s).value_or_throw();
}

/// The broker has a new certificate after a restart. A client that knows the old one asks for the new one and
/// continues.
TEST_F(SessionTlsTest, ContinuesWithANewCertificate) {
  client.create_topic("orders", {.broker_type = BrokerType::file}).value_or_throw();
  auto producer = client.producer("orders").value_or_throw();
  auto consumer = client.consumer("orders").value_or_throw();
  for (int life = 0; life < 3; ++life) {
    const std::string text = numbered(life, 1000);
    producer.send(text).value_or_throw();
    producer.flush(30s).value_or_throw();
    const auto message = consumer.receive(30s).value_or_throw();
    ASSERT_TRUE(message.has_value());
    EXPECT_EQ(message->text(), text);
    consumer.acknowledge(*message);
    consumer.flush(30s).value_or_throw();
    const auto all_done = [&] {
      const auto stats = client.stats("orders").value_or_throw();
      return !stats.groups.empty() && stats.groups[0].unacknowledged == 0;
    };
    while (!all_done()) {
    }
    broker.stop();
    ASSERT_TRUE(std::filesystem::remove(broker.data_dir() / (life == 0 ? "tls.crt" : "tls.key")));
    broker.start();
  }
}

}  // namespace
}  // namespace lightq::testing
