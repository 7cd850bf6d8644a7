/// Tests of messages that expire in a topic at work: its timers.
#include <chrono>

#include "delivery/consumer_group_harness.hpp"
#include "delivery/fake_consumer.hpp"
#include "endpoint/topic_runtime_harness.hpp"

namespace lightq::broker {
namespace {

using namespace std::chrono_literals;

class TopicExpiryTest : public TopicRuntimeTest {
 protected:
  void make_group() {
    test::FakeConsumer consumer;
    ASSERT_EQ(topic->open_consumer(test::asked("workers"), consumer).code, ClientError::none);
    ASSERT_TRUE(run_until([&] { return consumer.opened_at.has_value(); }));
    topic->detach_consumer(consumer);
  }
  void publish(std::chrono::milliseconds ttl = 0ms) {
    BatchBuilder batch;
    Attributes attributes;
    attributes.ttl = ttl;
    batch.add(as_byte_view("message"), attributes);
    ASSERT_EQ(topic->publishing().store({batch.finish(), 1, batch.message_bytes()}, {}),
              PublishOutcome::accepted);
    topic->dispatch().published();
  }
  protocol::GroupStats group() { return topic->stats().groups.at(0); }
  /// Makes the clock show a later time, and tells the timers of it as the system does.
  void step_forward(std::chrono::microseconds by) {
    step_clock(by);
    context().wall_timers.clock_was_set();
  }
};

TEST_F(TopicExpiryTest, ATopicSleepsUntilAMessageExpiresOrTheClockIsSet) {
  make_group();
  publish(10h);
  publish(1h);
  EXPECT_EQ(context().wall_timers.waiting(), 1U);
  EXPECT_EQ(topic->stats().groups.at(0).pending, 2U);
  step_forward(1h + 1s);
  ASSERT_TRUE(run_until([&] { return group().pending == 1; }));
  EXPECT_EQ(context().wall_timers.waiting(), 1U);
  step_forward(10h);
  ASSERT_TRUE(run_until([&] { return group().pending == 0; }));
  EXPECT_EQ(context().wall_timers.waiting(), 0U);
}

TEST_F(TopicExpiryTest, ATopicsTimeToLiveNeedsOneTimerToo) {
  make_group();
  publish();
  publish();
  EXPECT_EQ(context().wall_timers.waiting(), 0U);
  ASSERT_TRUE(topic->commands().change({.message_ttl_ms = 3'600'000}).ok());
  topic->dispatch().published();
  EXPECT_EQ(context().wall_timers.waiting(), 1U);
  step_forward(1h + 1s);
  ASSERT_TRUE(run_until([&] { return group().pending == 0; }));
  publish();
  EXPECT_EQ(group().pending, 1U);
  step_forward(1h + 1s);
  ASSERT_TRUE(run_until([&] { return group().pending == 0; }));
}

}  // namespace
}  // namespace lightq::broker
