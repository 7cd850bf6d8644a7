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

TEST_F(SessionBusy, AHandlerThatCallsNothingForLongKeepsWhatItHasStartedAndItsSession) {
  produce(3);
  Consumer busy = member(0s);
  const Delivered message = busy.receive(10s).value_or_throw().value_or(Delivered{});
  EXPECT_EQ(message.offset, Offset{0});
  Consumer other = member(0s);
  // After twice the heartbeat, the messages that only wait in `busy` go to the other member.
  for (std::uint64_t number = 1; number < 3; ++number) {
    const Delivered free = other.receive(10s).value_or_throw().value_or(Delivered{});
    EXPECT_EQ(free.offset, Offset{number});
    EXPECT_EQ(free.delivery, 1U) << "it was not started";
    EXPECT_EQ(other.acknowledge(free), 1U);
  }
  const auto until = std::chrono::steady_clock::now() + 1500ms;  // more than twice the heartbeat
  while (std::chrono::steady_clock::now() < until)
    EXPECT_FALSE(other.receive(100ms).value_or_throw().has_value());
  EXPECT_EQ(busy.acknowledge(message), 1U);
  EXPECT_FALSE(busy.receive(100ms).value_or_throw().has_value()) << "the others are revoked";
  EXPECT_EQ(busy.stats().revoked, 2U);
  EXPECT_EQ(busy.stats().opens, 1U);
  EXPECT_TRUE(busy.close(10s).ok());
  EXPECT_EQ(group().redelivered, 0U);
  EXPECT_TRUE(other.close(10s).ok());
  EXPECT_EQ(group().committed_offset, 3U);
}

TEST_F(SessionBusy, ASilentConsumerKeepsEverythingWhileNobodyElseWantsIt) {
  produce(3);
  Consumer busy = member(0s);
  for (std::uint64_t number = 0; number < 3; ++number) {
    const Delivered message = busy.receive(10s).value_or_throw().value_or(Delivered{});
    EXPECT_EQ(message.offset, Offset{number});
    EXPECT_EQ(message.delivery, 1U);
    work_on_it(900ms);
    EXPECT_EQ(busy.acknowledge(message), 1U);
  }
  EXPECT_EQ(busy.stats().revoked, 0U);
  EXPECT_EQ(busy.stats().opens, 1U);
  EXPECT_TRUE(busy.close(10s).ok());
}

TEST_F(SessionBusy, WithoutHeartbeatsThereAreNoLeases) {
  EmbeddedBroker quiet("tcp://127.0.0.1:0", [](auto& config) { config.session_heartbeat = 0ms; });
  Client of_quiet = quiet.client();
  of_quiet.create_topic("work").value_or_throw();
  Consumer without = of_quiet.consumer("work").value_or_throw();
  without.wait_open(10s).value_or_throw();
  EXPECT_FALSE(without.opened()->leases);
  EXPECT_EQ(without.opened()->ack_timeout_ms, 30'000U);
  produce(1);
  EXPECT_TRUE(member(0ms).opened()->leases);
}

TEST_F(SessionBusy, ASilentConsumerWithoutMessagesEnds) {
  produce(0);
  Consumer idle = member(10s);
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (group().consumers > 0 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(group().consumers, 0U);
}

TEST_F(SessionBusy, AConsumerThatTimesOutLosesItsMessagesAndReceivesOthersLater) {
  produce(2);
  Consumer hung = member(1500ms);
  const Delivered lost = hung.receive(10s).value_or_throw().value_or(Delivered{});
  EXPECT_EQ(lost.offset, Offset{0});
  {
    Consumer other = member(10s);
    const Delivered free = other.receive(10s).value_or_throw().value_or(Delivered{});
    EXPECT_EQ(free.offset, Offset{1});
    EXPECT_EQ(free.delivery, 1U);
    other.acknowledge(free);
    const Delivered again = other.receive(10s).value_or_throw().value_or(Delivered{});
    EXPECT_EQ(again.offset, Offset{0});
    EXPECT_EQ(again.delivery, 2U);
    other.acknowledge(again);
    EXPECT_EQ(group().consumers, 2U) << "its session lasts";
    EXPECT_TRUE(other.close(10s).ok());
  }
  EXPECT_EQ(hung.acknowledge(lost), 0U) << "it is told that the message is not its own";
  EXPECT_TRUE(lost.revoked());
  EXPECT_EQ(hung.stats().late, 1U);
  auto producer = client.producer("work").value_or_throw();
  producer.send("2").value_or_throw();
  producer.close(20s).value_or_throw();
  EXPECT_EQ(hung.receive(10s).value_or_throw().value_or(Delivered{}).offset, Offset{2});
  EXPECT_EQ(hung.stats().opens, 1U);
}

TEST_F(SessionBusy, ASeekAndAPurgeTellTheOtherMembers) {
  produce(2);
  Consumer working = member(0s, 1), seeking = member(0s, 1);
  const Delivered mine = working.receive(10s).value_or_throw().value_or(Delivered{});
  const std::stop_token token = working.stop_token(mine);
  EXPECT_FALSE(mine.revoked());
  EXPECT_EQ(seeking.seek(From::first(), 10s).value_or_throw(), Offset{0});
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (!mine.revoked() && std::chrono::steady_clock::now() < deadline) EXPECT_TRUE(working.poll().ok());
  EXPECT_TRUE(mine.revoked());
  EXPECT_TRUE(token.stop_requested());
  EXPECT_EQ(working.acknowledge(mine), 0U);
  EXPECT_EQ(working.stats().late, 1U);
  EXPECT_EQ(working.stats().revoked, 1U);

  const Delivered again = working.receive(10s).value_or_throw().value_or(Delivered{});
  const std::stop_token of_again = working.stop_token(again);
  EXPECT_EQ(again.delivery, 1U) << "a seek begins the count anew";
  EXPECT_FALSE(again.revoked());
  client.purge("work").value_or_throw();
  while (!again.revoked() && std::chrono::steady_clock::now() < deadline) EXPECT_TRUE(working.poll().ok());
  EXPECT_TRUE(again.revoked());
  EXPECT_TRUE(of_again.stop_requested());
  EXPECT_EQ(working.stats().revoked, 2U);
}

TEST_F(SessionBusy, ACloseAfterAPurgeOfWaitingMessagesSucceeds) {
  produce(20);
  ConsumerOptions options;
  options.clock = [now = std::chrono::steady_clock::now()] { return now; };  // the program takes no time
  Consumer consumer = client.consumer("work", std::move(options)).value_or_throw();
  consumer.wait_open(10s).value_or_throw();
  for (std::uint64_t number = 0; number < 4; ++number)
    EXPECT_EQ(consumer.receive(10s).value_or_throw().value_or(Delivered{}).offset, Offset{number});
  client.purge("work").value_or_throw();
  const Result<void> closed = consumer.close(10s);  // releases 4 to 6, which were named and are revoked
  EXPECT_TRUE(closed.ok()) << closed.error().message;
  EXPECT_EQ(consumer.stats().late, 0U);
}

TEST_F(SessionBusy, OnlyStartedMessagesOfAConsumerThatEndsAreCounted) {
  produce(20);
  {
    Consumer ends = member(0s);
    EXPECT_EQ(ends.receive(10s).value_or_throw().value_or(Delivered{}).offset, Offset{0});
    EXPECT_TRUE(ends.close(10s).ok());
  }
  Consumer next = member(0s);
  for (std::uint64_t number = 0; number < 20; ++number) {
    const Delivered message = next.receive(10s).value_or_throw().value_or(Delivered{});
    EXPECT_EQ(message.offset, Offset{number}) << "in order";
    EXPECT_EQ(message.delivery, number == 0 ? 2U : 1U);
    next.acknowledge(message);
  }
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
  EXPECT_NE(closed.error().message.find("1 messages were acknowledged, rejected or extended too late: the "
                                        "broker had taken them back (see take_late)"),
            std::string::npos)
      << closed.error().message;
  EXPECT_EQ(slow.take_late(), std::vector<OffsetRange>({{lost, lost + 1}}));
}

}  // namespace
}  // namespace lightq::testing
