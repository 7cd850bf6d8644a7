/// Tests of the client library's producer on sessions against a broker in this process.
#include <lightq/client.hpp>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <memory>
#include <span>
#include <stdexcept>
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

class SessionTest : public ::testing::Test {
 protected:
  [[nodiscard]] Client client() const { return broker.client(); }
  static std::string numbered(int number, std::size_t bytes) {
    std::string message = std::to_string(number) + " ";
    message.resize(std::max(message.size(), bytes), 'x');
    return message;
  }
  static void expect_numbered(PlainConsumer& consumer, int messages, std::size_t bytes) {
    for (int i = 0; i < messages; ++i) {
      const auto message = consumer.receive(10s).value_or_throw();
      ASSERT_TRUE(message) << i;
      ASSERT_EQ(numbered(i, bytes), as_text(message->payload())) << i;
    }
  }

  EmbeddedBroker broker;
};

class EachWay : public SessionTest, public ::testing::WithParamInterface<Way> {};

TEST_P(EachWay, ConfirmsEverythingAndAConsumerGetsItInOrder) {
  const auto [type, transport, connection] = GetParam();
  constexpr int messages = 20'000;
  auto client = this->client();
  client.create_topic("orders", {.broker_type = type}).value_or_throw();
  auto producer = client.producer("orders", {.connection = connection}, transport).value_or_throw();
  for (int i = 0; i < messages; ++i) producer.send(numbered(i, 100)).value_or_throw();
  producer.flush(20s).value_or_throw();
  EXPECT_EQ(static_cast<std::uint64_t>(messages), producer.confirmed());
  EXPECT_EQ(1U, client.stats("orders").value_or_throw().publishers_count);
  producer.close(5s).value_or_throw();
  auto consumer = client.plain_consumer("orders").value_or_throw();
  expect_numbered(consumer, messages, 100);
  EXPECT_EQ(static_cast<std::uint64_t>(messages), client.stats("orders").value_or_throw().messages_received);
}

INSTANTIATE_TEST_SUITE_P(Topics, EachWay, each_way(), way_name);

class SessionOverEach : public SessionTest, public ::testing::WithParamInterface<ConnectionType> {
 protected:
  static ProducerOptions options() { return {.connection = GetParam()}; }
};

INSTANTIATE_TEST_SUITE_P(Connections, SessionOverEach, each_connection(), connection_name);

TEST_P(SessionOverEach, SendsMessagesLargerThanAnyBuffer) {
  constexpr int messages = 12;
  constexpr std::size_t bytes = 3'000'000;
  auto client = this->client();
  client.create_topic("orders", {.broker_type = BrokerType::file}).value_or_throw();
  auto producer = client.producer("orders", options()).value_or_throw();
  for (int i = 0; i < messages; ++i) producer.send(numbered(i, bytes)).value_or_throw();
  producer.close(20s).value_or_throw();
  auto consumer = client.plain_consumer("orders").value_or_throw();
  expect_numbered(consumer, messages, bytes);
}

TEST_P(SessionOverEach, ReconnectsByItselfWhenTheBrokerIsBack) {
  auto client = this->client();
  client.create_topic("orders", {.broker_type = BrokerType::file}).value_or_throw();
  auto producer = client.producer("orders", options()).value_or_throw();
  int sent = 0;
  const auto send_some = [&] {
    for (int i = 0; i < 500; ++i) producer.send(numbered(sent++, 50)).value_or_throw();
  };
  send_some();
  producer.flush(20s).value_or_throw();
  send_some();
  broker.stop();
  send_some();
  broker.start();
  send_some();
  producer.close(20s).value_or_throw();
  auto consumer = this->client().plain_consumer("orders").value_or_throw();
  expect_numbered(consumer, sent, 50);
  EXPECT_FALSE(consumer.receive(0ms).value_or_throw()) << "nothing came twice";
}

/// Waits as an event loop does, until the next timer and for at most 10 s. Returns true if an event came or a
/// timer is already due.
bool wait_for_either(const Producer& producer, const Consumer& consumer) {
  const auto events = [](bool writes) { return static_cast<short>(writes ? POLLIN | POLLOUT : POLLIN); };
  std::array<pollfd, 2> entries{{{producer.fd(), events(producer.wants_write()), 0},
                                 {consumer.fd(), events(consumer.wants_write()), 0}}};
  const SessionTime until = std::min(producer.next_timer(), consumer.next_timer());
  constexpr auto longest = 10s;
  const auto now = std::chrono::steady_clock::now();
  const auto wait =
      until <= now ? 0ms : std::chrono::ceil<Timeout>(std::min<SessionTime::duration>(until - now, longest));
  return ::poll(entries.data(), entries.size(), static_cast<int>(wait.count())) > 0 || wait == 0ms;
}

TEST_P(SessionOverEach, AnEventLoopNeedsOnlyTheirDescriptorsAndTimers) {
  constexpr int messages = 30'000;
  constexpr int each_rejected = 1'000;
  EmbeddedBroker quiet("tcp://127.0.0.1:0", [](auto& config) { config.session_heartbeat = 0ms; });
  auto client = quiet.client();
  client.create_topic("orders").value_or_throw();
  ProducerOptions sending{.batch_bytes = 4096, .window_bytes = 64 * limits::KiB, .send_timeout = 0ms};
  sending.memory_bytes_max = 128 * limits::KiB;
  sending.connection = GetParam();
  sending.heartbeat = 0ms;
  auto producer = client.producer("orders", sending).value_or_throw();
  ConsumerOptions receiving{.prefetch_messages = 200, .heartbeat = 0ms};
  receiving.connection = GetParam();
  auto consumer = client.consumer("orders", receiving).value_or_throw();
  int sent = 0;
  int received = 0;
  int again = 0;
  while (again < messages / each_rejected || producer.unconfirmed() > 0) {
    while (sent < messages && producer.send(numbered(sent, 300)).ok()) ++sent;
    producer.poll(0ms).value_or_throw();
    std::vector<Offset> rejected;
    while (const auto message = consumer.receive(0ms).value_or_throw()) {
      if (message->is_again()) {
        ++again;
      } else {
        ASSERT_EQ(numbered(received++, 300), message->text());
      }
      if (!message->is_again() && received % each_rejected == 0) {
        rejected.push_back(message->offset);
      } else {
        consumer.acknowledge(*message);
      }
    }
    // No later call sends the rejections: the library must do so itself.
    for (const Offset offset : rejected) consumer.reject(offset);
    if (sent < messages && producer.unconfirmed() == 0) continue;
    if (again == messages / each_rejected && producer.unconfirmed() == 0) break;
    ASSERT_TRUE(wait_for_either(producer, consumer))
        << sent << " sent, " << received << " received, " << again << " again";
  }
}

TEST_P(SessionOverEach, ReportsAFailedJoinImmediately) {
  auto client = this->client();
  client.create_topic("orders").value_or_throw();
  const auto missing = client.producer("others", options());
  ASSERT_FALSE(missing);
  EXPECT_EQ(ErrorCode::topic_not_found, missing.error().code) << missing.error().text();
  const auto unflushable =
      client.producer("orders", {.level = ConfirmLevel::flushed, .connection = GetParam()});
  ASSERT_FALSE(unflushable);
  EXPECT_EQ(ErrorCode::not_supported, unflushable.error().code) << unflushable.error().text();
}

TEST_P(SessionOverEach, ReportsADeletedTopicToAProducer) {
  auto client = this->client();
  client.create_topic("orders").value_or_throw();
  auto producer = client.producer("orders", options()).value_or_throw();
  producer.send("one").value_or_throw();
  producer.flush(5s).value_or_throw();
  client.delete_topic("orders").value_or_throw();
  const auto sent = producer.send("two");
  const auto flushed = producer.flush(5s);
  EXPECT_FALSE(sent.ok() && flushed.ok());
}

TEST_P(SessionOverEach, ContinuesAfterACallbackHasThrown) {
  auto client = this->client();
  client.create_topic("orders").value_or_throw();
  auto producer = client.producer("orders", options()).value_or_throw();
  int told = 0;
  producer.on_report([&](const SendReport& report) {
    told += static_cast<int>(report.end - report.begin);
    if (report.begin == 0) throw std::runtime_error("the program's own");
  });
  producer.send("one").value_or_throw();
  EXPECT_THROW((void)producer.flush(5s), std::runtime_error);
  EXPECT_TRUE(producer.send("two"));
  EXPECT_TRUE(producer.send("three"));
  EXPECT_TRUE(producer.flush(5s).ok());
  EXPECT_EQ(told, 3);
  EXPECT_EQ(producer.confirmed(), 3U);
  EXPECT_TRUE(producer.close(5s).ok());
}

// Not with the thread sanitizer, which does not support a forked child of a process with threads.
#ifndef __SANITIZE_THREAD__
TEST_P(SessionOverEach, AForkedChildUsesNothingThatItsParentOpened) {
  auto client = this->client();
  client.create_topic("orders").value_or_throw();
  auto producer = client.producer("orders", options()).value_or_throw();
  auto consumer = client.consumer("orders", {.connection = GetParam()}).value_or_throw();
  producer.send("before").value_or_throw();
  producer.send("received by the parent").value_or_throw();
  producer.flush(5s).value_or_throw();
  const Delivered before = *consumer.receive(5s).value_or_throw();
  ASSERT_EQ(before.text(), "before");
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(30);
    const auto is_refused = [](const auto& result) {
      return !result && result.error().code == ErrorCode::closed;
    };
    const bool refusals[] = {is_refused(producer.send("the child's")),
                             is_refused(producer.send("the child's", {.key = "key"})),
                             is_refused(producer.send_in_place(9, [](std::span<std::byte>) {})),
                             is_refused(producer.flush(5s)),
                             consumer.acknowledge(before) == 0,
                             is_refused(consumer.receive(1s)),
                             is_refused(consumer.receive_batch(1s)),
                             is_refused(client.ping())};
    int accepted = 0;  // the number of the first call that was not refused, from 1
    for (int i = 0; i < static_cast<int>(std::size(refusals)); ++i) {
      if (!refusals[i] && accepted == 0) accepted = i + 1;
    }
    {  // destroys all handles; the child must send nothing and wait for nothing
      const auto ended_producer = std::move(producer);
      const auto ended_consumer = std::move(consumer);
      const auto ended_client = std::move(client);
    }
    _exit(accepted);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  producer.send("after").value_or_throw();
  EXPECT_TRUE(producer.flush(5s).ok());
  EXPECT_EQ(consumer.receive(5s).value_or_throw()->text(), "received by the parent");
  EXPECT_EQ(consumer.receive(5s).value_or_throw()->text(), "after") << "and nothing of the child's";
  EXPECT_EQ(consumer.stats().opens, 1U);
  EXPECT_EQ(client.stats("orders").value_or_throw().messages_received, 3U);
}
#endif

}  // namespace
}  // namespace lightq::testing
