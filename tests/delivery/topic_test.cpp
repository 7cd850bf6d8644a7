/// Tests of a topic's rules: which consumers keep the log, which messages are dropped, and which events are
/// counted.
#include "delivery/stored_cursors.hpp"
#include "delivery/topic_on_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>

#include "delivery/fake_record_sink.hpp"
#include "log/memory/ring_log.hpp"

namespace lightq::broker {
namespace {

using protocol::BrokerType;
using protocol::Overflow;
using test::FakeRecordSink;
using test::TopicOnLog;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr Timestamp now{1'000'000};

TopicOnLog make_topic(BrokerType type = BrokerType::queue, Overflow overflow = Overflow::block,
                      std::uint64_t ring_bytes = 64 * limits::KiB) {
  protocol::TopicSettings settings;
  settings.broker_type = type;
  settings.overflow = overflow;
  settings.ring_bytes = ring_bytes;
  return TopicOnLog({TopicId{1}, *TopicName::parse("t"), settings}, ring_bytes, now);
}

PublishOutcome publish(Topic& topic, const std::vector<std::string>& payloads) {
  BatchBuilder batch;
  for (const auto& payload : payloads) batch.add(as_byte_view(payload));
  return topic.publish(batch, now);
}

/// Publishes messages of 10 KiB until one is not accepted. Returns the outcome of that one.
PublishOutcome fill(Topic& topic, char letter = 'x') {
  for (int i = 0; i < 1000; ++i) {
    const auto outcome = publish(topic, {std::string(10 * limits::KiB, letter)});
    if (outcome != PublishOutcome::accepted) return outcome;
  }
  return PublishOutcome::accepted;
}

TEST(Topic, MessagesWaitForTheFirstPuller) {
  TopicOnLog topic = make_topic();
  publish(topic, {"a", "", "c"});
  topic.dispatch();
  FakeRecordSink puller;
  topic.attach_puller(puller);
  topic.dispatch();
  EXPECT_THAT(puller.taken, ElementsAre("a", "", "c"));
  EXPECT_EQ(topic.stats().queue_size, 0U);
}

#if defined(LIGHTQ_LATE_LOG)
// Without this the second run of these tests could show nothing.
TEST(Topic, ReceivesNothingFromALateLogBeforeItsAnswer) {
  TopicOnLog topic = make_topic();
  publish(topic, {"a"});
  FakeRecordSink puller;
  topic.attach_puller(puller);
  topic.Topic::dispatch();
  EXPECT_THAT(puller.taken, IsEmpty());
  topic.dispatch();
  EXPECT_THAT(puller.taken, ElementsAre("a"));
}
#endif

/// A log without space on its disk. Counts the attempts to append.
class FailingLog final : public log::BatchLog {
 public:
  explicit FailingLog(int& tries) : tries_(tries) {}
  log::AppendResult append(std::span<std::byte> batch, Timestamp at) override {
    ++tries_;
    if (mended) return log_.append(batch, at);
    return {log::AppendOutcome::no_space, {}};
  }
  log::ReadResult read(log::ReadPosition& place) override { return log_.read(place); }
  log::FoundByTime first_since(Timestamp time) override { return log_.first_since(time); }
  [[nodiscard]] Offset first_offset() const override { return log_.first_offset(); }
  [[nodiscard]] Offset next_offset() const override { return log_.next_offset(); }
  [[nodiscard]] Offset durable_offset() const override { return {}; }
  [[nodiscard]] std::uint64_t stored_bytes() const override { return 0; }
  void trim(Offset) override {}
  bool make_room(std::size_t, Offset) override { return false; }
  bool drop_first(Offset, std::size_t) override { return false; }
  [[nodiscard]] const Error& last_error() const override { return error_; }

  bool mended = false;

 private:
  int& tries_;
  log::RingLog log_{log::RingLogOptions{.capacity_bytes = limits::MiB}};
  Error error_{ErrorCode::no_space, "no space"};
};

class TopicOnAFailingDisk : public testing::TestWithParam<Overflow> {};

TEST_P(TopicOnAFailingDisk, TriesItNowAndThenOnly) {
  int tries = 0;
  auto owned = std::make_unique<FailingLog>(tries);
  FailingLog& log = *owned;
  protocol::TopicSettings settings;
  settings.broker_type = BrokerType::file;
  settings.overflow = GetParam();
  TopicOnLog topic({TopicId{1}, *TopicName::parse("t"), settings}, std::move(owned), now);
  BatchBuilder batch;
  batch.add(as_byte_view("x"));
  const bool rejects = GetParam() == Overflow::reject;
  const auto refused = rejects ? PublishOutcome::rejected : PublishOutcome::held;
  constexpr int seconds = 10;
  constexpr int offers = seconds * 1000;
  for (int ms = 0; ms < offers; ++ms) ASSERT_EQ(topic.publish(batch, {now.us + ms * 1000}), refused);
  EXPECT_GE(tries, seconds);
  EXPECT_LE(tries, 4 * seconds);
  EXPECT_TRUE(topic.held_by_disk());
  EXPECT_EQ(topic.stats().rejected, rejects ? offers : 0U);

  log.mended = true;
  EXPECT_EQ(topic.publish(batch, {now.us + (offers + 1000) * 1000}), PublishOutcome::accepted);
  EXPECT_FALSE(topic.held_by_disk());
  EXPECT_EQ(topic.publish(batch, {now.us + (offers + 1001) * 1000}), PublishOutcome::accepted);
}

TEST_P(TopicOnAFailingDisk, RetriesImmediatelyWhenTheClockIsSetBack) {
  int tries = 0;
  TopicOnLog topic(
      {TopicId{1}, *TopicName::parse("t"), {.broker_type = BrokerType::file, .overflow = GetParam()}},
      std::make_unique<FailingLog>(tries), now);
  BatchBuilder batch;
  batch.add(as_byte_view("x"));
  topic.publish(batch, now);
  topic.publish(batch, {now.us - 500'000});
  EXPECT_EQ(tries, 2);
}

INSTANTIATE_TEST_SUITE_P(Policies, TopicOnAFailingDisk,
                         testing::Values(Overflow::block, Overflow::reject, Overflow::drop_oldest));

TEST(Topic, PullersShareInTurnAndSubscribersGetEverything) {
  TopicOnLog topic = make_topic();
  FakeRecordSink first;
  FakeRecordSink second;
  FakeRecordSink subscriber_outlet;
  topic.attach_puller(first);
  topic.attach_puller(second);
  Subscriber& subscriber = topic.subscribers().add(std::nullopt);
  topic.subscribers().attach(subscriber, subscriber_outlet);
  publish(topic, {"1", "2", "3", "4", "5"});
  topic.dispatch();
  EXPECT_THAT(first.taken, ElementsAre("1", "3", "5"));
  EXPECT_THAT(second.taken, ElementsAre("2", "4"));
  EXPECT_THAT(subscriber_outlet.taken, ElementsAre("1", "2", "3", "4", "5"));
  const auto stats = topic.stats();
  EXPECT_EQ(stats.messages_received, 5U);
  EXPECT_EQ(stats.messages_sent, 5U);
  EXPECT_EQ(stats.deliveries, 10U);
  EXPECT_EQ(stats.total_bytes_written, 5U);
  EXPECT_EQ(stats.total_bytes_read, 10U);
}

TEST(Topic, AStalledPullerIsPassedByTheOthers) {
  TopicOnLog topic = make_topic();
  FakeRecordSink stalled(1);
  FakeRecordSink quick;
  topic.attach_puller(stalled);
  topic.attach_puller(quick);
  publish(topic, {"1", "2", "3", "4"});
  topic.dispatch();
  EXPECT_THAT(stalled.taken, ElementsAre("1"));
  EXPECT_THAT(quick.taken, ElementsAre("2", "3", "4"));
}

TEST(Topic, UnsentMessagesOfAPullerGoToAnotherBeforeNewOnes) {
  TopicOnLog topic = make_topic();
  FakeRecordSink dying(3, false);
  topic.attach_puller(dying);
  publish(topic, {"1", "2", "3", "4"});
  topic.dispatch();
  dying.send(1);
  topic.detach_puller(dying);
  EXPECT_EQ(topic.groups().plain()->committed().value, 1U);
  FakeRecordSink other;
  topic.attach_puller(other);
  topic.dispatch();
  EXPECT_THAT(other.taken, ElementsAre("2", "3", "4"));
  EXPECT_EQ(topic.stats().messages_sent, 4U) << "delivered to the group once each";
  EXPECT_EQ(topic.stats().deliveries, 6U) << "two of them twice";
  EXPECT_EQ(topic.groups().plain()->committed().value, 4U);
}

TEST(Topic, DeliveredButUnsentMessagesHoldTheLog) {
  TopicOnLog topic = make_topic();
  FakeRecordSink slow(1'000'000, false);
  topic.attach_puller(slow);
  EXPECT_EQ(fill(topic), PublishOutcome::held);
  topic.dispatch();
  EXPECT_EQ(publish(topic, {std::string(10 * limits::KiB, 'y')}), PublishOutcome::held);
  slow.send(3);
  topic.dispatch();
  EXPECT_EQ(publish(topic, {std::string(10 * limits::KiB, 'y')}), PublishOutcome::accepted);
}

TEST(Topic, BlockHoldsProducersWhileTheGroupHasNotPassed) {
  TopicOnLog topic = make_topic();
  FakeRecordSink puller(0);
  topic.attach_puller(puller);
  EXPECT_EQ(fill(topic), PublishOutcome::held);
  topic.set_producers_held(true);
  EXPECT_EQ(topic.blocked_by(), "group:default");
  puller.give_room(1);
  EXPECT_TRUE(topic.dispatch().progress);
  EXPECT_EQ(publish(topic, {std::string(10 * limits::KiB, 'y')}), PublishOutcome::accepted);
  EXPECT_EQ(topic.stats().dropped, 0U);
}

TEST(Topic, RejectTurnsAwayAndCounts) {
  TopicOnLog topic = make_topic(BrokerType::queue, Overflow::reject);
  topic.open_group();
  EXPECT_EQ(fill(topic), PublishOutcome::rejected);
  EXPECT_EQ(publish(topic, {"a", "b"}), PublishOutcome::accepted) << "there is room for something small";
  EXPECT_EQ(publish(topic, {std::string(10 * limits::KiB, 'y'), "c"}), PublishOutcome::rejected);
  EXPECT_EQ(topic.stats().rejected, 3U);
}

TEST(Topic, DropOldestKeepsTheNewestAndCountsTheGroupsLosses) {
  TopicOnLog topic = make_topic(BrokerType::queue, Overflow::drop_oldest);
  topic.open_group();
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(publish(topic, {std::to_string(i) + std::string(10 * limits::KiB, 'x')}),
              PublishOutcome::accepted);
  }
  EXPECT_GT(topic.stats().dropped, 0U);
  EXPECT_EQ(topic.stats().groups.at(0).lost, topic.stats().dropped) << "before anybody tried to read them";
  FakeRecordSink puller;
  topic.attach_puller(puller);
  topic.dispatch();
  ASSERT_FALSE(puller.taken.empty());
  EXPECT_EQ(puller.taken.back().substr(0, 2), "19");
  const auto stats = topic.stats();
  EXPECT_EQ(stats.dropped + puller.taken.size(), 20U);
  EXPECT_EQ(stats.groups.at(0).lost, stats.dropped);
}

TEST(Topic, MessagesRequeuedFromAPullerAndDroppedAreCounted) {
  TopicOnLog topic = make_topic(BrokerType::queue, Overflow::drop_oldest);
  FakeRecordSink dying(3, false);
  topic.attach_puller(dying);
  for (int i = 0; i < 3; ++i) publish(topic, {std::to_string(i) + std::string(10 * limits::KiB, 'x')});
  topic.dispatch();
  dying.send(1);
  topic.detach_puller(dying);
  for (int i = 3; i < 20; ++i) publish(topic, {std::to_string(i) + std::string(10 * limits::KiB, 'x')});
  const auto dropped = topic.stats().dropped;
  EXPECT_EQ(topic.stats().groups.at(0).lost, dropped);
  FakeRecordSink puller;
  topic.attach_puller(puller);
  topic.dispatch();
  EXPECT_EQ(1 + dropped + puller.taken.size(), 20U) << "one was sent, the rest was dropped or delivered";
  EXPECT_EQ(topic.stats().groups.at(0).lost, dropped);
}

TEST(Topic, ATopicWithoutGroupsNeverBlocksAndCountsOverwrittenMessages) {
  TopicOnLog topic = make_topic();
  EXPECT_EQ(fill(topic), PublishOutcome::accepted);
  const auto stats = topic.stats();
  EXPECT_EQ(stats.messages_received, 1000U);
  EXPECT_EQ(stats.unclaimed_dropped, stats.first_offset);
  EXPECT_GT(stats.unclaimed_dropped, 900U);
  EXPECT_EQ(stats.queue_size, 1000U - stats.first_offset);
  EXPECT_EQ(stats.dropped, 0U);
}

TEST(Topic, ASlowSubscriberDelaysNoOtherAndItsLossIsCounted) {
  TopicOnLog topic = make_topic();
  FakeRecordSink slow(1);
  FakeRecordSink quick;
  Subscriber& slow_subscriber = topic.subscribers().add(std::nullopt);
  Subscriber& quick_subscriber = topic.subscribers().add(std::nullopt);
  topic.subscribers().attach(slow_subscriber, slow);
  topic.subscribers().attach(quick_subscriber, quick);
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(publish(topic, {std::to_string(i) + std::string(10 * limits::KiB, 'x')}),
              PublishOutcome::accepted);
    topic.dispatch();
  }
  EXPECT_EQ(quick.taken.size(), 50U);
  EXPECT_EQ(topic.subscribers().stats(quick_subscriber).lost, 0U);
  slow.give_room(1000);
  topic.dispatch();
  const auto stats = topic.subscribers().stats(slow_subscriber);
  EXPECT_GT(stats.lost, 0U);
  EXPECT_EQ(stats.lost + stats.delivered, 50U);
  EXPECT_EQ(slow.taken.back().substr(0, 2), "49");
  EXPECT_EQ(topic.stats().messages_sent, 50U) << "no group: as far as the furthest subscriber came";
}

TEST(Topic, AReturningSubscriberContinuesAtItsFirstUnsentMessage) {
  TopicOnLog topic = make_topic();
  FakeRecordSink first(3, false);
  Subscriber& subscriber = topic.subscribers().add(std::nullopt);
  topic.subscribers().attach(subscriber, first);
  publish(topic, {"1", "2", "3", "4"});
  topic.dispatch();
  first.send(1);
  topic.subscribers().detach(subscriber);
  FakeRecordSink second;
  topic.subscribers().attach(subscriber, second);
  topic.dispatch();
  EXPECT_THAT(second.taken, ElementsAre("2", "3", "4"));
  EXPECT_EQ(topic.subscribers().stats(subscriber).delivered, 4U);
}

TEST(Topic, ADrainedLogIsTrimmedOnlyWhenSubscribersHavePassedToo) {
  TopicOnLog topic = make_topic();
  FakeRecordSink puller;
  FakeRecordSink slow(0);
  topic.attach_puller(puller);
  Subscriber& subscriber = topic.subscribers().add(std::nullopt);
  topic.subscribers().attach(subscriber, slow);
  publish(topic, {"1", "2"});
  topic.dispatch();
  EXPECT_EQ(topic.log().first_offset().value, 0U);
  slow.give_room(10);
  topic.dispatch();
  EXPECT_THAT(slow.taken, ElementsAre("1", "2"));
  EXPECT_EQ(topic.log().first_offset().value, 2U);
}

TEST(Topic, DeletingTheGroupStopsItHolding) {
  TopicOnLog topic = make_topic();
  topic.open_group();
  EXPECT_EQ(fill(topic), PublishOutcome::held);
  topic.groups().remove(*topic.groups().plain());
  EXPECT_EQ(fill(topic), PublishOutcome::accepted);
}

TEST(Topic, DirectAcceptsMessagesOnlyWithAConnectedConsumerAndKeepsNone) {
  TopicOnLog topic = make_topic(BrokerType::direct);
  EXPECT_FALSE(topic.accepting());
  topic.set_producers_held(true);
  EXPECT_EQ(topic.blocked_by(), "nobody connected");
  FakeRecordSink stalled(1);
  topic.attach_puller(stalled);
  EXPECT_TRUE(topic.accepting());
  publish(topic, {"1", "2", "3"});
  topic.dispatch();
  topic.detach_puller(stalled);
  EXPECT_FALSE(topic.accepting());
  EXPECT_EQ(topic.stats().dropped, 2U);
  FakeRecordSink late;
  topic.attach_puller(late);
  publish(topic, {"4"});
  topic.dispatch();
  EXPECT_THAT(late.taken, ElementsAre("4"));
}

TEST(Topic, ADirectSubscriberReceivesNothingFromItsAbsence) {
  TopicOnLog topic = make_topic(BrokerType::direct);
  FakeRecordSink puller;
  topic.attach_puller(puller);
  Subscriber& subscriber = topic.subscribers().add(std::nullopt);
  publish(topic, {"missed"});
  topic.dispatch();
  FakeRecordSink sink;
  topic.subscribers().attach(subscriber, sink);
  topic.dispatch();
  EXPECT_THAT(sink.taken, IsEmpty());
  publish(topic, {"seen"});
  topic.dispatch();
  EXPECT_THAT(sink.taken, ElementsAre("seen"));
}

TEST(Topic, AMessageThatCanNeverFitIsRefusedAndCounted) {
  TopicOnLog topic = make_topic();
  EXPECT_EQ(publish(topic, {std::string(65 * limits::KiB, 'x')}), PublishOutcome::refused);
  EXPECT_EQ(topic.stats().refused, 1U);
  EXPECT_EQ(topic.stats().messages_received, 0U);
}

TEST(Topic, ARestoredGroupIsClampedToTheLogsEnd) {
  TopicOnLog topic = make_topic();
  test::restore_cursors(topic, {{"group:default", Offset{1000}}});
  EXPECT_EQ(topic.groups().plain()->committed().value, 0U);
}

TEST(Topic, ADispatchIsLimitedAndReportsThatThereIsMore) {
  TopicOnLog topic = make_topic(BrokerType::queue, Overflow::block, 4 * limits::MiB);
  topic.answer_at_once();
  FakeRecordSink puller;
  topic.attach_puller(puller);
  for (int i = 0; i < 200; ++i) publish(topic, {std::string(10 * limits::KiB, 'x')});
  EXPECT_TRUE(topic.dispatch().more);
  EXPECT_LT(puller.taken.size(), 200U);
  while (topic.dispatch().more) {
  }
  EXPECT_EQ(puller.taken.size(), 200U);
}

}  // namespace
}  // namespace lightq::broker
