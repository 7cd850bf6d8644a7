/// A durable topic that carries waiting messages over when retention drops the others, for tests.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "delivery/consumer_group_harness.hpp"
#include "endpoint/topic_runtime_harness.hpp"

namespace lightq::broker {

using protocol::BrokerType;
using test::FakeConsumer;

inline constexpr const char* group_that_waits = "workers";
inline constexpr std::uint64_t retained_bytes = 512 * limits::KiB;
inline constexpr std::size_t payload_bytes = 1000;

inline protocol::TopicSettings settings_with_retention(BrokerType type, bool over_pending = false) {
  return {.broker_type = type,
          .ring_bytes = 256 * limits::KiB,
          .retention_bytes = retained_bytes,
          .segment_bytes = limits::segment_bytes_min,
          .retention_over_pending = over_pending};
}

class DurableCarryOver : public TopicRuntimeTest {
 protected:
  explicit DurableCarryOver(const protocol::TopicSettings& settings) : TopicRuntimeTest(settings) {}
  ~DurableCarryOver() override {
    if (topic != nullptr) leave();
  }

  static std::string payload_of(std::uint64_t number) {
    std::string payload = "message " + std::to_string(number) + " ";
    payload.resize(payload_bytes, 'm');
    return payload;
  }
  void join() {
    consumer = std::make_unique<FakeConsumer>();
    ASSERT_EQ(topic->open_consumer(test::asked(group_that_waits), *consumer).code, ClientError::none);
    ASSERT_TRUE(run_until([&] { return consumer->opened_at.has_value(); }));
  }
  void leave() {
    if (consumer != nullptr) topic->detach_consumer(*consumer);
    consumer.reset();
  }
  /// Publishes messages, each in a batch of its own.
  void send_some(std::uint64_t count, const Attributes& attributes = {}) {
    for (; count > 0; --count) {
      BatchBuilder batch;
      batch.add(as_byte_view(payload_of(published)), attributes);
      topic->publishing().publish(batch);
      ++published;
    }
    topic->dispatch().published();
  }
  /// Waits until the consumer has all messages that were published. One dispatch delivers a limited number.
  void wait_until_delivered() {
    ASSERT_TRUE(settles([this](const auto& stats) {
      const auto& group = stats.groups.at(0);
      return group.next_offset >= published && group.ready == 0;
    }));
  }
  /// Rejects a message, which dies. Requires: the consumer has it.
  void kill(std::uint64_t message) {
    const std::uint64_t died = topic->stats().groups.at(0).dead;
    reject(*topic, *consumer, {.ranges = {{{message}, {message + 1}}}, .kind = RejectKind::dead},
           EventLoop::Clock::now());
    EXPECT_EQ(topic->stats().groups.at(0).dead, died + 1) << message;
  }
  void delay(std::uint64_t message) {
    reject(*topic, *consumer,
           {.delay_ms = limits::redelivery_ms_max_default, .ranges = {{{message}, {message + 1}}}},
           EventLoop::Clock::now());
  }
  void acknowledge_all() {
    consumer->frames.clear();
    broker::acknowledge(*topic, *consumer, {Offset{published}, {}});
  }
  /// Publishes and finishes messages.
  void stream(std::uint64_t messages) {
    for (; messages > 0; messages -= std::min<std::uint64_t>(messages, 50)) {
      send_some(std::min<std::uint64_t>(messages, 50));
      acknowledge_all();
      turn(std::chrono::microseconds(0));
    }
  }
  /// Lets the topic work until its statistics pass.
  testing::AssertionResult settles(const std::function<bool(const protocol::TopicStats&)>& passes) {
    const bool passed = run_until([&] {
      topic->dispatch().published();
      return passes(topic->stats());
    });
    const auto stats = topic->stats();
    if (passed) return testing::AssertionSuccess();
    return testing::AssertionFailure()
           << "carried " << stats.carried_messages << ", first_offset " << stats.first_offset << ", parked "
           << stats.groups.at(0).parked << ", retrying " << stats.groups.at(0).retrying << ", lost "
           << stats.groups.at(0).lost;
  }
  /// Returns the dead messages of the group.
  std::set<std::uint64_t> dead() {
    std::set<std::uint64_t> found;
    for (Offset from{0};;) {
      const auto listed = topic->commands().list_dead(group_that_waits, {}, from, 100).value_or_throw();
      for (const DeadMessage& message : listed.messages) found.insert(message.offset.value);
      if (!listed.next) return found;
      from = *listed.next;
    }
  }
  /// Makes all dead messages ready, and returns the payloads that arrive.
  std::map<std::uint64_t, std::string> revive() {
    for (std::optional<Offset> from = Offset{0}; from;)
      from =
          topic->commands().act_on_dead(group_that_waits, DeadAction::retry, {}, *from).value_or_throw().next;
    join();
    std::map<std::uint64_t, std::string> found;
    EXPECT_TRUE(settles([](const auto& stats) { return stats.groups.at(0).ready == 0; }));
    for (const auto& frame : consumer->frames) {
      for (std::size_t i = 0; i < frame.payloads.size(); ++i)
        found[frame.range.begin.value + i] = frame.payloads[i];
    }
    return found;
  }
  void wait_until_saved() {
    bool saved = false;
    topic->commands().answer_when_saved(0, [&](const Result<std::uint64_t>&) { saved = true; });
    ASSERT_TRUE(run_until([&] { return saved; }));
  }
  std::vector<std::string> carried_files() {
    auto paths = storage.paths();
    std::erase_if(paths, [](const auto& path) { return !path.starts_with("/topics/1/carried/"); });
    return paths;
  }
  std::size_t log_files() { return segments().size() - carried_files().size(); }
  void start_again(bool cleanly) {
    leave();
    restart(cleanly);
  }

  std::unique_ptr<FakeConsumer> consumer;
  std::uint64_t published = 0;
};

}  // namespace lightq::broker
