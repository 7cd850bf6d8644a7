/// Tests of session consumers that leave a topic with many messages in flight.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "delivery/consumer_group_harness.hpp"
#include "endpoint/topic_runtime_harness.hpp"

namespace lightq::broker {
namespace {

using test::asked;
using test::FakeConsumer;

class LeavingConsumersTest : public TopicRuntimeTest {
 protected:
  void publish(std::uint64_t messages) {
    FakeProducer producer(false);
    open(producer);
    ASSERT_TRUE(run_until([&] { return producer.is_admitted; }));
    for (std::uint64_t i = 0; i < messages; ++i) send(producer, i);
    topic->publishing().detach(producer);
  }
  void join(FakeConsumer& consumer, const ConsumeRequest& open) {
    ASSERT_EQ(topic->open_consumer(open, consumer), ClientError::none);
    ASSERT_TRUE(run_until([&] { return consumer.opened_at.has_value(); }));
  }
  /// Waits until a consumer has all messages, and acknowledges every second one.
  void take_every_second(FakeConsumer& consumer, const std::string& group, std::uint64_t messages) {
    ASSERT_TRUE(run_until([&] { return stats_of(group).unacknowledged == messages; }));
    std::vector<OffsetRange> every_second;
    for (std::uint64_t i = 1; i < messages; i += 2) every_second.push_back({{i}, {i + 1}});
    broker::acknowledge(*topic, consumer, {std::nullopt, every_second});
    ASSERT_EQ(stats_of(group).unacknowledged, messages / 2);
  }
  protocol::GroupStats stats_of(const std::string& group) {
    for (const auto& stats : topic->stats().groups) {
      if (stats.group == group) return stats;
    }
    return {};
  }
};

TEST_F(LeavingConsumersTest, ManyRangesOfTwoConsumersAreRequeuedInTwoTurns) {
  constexpr std::uint64_t messages = 18'000;
  publish(messages);
  FakeConsumer first;
  FakeConsumer second;
  join(first, asked("first"));
  join(second, asked("second"));
  take_every_second(first, "first", messages);
  take_every_second(second, "second", messages);
  run_until([turns = 0]() mutable { return ++turns == 2; });
  topic->detach_consumer(first);
  EXPECT_EQ(stats_of("first").unacknowledged, 0U);
  topic->detach_consumer(second);
  EXPECT_EQ(stats_of("second").unacknowledged, messages / 2) << "in another turn";
  EXPECT_TRUE(run_until([&] { return stats_of("second").unacknowledged == 0; }));
  EXPECT_EQ(stats_of("second").ready, messages / 2);
  EXPECT_EQ(stats_of("first").ready, messages / 2);
}

TEST_F(LeavingConsumersTest, ACursorsNextConsumerBeginsWithWhatTheFormerOneReturns) {
  constexpr std::uint64_t messages = 18'000;
  publish(messages);
  FakeConsumer busy, former, next;
  join(busy, asked("busy"));
  auto with_leases = asked("mine", GroupMode::own);
  with_leases.leases = true;
  join(former, with_leases);
  take_every_second(busy, "busy", messages);
  ASSERT_TRUE(run_until([&] { return stats_of("mine").unacknowledged == messages; }));
  run_until([turns = 0]() mutable { return ++turns == 2; });
  topic->detach_consumer(busy);  // takes the whole time of this turn
  ASSERT_EQ(topic->open_consumer(asked("mine", GroupMode::own), next), ClientError::none);
  ASSERT_EQ(stats_of("mine").unacknowledged, messages) << "they are requeued in another turn";
  ASSERT_TRUE(run_until([&] { return next.opened_at.has_value(); }));
  EXPECT_EQ(next.opened_at->next, Offset{0});
  ASSERT_TRUE(run_until([&] { return stats_of("mine").unacknowledged == messages; }));
  Offset expected{0};
  for (const auto& frame : next.frames) {
    EXPECT_EQ(frame.range.begin, expected);
    EXPECT_EQ(frame.delivery, 1U);
    expected = frame.range.end;
  }
  EXPECT_EQ(expected, Offset{messages});
  topic->detach_consumer(next);
}

}  // namespace
}  // namespace lightq::broker
