/// Tests of pausing and purging: the messages that a group or topic delivers meanwhile, and the offset where
/// it continues.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "delivery/consumer_group_harness.hpp"

namespace lightq::broker {
namespace {

using protocol::BrokerType;
using protocol::Overflow;
using std::chrono::milliseconds;
using test::asked;
using test::FakeRecordSink;
using test::GroupWorld;
using test::Member;
using testing::ElementsAre;
using testing::IsEmpty;

class PauseTest : public testing::Test, public GroupWorld {};

// --- A group ---

TEST_F(PauseTest, APausedGroupHandsNothingOutAndTheOthersDo) {
  Member paused, other;
  FakeRecordSink puller;
  join(paused, asked("g"));
  join(other, asked("h"));
  topic.attach_puller(puller);
  paused.group->set_paused(true);
  publish({"a", "b"});
  dispatch();
  EXPECT_THAT(paused.consumer.take(), IsEmpty());
  EXPECT_THAT(other.consumer.take(), ElementsAre("a", "b"));
  EXPECT_THAT(puller.taken, ElementsAre("a", "b"));
  EXPECT_TRUE(stats("g").paused);
  EXPECT_FALSE(stats("h").paused);
  EXPECT_EQ(stats("g").lag, 2U);
  paused.group->set_paused(false);
  dispatch();
  EXPECT_THAT(paused.consumer.take(), ElementsAre("a", "b"));
  EXPECT_FALSE(stats("g").paused);
}

TEST_F(PauseTest, APausedGroupTakesMessagesBackAndDeliversThemAfterwards) {
  Member member;
  auto open = asked("g");
  open.ack_timeout_ms = 1000;
  join(member, open);
  publish_numbers(0, 4);
  dispatch();
  member.consumer.take();
  member.group->set_paused(true);
  acknowledge(member, {{{0}, {1}}});
  reject(member, {{1}, {2}});
  dispatch();
  EXPECT_THAT(member.consumer.take(), IsEmpty());
  EXPECT_EQ(stats("g").unacknowledged, 2U);
  pass(milliseconds(1001));
  dispatch();
  EXPECT_EQ(stats("g").unacknowledged, 0U) << "timeouts run";
  EXPECT_EQ(topic.groups().next_timer(), never) << "nothing to wake up for";
  EXPECT_EQ(stats("g").committed_offset, 1U);
  member.group->set_paused(false);
  dispatch();
  EXPECT_THAT(member.consumer.take(), ElementsAre("1#2", "2#2", "3#2"));
}

TEST_F(PauseTest, AcknowledgementsOfAPausedGroupFreeSpace) {
  Member member;
  join(member, asked("g"));
  publish({"a"});
  dispatch();
  member.group->set_paused(true);
  acknowledge_before(member, 1);
  EXPECT_TRUE(topic.dispatch({.now = now}).progress) << "who is held may try again";
  EXPECT_EQ(topic.log().first_offset(), Offset{1});
}

TEST_F(PauseTest, AGroupsPauseIsKeptWithItsCursor) {
  Member member, own;
  join(member, asked("g"));
  join(own, asked("mine", GroupMode::own));
  member.group->set_paused(true);
  own.group->set_paused(true);
  auto cursors = test::stored_cursors(topic.groups());
  std::reverse(cursors.begin(), cursors.end());  // the order in the file does not matter
  GroupWorld next;
  cursors.push_back({"paused:absent", Offset{0}});
  test::restore_cursors(next.topic, cursors);
  EXPECT_TRUE(next.stats("g").paused);
  EXPECT_TRUE(next.stats("mine").paused);
  next.topic.groups().find("g")->set_paused(false);
  EXPECT_THAT(test::stored_cursors(next.topic.groups()).size(), 3U);
  EXPECT_EQ(next.topic.groups().find("absent"), nullptr);
}

// --- A topic ---

TEST_F(PauseTest, APausedTopicDeliversNothing) {
  Member member, own;
  FakeRecordSink puller, subscribed;
  join(member, asked("g"));
  join(own, asked("", GroupMode::own));
  topic.attach_puller(puller);
  topic.subscribers().attach(topic.subscribers().add(std::nullopt), subscribed);
  topic.set_paused(true);
  EXPECT_EQ(publish({"a", "b"}), PublishOutcome::accepted);
  dispatch();
  EXPECT_THAT(member.consumer.take(), IsEmpty());
  EXPECT_THAT(own.consumer.take(), IsEmpty());
  EXPECT_THAT(puller.taken, IsEmpty());
  EXPECT_THAT(subscribed.taken, IsEmpty());
  EXPECT_TRUE(topic.stats().paused);
  EXPECT_FALSE(stats("g").paused);
  EXPECT_EQ(topic.log().first_offset(), Offset{0});
  topic.set_paused(false);
  dispatch();
  EXPECT_THAT(member.consumer.take(), ElementsAre("a", "b"));
  EXPECT_THAT(own.consumer.take(), ElementsAre("a", "b"));
  EXPECT_THAT(puller.taken, ElementsAre("a", "b"));
  EXPECT_THAT(subscribed.taken, ElementsAre("a", "b"));
  EXPECT_EQ(topic.log().first_offset(), Offset{0}) << "until somebody acknowledges";
}

TEST_F(PauseTest, ATopicThatWasPausedBeginsSo) {
  test::TopicOnLog paused({TopicId{2}, *TopicName::parse("t"), {}, true}, limits::MiB, wall);
  FakeRecordSink puller;
  paused.attach_puller(puller);
  BatchBuilder batch;
  batch.add(as_byte_view("a"));
  paused.publish(batch, wall);
  paused.dispatch({.now = now});
  EXPECT_THAT(puller.taken, IsEmpty());
  EXPECT_TRUE(paused.stats().paused);
}

// --- Purging ---

TEST_F(PauseTest, AGroupThatSkipsHasEverythingProcessed) {
  Member member, other;
  FakeRecordSink puller(1'000'000, false);
  auto open = asked("g");
  open.credit.messages = 3;
  join(member, open);
  join(other, asked("h"));
  topic.attach_puller(puller);
  publish_numbers(0, 10);
  dispatch();
  member.consumer.take();
  acknowledge(member, {{{0}, {1}}});
  reject(member, {{1}, {2}}, 1000);
  EXPECT_EQ(topic.groups().pass_over(*member.group), 9U);
  EXPECT_EQ(topic.groups().pass_over(*topic.groups().plain()), 0U) << "it has delivered everything";
  pass(milliseconds(100'000));
  dispatch();
  EXPECT_EQ(stats("g").committed_offset, 10U);
  EXPECT_EQ(stats("g").lost, 0U);
  EXPECT_THAT(member.consumer.take(), IsEmpty());
  EXPECT_EQ(other.consumer.frames.size() > 0, true);
  EXPECT_EQ(stats("default").committed_offset, 10U) << "what has not left is nobody's concern any more";
  ASSERT_TRUE(member.member->add_credit({10, 0}));
  publish({"next"});
  dispatch();
  EXPECT_THAT(member.consumer.take(), ElementsAre("next"));
}

TEST_F(PauseTest, ASkippedTopicContinuesAfterThePause) {
  Member member;
  FakeRecordSink subscribed(2, false), again;
  join(member, asked("g"));
  Subscriber& subscriber = topic.subscribers().add(std::nullopt);
  topic.subscribers().attach(subscriber, subscribed);
  publish_numbers(0, 5);
  dispatch();
  member.consumer.take();
  EXPECT_EQ(topic.finish_all(), 5U);
  topic.log().drop_before(topic.log().next_offset());
  const auto after = topic.stats();
  EXPECT_EQ(after.first_offset, 5U);
  EXPECT_EQ(after.queue_size, 0U);
  EXPECT_EQ(stats("g").lost, 0U);
  topic.subscribers().detach(subscriber);  // its delivered messages are on their way and are not requeued
  topic.subscribers().attach(subscriber, again);
  publish({"next"});
  dispatch();
  EXPECT_THAT(member.consumer.take(), ElementsAre("next"));
  EXPECT_THAT(again.taken, ElementsAre("next"));
  EXPECT_EQ(topic.subscribers().stats(subscriber).lost, 0U);
}

TEST_F(PauseTest, SkippedMessagesDoNotCountAsSent) {
  FakeRecordSink subscribed(2);
  topic.subscribers().attach(topic.subscribers().add(std::nullopt), subscribed);
  publish_numbers(0, 10);
  dispatch();
  EXPECT_EQ(topic.stats().messages_sent, 2U);
  topic.finish_all();
  subscribed.give_room(100);
  publish({"next"});
  dispatch();
  EXPECT_EQ(topic.stats().messages_sent, 3U);
}

}  // namespace
}  // namespace lightq::broker
