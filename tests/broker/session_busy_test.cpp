/// Tests of consumers with slow programs against a broker in this process: the broker never takes a working
/// consumer for a dead one.
#include <lightq/client.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "broker/each_way.hpp"
#include "broker/embedded_broker.hpp"

namespace lightq::testing {
namespace {

using namespace std::chrono_literals;

/// Consumers that work on a message for long. The times of the program and of the broker are shortened alike.
class SessionBusy : public ::testing::Test {
 protected:
  void produce(int count) {
    client.create_topic("work", {.broker_type = BrokerType::queue}).value_or_throw();
    auto producer = client.producer("work").value_or_throw();
    for (int i = 0; i < count; ++i) producer.send(std::to_string(i)).value_or_throw();
    producer.close(20s).value_or_throw();
  }
  Consumer member(Timeout ack_timeout, std::uint32_t prefetch = 10'000) {
    ConsumerOptions options;
    options.ack_timeout = ack_timeout;
    options.prefetch_messages = prefetch;
    Consumer consumer = client.consumer("work", std::move(options)).value_or_throw();
    consumer.wait_open(10s).value_or_throw();
    return consumer;
  }
  [[nodiscard]] GroupStats group() {
    const TopicStats stats = client.stats("work").value_or_throw();
    return stats.groups.empty() ? GroupStats{} : stats.groups.front();
  }

  EmbeddedBroker broker{"tcp://127.0.0.1:0", [](auto& config) { config.session_heartbeat = 300ms; }};
  Client client = broker.client();
};

/// Blocks for `time`: the test needs time to pass.
void work_on_it(std::chrono::milliseconds time) {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, time, [] { return false; });
}

/// Two members of a group, each in its own thread.
struct Members {
  std::mutex mutex;
  std::map<std::uint64_t, int> handled;  // acknowledgements that counted, by offset

  void run(Consumer& consumer, std::chrono::milliseconds work) {
    while (auto message = consumer.receive(1500ms).value_or_throw()) {
      work_on_it(work);
      const std::uint64_t mine = consumer.acknowledge(*message);
      const std::scoped_lock lock(mutex);
      handled[message->offset.value] += static_cast<int>(mine);
    }
    EXPECT_TRUE(consumer.close(10s).ok());
  }
};

TEST_F(SessionBusy, PrefetchDoesNotTakeWorkAwayFromASlowHandler) {
  constexpr int count = 5000;
  produce(count);
  // Each member receives 2,500 messages at once and works on them three times as long as its ack timeout.
  Consumer first = member(2s), second = member(2s);
  Members members;
  {
    std::jthread one([&] { members.run(first, 2ms); });
    std::jthread other([&] { members.run(second, 2ms); });
  }
  EXPECT_EQ(members.handled.size(), static_cast<std::size_t>(count));
  EXPECT_TRUE(std::ranges::all_of(members.handled, [](const auto& one) { return one.second == 1; }));
  EXPECT_EQ(group().redelivered, 0U);
  EXPECT_EQ(first.stats().again + second.stats().again, 0U);
}

TEST_F(SessionBusy, AHandlerThatCallsNothingForLongKeepsItsMessagesAndItsSession) {
  produce(3);
  Consumer busy = member(10s);
  Delivered message = busy.receive(10s).value_or_throw().value_or(Delivered{});
  Consumer other = member(10s);
  for (std::uint64_t number = 0;; ++number) {
    EXPECT_EQ(message.offset, Offset{number});
    EXPECT_EQ(message.delivery, 1U);
    const auto until = std::chrono::steady_clock::now() + 1500ms;  // more than twice the heartbeat
    while (std::chrono::steady_clock::now() < until)
      EXPECT_FALSE(other.receive(100ms).value_or_throw().has_value());
    EXPECT_EQ(busy.acknowledge(message), 1U);
    if (number == 2) break;
    message = busy.receive(10s).value_or_throw().value_or(Delivered{});
  }
  EXPECT_EQ(busy.stats().opens, 1U);
  EXPECT_TRUE(busy.close(10s).ok());
  EXPECT_EQ(group().redelivered, 0U);
  EXPECT_EQ(group().committed_offset, 3U);
}

TEST_F(SessionBusy, ASilentConsumerWithoutMessagesEnds) {
  produce(0);
  Consumer idle = member(10s);
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (group().consumers > 0 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(group().consumers, 0U);
}

TEST_F(SessionBusy, AConsumerThatTimesOutEndsAndItsMessagesGoToOthers) {
  produce(2);
  Consumer hung = member(1500ms);
  const Delivered lost = hung.receive(10s).value_or_throw().value_or(Delivered{});
  Consumer other = member(10s);
  const Delivered again = other.receive(10s).value_or_throw().value_or(Delivered{});
  EXPECT_EQ(again.offset, lost.offset);
  EXPECT_EQ(again.delivery, 2U);
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (group().consumers > 1 && std::chrono::steady_clock::now() < deadline) EXPECT_TRUE(other.poll().ok());
  EXPECT_EQ(group().consumers, 1U);
  EXPECT_EQ(hung.acknowledge(lost.offset), 0U) << "it is told that the message is not its own";
}

TEST_F(SessionBusy, ALateAcknowledgementIsReported) {
  produce(1);
  Consumer slow = member(700ms, 1);
  const Offset lost = slow.receive(10s).value_or_throw().value_or(Delivered{}).offset;
  Consumer other = member(10s);
  std::optional<Delivered> again;
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (!again && std::chrono::steady_clock::now() < deadline) {
    EXPECT_TRUE(slow.poll().ok());  // the consumer is alive, but its ack timeout has passed
    again = other.receive(50ms).value_or_throw();
  }
  ASSERT_TRUE(again);
  EXPECT_EQ(again->offset, lost);
  slow.acknowledge(lost);
  const Result<void> closed = slow.close(10s);
  ASSERT_FALSE(closed.ok());
  EXPECT_EQ(closed.error().code, ErrorCode::timeout);
  EXPECT_NE(closed.error().message.find("1 messages were acknowledged after their timeout of 700 ms"),
            std::string::npos)
      << closed.error().message;
  EXPECT_EQ(slow.take_late(), std::vector<OffsetRange>({{lost, lost + 1}}));
}

}  // namespace
}  // namespace lightq::testing
