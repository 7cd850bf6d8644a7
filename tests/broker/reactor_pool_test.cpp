/// Tests of broker/reactor_pool: how many messages the control thread sends to the reactors.
#include "broker/reactor_pool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "control/loop_thread.hpp"
#include "support/faulty_storage.hpp"

namespace lightq::broker {
namespace {

using testing::Each;

class QuietSink final : public LogSink {
 public:
  void write(LogLevel, std::string_view) override {}
};

constexpr std::size_t reactors = 3;

ReactorPool::Settings settings() {
  ReactorPool::Settings settings;
  settings.reactors = reactors;
  settings.bind_host = "127.0.0.1";
  return settings;
}

/// A pool of three reactors with topics in memory.
class ReactorPoolTest : public testing::Test {
 protected:
  ReactorPoolTest() { pool.start(); }
  ~ReactorPoolTest() override {
    std::jthread stopping([this] {
      pool.stop(std::chrono::steady_clock::now());
      stopped = true;
    });
    test::run_until(control, [this] { return stopped.load(); });
  }
  template <typename Value, typename Call>
  Result<Value> result_of(Call call) {
    std::optional<Result<Value>> result;
    call(Done<Value>([&](Result<Value> got) { result.emplace(std::move(got)); }));
    test::run_until(control, [&] { return result.has_value(); });
    if (!result) return Error{ErrorCode::internal, "no result"};
    return *result;
  }
  void add_topic(std::uint64_t id) {
    TopicDefinition definition{{id}, *TopicName::parse("t" + std::to_string(id)), {}};
    definition.settings.ring_bytes = limits::ring_bytes_min;
    ASSERT_TRUE(result_of<void>([&](const Done<void>& done) { pool.add_topic(definition, {}, done); }));
  }
  /// Returns how many messages each reactor has received.
  [[nodiscard]] std::vector<std::uint64_t> messages_so_far() const {
    std::vector<std::uint64_t> messages;
    for (ReactorContext* const context : pool.contexts()) messages.push_back(context->loop.posted());
    return messages;
  }
  /// Returns how many messages each reactor receives from the control thread during a call.
  template <typename Value, typename Call>
  std::vector<std::uint64_t> messages_of(Call call) {
    const auto before = messages_so_far();
    EXPECT_TRUE(result_of<Value>(call));
    auto messages = messages_so_far();
    for (std::size_t i = 0; i < messages.size(); ++i) messages[i] -= before[i];
    return messages;
  }

  EventLoop control;
  QuietSink sink;
  lightq::test::FaultyStorage storage;
  log::SegmentPool segments{log::SegmentPoolOptions{"/pool"}, storage};
  TopicOpener opener{storage, segments};
  TicketKey tickets{TicketKey::random_bytes()};
  std::atomic<bool> stopped = false;
  ReactorPool pool{settings(), opener, tickets, control, sink};
};

TEST_F(ReactorPoolTest, StatisticsOfAllTopicsCostOneMessageForEachReactor) {
  TopicsAsked asked;
  for (std::uint64_t id = 1; id <= 60; ++id) {
    add_topic(id);
    asked.topics.push_back({id});
  }
  asked.topics.push_back({1'000});  // does not exist
  std::optional<TopicsStats> answer;
  const auto messages = messages_of<TopicsStats>([&](const Done<TopicsStats>& done) {
    pool.stats_of(asked, [&answer, done](Result<TopicsStats> counted) {
      answer = *counted;
      done(std::move(counted));
    });
  });
  EXPECT_EQ(messages.size(), reactors);
  EXPECT_THAT(messages, Each(1));
  ASSERT_EQ(answer->topics.size(), 61U);
  for (std::size_t i = 0; i < 60; ++i) EXPECT_EQ(answer->topics[i]->topic, "t" + std::to_string(i + 1));
  EXPECT_FALSE(answer->topics[60].has_value());
}

TEST_F(ReactorPoolTest, AQuestionGoesOnlyToTheReactorsOfItsTopics) {
  for (std::uint64_t id = 1; id <= 6; ++id) add_topic(id);
  const auto messages =
      messages_of<TopicsStats>([&](const Done<TopicsStats>& done) { pool.stats_of({{{1}, {4}}}, done); });
  EXPECT_THAT(messages, testing::UnorderedElementsAre(0, 0, 1)) << "both topics are of one reactor";
  const auto none = messages_of<TopicsStats>([&](const Done<TopicsStats>& done) { pool.stats_of({}, done); });
  EXPECT_THAT(none, Each(0));
}

TEST_F(ReactorPoolTest, TheBrokersSumsCostOneMessageForEachReactor) {
  for (std::uint64_t id = 1; id <= 20; ++id) add_topic(id);
  std::optional<protocol::BrokerStats> sums;
  const auto messages = messages_of<protocol::BrokerStats>([&](const Done<protocol::BrokerStats>& done) {
    pool.broker_stats([&sums, done](Result<protocol::BrokerStats> stats) {
      sums = *stats;
      done(std::move(stats));
    });
  });
  EXPECT_THAT(messages, Each(1));
  EXPECT_EQ(sums->topics, 20U);
}

TEST_F(ReactorPoolTest, AStopAnswersEveryQuestionOnce) {
  TopicsAsked asked;
  for (std::uint64_t id = 1; id <= 300; ++id) {
    if (id <= 30) add_topic(id);
    asked.topics.push_back({id});
  }
  constexpr int questions = 200;
  int answers = 0;
  int refused = 0;
  const auto answered = [&](const auto& result) {
    ++answers;
    if (result) return;
    ++refused;
    EXPECT_EQ(result.error().code, ErrorCode::shutting_down);
  };
  for (int i = 0; i < questions; ++i) {
    pool.stats_of(asked, [&](const Result<TopicsStats>& counted) { answered(counted); });
    pool.broker_stats([&](const Result<protocol::BrokerStats>& sums) { answered(sums); });
  }
  pool.stop(std::chrono::steady_clock::now());
  pool.stats_of(asked, [&](const Result<TopicsStats>& counted) { answered(counted); });
  pool.broker_stats([&](const Result<protocol::BrokerStats>& sums) { answered(sums); });
  test::run_until(control, [&] { return answers == 2 * (questions + 1); });
  EXPECT_EQ(answers, 2 * (questions + 1));
  EXPECT_GE(refused, 2) << "those that came after the stop";
}

}  // namespace
}  // namespace lightq::broker
