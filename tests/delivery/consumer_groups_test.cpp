/// Tests of a topic's groups: their creation and end, which of them keep the log, and plain pullers beside
/// members.
#include "delivery/consumer_groups.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>

#include "delivery/consumer_group_harness.hpp"

namespace lightq::broker {
namespace {

using protocol::BrokerType;
using protocol::Overflow;
using test::asked;
using test::FakeRecordSink;
using test::GroupWorld;
using test::Member;
using testing::ElementsAre;
using testing::IsEmpty;

class GroupSetTest : public testing::Test, public GroupWorld {};

// --- Plain pullers beside members ---

TEST_F(GroupSetTest, MessagesOfALeavingMemberGoToAPlainPullerAndTheReverse) {
  FakeRecordSink puller(2, false);
  Member member;
  publish_numbers(0, 4);
  join(member, asked());
  dispatch();
  leave(member);
  topic.attach_puller(puller);
  dispatch();
  EXPECT_THAT(puller.taken, ElementsAre("0", "1"));
  EXPECT_EQ(stats().redelivered, 2U);
  Member next;
  join(next, asked());
  dispatch();
  EXPECT_THAT(next.consumer.take(), ElementsAre("2#2", "3#2"));
  topic.detach_puller(puller);
  dispatch();
  EXPECT_THAT(next.consumer.take(), ElementsAre("0#2", "1#2"));
  EXPECT_EQ(stats().committed_offset, 0U);
  acknowledge_before(next, 4);
  EXPECT_EQ(stats().committed_offset, 4U);
}

TEST_F(GroupSetTest, NeitherPlainPullersNorMembersStarve) {
  FakeRecordSink puller;
  Member member;
  topic.attach_puller(puller);
  join(member, asked());
  for (int i = 0; i < 50; ++i) publish({std::string(10 * limits::KiB, 'x')});
  dispatch();
  EXPECT_GE(puller.taken.size(), 15U);
  EXPECT_GE(member.consumer.take().size(), 15U);
  EXPECT_EQ(stats().next_offset, 50U);
}

TEST_F(GroupSetTest, SeekForgetsTheUnsentMessagesOfAPlainPuller) {
  FakeRecordSink puller(1, false);
  Member member;
  topic.attach_puller(puller);
  publish_numbers(0, 1);
  publish_numbers(1, 2);
  dispatch();
  join(member, asked());
  dispatch();
  EXPECT_EQ(topic.groups().seek(*member.group, {StartPosition::From::first, 0}).value_or_throw(), Offset{0});
  member.consumer.take();
  dispatch();
  topic.detach_puller(puller);
  dispatch();
  EXPECT_THAT(member.consumer.take(), ElementsAre("0", "1")) << "not once more";
}

// --- Which groups exist ---

TEST_F(GroupSetTest, EachGroupGetsEverything) {
  Member one, other, own;
  publish_numbers(0, 3);
  join(one, asked("one"));
  join(other, asked("other"));
  join(own, asked("mine", GroupMode::own));
  dispatch();
  for (Member* const member : {&one, &other, &own})
    EXPECT_THAT(member->consumer.take(), ElementsAre("0", "1", "2"));
  EXPECT_EQ(stats("one").mode, "group");
  EXPECT_EQ(stats("mine").mode, "own");
  EXPECT_EQ(topic.stats().subscribers_count, 3U);
  EXPECT_EQ(topic.stats().messages_sent, 3U) << "as far as the furthest came";
  EXPECT_EQ(topic.stats().deliveries, 9U);
}

TEST_F(GroupSetTest, ANameIsOfOneModeAndARightOne) {
  Member member;
  EXPECT_EQ(join(member, asked("a", GroupMode::own)), ClientError::none);
  EXPECT_EQ(topic.groups().open(asked("a"), first_life).refusal, ClientError::not_supported);
  EXPECT_EQ(join(member, asked("b")), ClientError::none);
  EXPECT_EQ(topic.groups().open(asked("b", GroupMode::own), first_life).refusal, ClientError::not_supported);
  EXPECT_EQ(topic.groups().open(asked("default", GroupMode::own), first_life).refusal,
            ClientError::not_supported);
  EXPECT_EQ(topic.groups().open(asked(".."), first_life).refusal, ClientError::invalid_name);
}

TEST_F(GroupSetTest, ATopicHasSoManyGroupsAndNoMore) {
  for (std::size_t i = 0; i < limits::groups_per_topic_max; ++i)
    ASSERT_EQ(topic.groups().open(asked("g" + std::to_string(i)), first_life).refusal, ClientError::none);
  EXPECT_EQ(topic.groups().open(asked("more"), first_life).refusal, ClientError::limit_reached);
  EXPECT_EQ(topic.groups().open(asked("g0"), first_life).refusal, ClientError::none);
  topic.groups().remove(*topic.groups().find("g7"));
  EXPECT_EQ(topic.groups().open(asked("more"), first_life).refusal, ClientError::none);
}

TEST_F(GroupSetTest, AUserWithHalfOfTheGroupsCannotUseTheReserve) {
  constexpr std::uint64_t ann = 7;
  constexpr std::uint64_t bob = 8;
  std::size_t made = 0;
  const auto open = [&](std::uint64_t user) {
    return topic.groups().open(asked("g" + std::to_string(made)), first_life, user).refusal;
  };
  while (open(ann) == ClientError::none) ++made;
  EXPECT_EQ(made, limits::groups_per_topic_max - limits::groups_per_topic_max / 8);
  EXPECT_EQ(open(ann), ClientError::limit_reached);
  EXPECT_EQ(topic.groups().open(asked("g0"), first_life, ann).refusal, ClientError::none) << "which is there";
  while (open(bob) == ClientError::none) ++made;
  EXPECT_EQ(made, limits::groups_per_topic_max);
  topic.groups().remove(*topic.groups().find("g7"));
  EXPECT_EQ(topic.groups().open(asked("g7"), first_life, ann).refusal, ClientError::limit_reached);
  EXPECT_EQ(topic.groups().open(asked("g7"), first_life).refusal, ClientError::none) << "the administrator's";
}

TEST_F(GroupSetTest, AnotherUserCannotTakeOverAnOwnCursor) {
  constexpr std::uint64_t alice = 7;
  constexpr std::uint64_t mallory = 8;
  const auto open = [&](std::uint64_t user) {
    return topic.groups().open(asked("hers", GroupMode::own), first_life, user).refusal;
  };
  EXPECT_EQ(open(alice), ClientError::none);
  EXPECT_EQ(open(mallory), ClientError::unauthorized_access);
  EXPECT_EQ(open(alice), ClientError::none);
  EXPECT_EQ(open(0), ClientError::none) << "the administrator";
  test::restore_cursors(topic, {{"holds:old", Offset{0}}});
  EXPECT_EQ(topic.groups().open(asked("old", GroupMode::own), first_life, alice).refusal, ClientError::none)
      << "one of a stored file is nobody's until somebody opens it";
  EXPECT_EQ(topic.groups().open(asked("old", GroupMode::own), first_life, mallory).refusal,
            ClientError::unauthorized_access);
}

TEST_F(GroupSetTest, ACursorOfTheAdministratorsIsTakenOverByNoUser) {
  constexpr std::uint64_t mallory = 8;
  ASSERT_EQ(topic.groups().open(asked("his", GroupMode::own), first_life, 0).refusal, ClientError::none);
  EXPECT_EQ(topic.groups().open(asked("his", GroupMode::own), first_life, mallory).refusal,
            ClientError::unauthorized_access);
  EXPECT_EQ(topic.groups().open(asked("his", GroupMode::own), first_life, 0).refusal, ClientError::none);
}

TEST_F(GroupSetTest, AStoredCursorDoesNotCountAmongTheGroupsOfItsOpener) {
  constexpr std::uint64_t ann = 7;
  test::restore_cursors(topic, {{"holds:old", Offset{0}}});
  ASSERT_EQ(topic.groups().open(asked("old", GroupMode::own), first_life, ann).refusal, ClientError::none);
  std::size_t made = 0;
  while (topic.groups().open(asked("g" + std::to_string(made)), first_life, ann).refusal == ClientError::none)
    ++made;
  EXPECT_EQ(made, limits::groups_per_topic_max - limits::groups_per_topic_max / 8 - 1)
      << "the stored one takes a place of all, and none of hers";
}

TEST_F(GroupSetTest, AGroupHasSoManyMembersOfAUserAndInAll) {
  constexpr std::uint64_t ann = 7;
  constexpr std::uint64_t bob = 8;
  std::vector<std::unique_ptr<Member>> members;
  const auto add = [&](std::uint64_t user) {
    auto member = std::make_unique<Member>();
    const ClientError code = join(*member, asked("g"), user);
    if (code == ClientError::none) members.push_back(std::move(member));
    return code;
  };
  while (add(ann) == ClientError::none) ASSERT_LE(members.size(), limits::members_per_group_max);
  EXPECT_EQ(members.size(), limits::members_per_group_max - limits::members_per_group_max / 8);
  const auto refused = topic.groups().open(asked("g"), first_life, ann);
  EXPECT_EQ(refused.refusal, ClientError::limit_reached);
  EXPECT_EQ(refused.crowd, ConsumerGroups::Crowd::members_of_group);
  while (add(bob) == ClientError::none) ASSERT_LE(members.size(), limits::members_per_group_max);
  EXPECT_EQ(members.size(), limits::members_per_group_max);
  leave(*members.back());
  members.pop_back();
  EXPECT_EQ(add(bob), ClientError::none);
}

TEST_F(GroupSetTest, ANewGroupBeginsAtTheRequestedStart) {
  for (int i = 0; i < 10; ++i) {
    wall.us = 1'000'000 + i * 1000;
    publish_numbers(3 * i, 3 * i + 3);
  }
  int made = 0;
  const auto begin = [&](StartPosition start) {
    auto open = asked("g" + std::to_string(made++));
    open.start = start;
    return topic.groups().open(open, first_life).group->next().value;
  };
  using From = StartPosition::From;
  EXPECT_EQ(begin({From::first, 0}), 0U);
  EXPECT_EQ(begin({From::next, 0}), 30U);
  EXPECT_EQ(begin({From::last, 0}), 29U);
  EXPECT_EQ(begin({From::offset, 17}), 17U);
  EXPECT_EQ(begin({From::offset, 1000}), 30U);
  EXPECT_EQ(begin({From::time, 0}), 0U);
  for (std::uint64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(begin({From::time, 1'000'000 + i * 1000}), 3 * i);
    EXPECT_EQ(begin({From::time, 1'000'001 + i * 1000}), 3 * i + 3);
  }
  EXPECT_EQ(begin({From::time, ~std::uint64_t{0}}), 30U);
}

TEST_F(GroupSetTest, AStartAtATimeSkipsNothingAfterTheClockWasSetBack) {
  constexpr std::int64_t hour_us = 3'600'000'000;
  constexpr std::int64_t now_us = 1'000 * hour_us;
  int next = 0;
  for (const std::int64_t time : {now_us, now_us - hour_us, now_us, now_us + 2 * hour_us, now_us}) {
    wall.us = time;
    publish_numbers(next, next + 1);
    ++next;
  }
  int made = 0;
  const auto begin = [&](std::int64_t time) {
    auto open = asked("g" + std::to_string(made++));
    open.start = {StartPosition::From::time, static_cast<std::uint64_t>(time)};
    return topic.groups().open(open, first_life).group->next().value;
  };
  EXPECT_EQ(begin(now_us - 60'000'000), 0U);
  EXPECT_EQ(begin(now_us + hour_us), 3U) << "one is ahead of the clock";
  EXPECT_EQ(begin(now_us + 3 * hour_us), 5U);
}

TEST_F(GroupSetTest, AStartInAnEarlierLifeIsValidWhileTheMessagesAreTheSame) {
  publish_numbers(0, 30);
  LogLives lives(incarnation);
  lives.begin({20}, 7);
  int made = 0;
  const auto begin = [&](StartPosition start) {
    auto open = asked("g" + std::to_string(made++));
    open.start = start;
    open.incarnation = incarnation;
    return topic.groups().open(open, lives).group->next().value;
  };
  using From = StartPosition::From;
  EXPECT_EQ(begin({From::offset, 25}), 20U) << "what is there now from 20 on it has not had";
  EXPECT_EQ(begin({From::offset, 20}), 20U);
  EXPECT_EQ(begin({From::offset, 7}), 7U);
  EXPECT_EQ(begin({From::first, 0}), 0U);
  EXPECT_EQ(begin({From::next, 0}), 30U);
}

TEST_F(GroupSetTest, AStartInAnotherLogIsRefusedUnlessTheGroupExists) {
  auto open = asked("g");
  open.incarnation = incarnation + 1;
  EXPECT_EQ(topic.groups().open(open, first_life).refusal, ClientError::incarnation_changed);
  open.incarnation = incarnation;
  EXPECT_EQ(topic.groups().open(open, first_life).refusal, ClientError::none);
  open.incarnation = incarnation + 1;
  open.start = {StartPosition::From::offset, 5};
  EXPECT_EQ(topic.groups().open(open, first_life).refusal, ClientError::none);
}

// --- Which groups keep the log ---

/// Publishes messages of 10 KiB until one is not accepted. Returns the outcome of that one.
PublishOutcome fill(GroupWorld& world) {
  for (int i = 0; i < 1000; ++i) {
    const auto outcome = world.publish({std::string(10 * limits::KiB, 'x')});
    if (outcome != PublishOutcome::accepted) return outcome;
  }
  return PublishOutcome::accepted;
}

TEST_F(GroupSetTest, TheSlowestGroupHoldsTheLogAndIsNamed) {
  Member quick, slow;
  join(quick, asked());
  join(slow, asked("slow"));
  EXPECT_EQ(fill(*this), PublishOutcome::held);
  dispatch();
  topic.set_producers_held(true);
  acknowledge_before(quick, 1'000'000);
  EXPECT_EQ(topic.blocked_by(), "group:slow");
  EXPECT_EQ(publish({std::string(10 * limits::KiB, 'x')}), PublishOutcome::held);
  acknowledge_before(slow, 50);
  EXPECT_TRUE(topic.dispatch({.now = now}).progress) << "an acknowledgement makes room";
  EXPECT_EQ(publish({std::string(10 * limits::KiB, 'x')}), PublishOutcome::accepted);
}

TEST_F(GroupSetTest, AHoldingCursorTakesNothingFromALaterGroup) {
  publish_numbers(0, 4);
  Member own;
  auto wish = asked("", GroupMode::own);
  wish.holds = true;
  wish.start = {StartPosition::From::next, 0};
  join(own, wish);
  dispatch();
  leave(own);
  dispatch();
  EXPECT_EQ(topic.log().first_offset(), Offset{0});
  FakeRecordSink puller(9, true);
  topic.attach_puller(puller);
  dispatch();
  EXPECT_THAT(puller.taken, ElementsAre("0", "1", "2", "3"));
}

TEST_F(GroupSetTest, AnOwnCursorHoldsTheLogOnlyIfAsked) {
  Member group, own;
  join(group, asked());
  auto open = asked("mine", GroupMode::own);
  open.credit.messages = 0;
  join(own, open);
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(publish({std::string(10 * limits::KiB, 'x')}), PublishOutcome::accepted);
    dispatch();
    acknowledge_before(group, 1'000'000);
  }
  EXPECT_GT(stats("mine").lost, 0U);
  EXPECT_EQ(topic.stats().dropped, 0U);
  EXPECT_TRUE(own.member->add_credit({1000, 0}));
  dispatch();
  ASSERT_FALSE(own.consumer.frames.empty());
  EXPECT_EQ(own.consumer.frames.front().lost, own.consumer.frames.front().range.begin.value);
  EXPECT_EQ(own.consumer.frames.back().lost, 0U) << "it is told once";
  const auto lost = stats("mine").lost;
  for (int i = 0; i < 200; ++i) {
    publish({std::string(10 * limits::KiB, 'x')});
    dispatch();
    acknowledge_before(group, 1'000'000);
  }
  reject(own, own.consumer.frames.front().range);
  EXPECT_EQ(stats("mine").lost, lost + 1) << "it was dropped meanwhile";
  EXPECT_EQ(topic.stats().dropped, 0U);

  GroupWorld world;
  Member holding;
  open.holds = true;
  world.join(holding, open);
  EXPECT_EQ(fill(world), PublishOutcome::held);
  world.topic.set_producers_held(true);
  EXPECT_EQ(world.topic.blocked_by(), "group:mine");
}

TEST(Groups, AMessageDroppedWhileInFlightIsLostOnlyIfItIsRequeued) {
  GroupWorld world(BrokerType::queue, Overflow::drop_oldest);
  Member member;
  world.join(member, asked());
  for (int i = 0; i < 10; ++i) world.publish({std::string(10 * limits::KiB, 'x')});
  world.dispatch();
  world.acknowledge(member, {{{0}, {4}}});
  world.dispatch();
  for (int i = 0; i < 200; ++i) world.publish({std::string(10 * limits::KiB, 'x')});
  const Offset first = world.topic.log().first_offset();
  ASSERT_GT(first, Offset{10});
  EXPECT_EQ(world.topic.stats().dropped, first.value - 10) << "the six that it has are not dropped for it";
  world.acknowledge(member, {{{4}, {6}}});
  world.leave(member);
  EXPECT_EQ(world.topic.stats().dropped, first.value - 6);
  EXPECT_EQ(world.stats().lost, first.value - 6);
  Member next;
  world.join(next, asked());
  world.dispatch();
  EXPECT_EQ(next.consumer.frames.front().lost, first.value - 6);
  EXPECT_EQ(next.consumer.payloads().size(), 210 - first.value);
  EXPECT_EQ(world.stats().lost, first.value - 6);
}

TEST(Groups, ANewGroupOfADirectTopicLosesNothingThatItNeverWanted) {
  GroupWorld world(BrokerType::direct);
  FakeRecordSink stalled(0);
  world.topic.attach_puller(stalled);
  world.publish_numbers(0, 3);
  Member member;
  world.join(member, asked("g"));
  world.publish_numbers(3, 4);
  world.dispatch();
  EXPECT_THAT(member.consumer.take(), ElementsAre("3"));
  EXPECT_EQ(world.topic.stats().dropped, 0U);
}

TEST(Groups, ADirectTopicKeepsNothingForAGroupWithoutConsumers) {
  GroupWorld world(BrokerType::direct);
  EXPECT_FALSE(world.topic.accepting());
  Member one, other;
  auto open = asked("g");
  open.credit.messages = 1;
  world.join(one, open);
  EXPECT_TRUE(world.topic.accepting());
  world.publish_numbers(0, 3);
  world.dispatch();
  EXPECT_THAT(one.consumer.take(), ElementsAre("0"));
  world.leave(one);
  EXPECT_FALSE(world.topic.accepting());
  EXPECT_EQ(world.topic.stats().dropped, 3U) << "what was not acknowledged, too";
  open.credit.messages = 10;
  world.join(other, open);
  world.publish_numbers(3, 4);
  world.dispatch();
  EXPECT_THAT(other.consumer.take(), ElementsAre("3"));
}

// --- Statistics, and stored cursors ---

TEST_F(GroupSetTest, StatisticsSayHowOldTheOldestIs) {
  Member member;
  join(member, asked());
  EXPECT_EQ(stats().oldest_ms, 0U);
  publish_numbers(0, 1);
  wall.us += 7'000'000;
  publish_numbers(1, 2);
  dispatch();
  wall.us += 3'000'000;
  EXPECT_EQ(stats().oldest_ms, 10'000U);
  acknowledge_before(member, 1);
  EXPECT_EQ(stats().oldest_ms, 3'000U);
  acknowledge_before(member, 2);
  EXPECT_EQ(stats().oldest_ms, 0U);
}

TEST_F(GroupSetTest, ARestoredGroupDeliversExactlyTheUnfinishedMessages) {
  Member member;
  FakeRecordSink puller(1, false);
  topic.attach_puller(puller);
  publish_numbers(0, 1);
  dispatch();
  join(member, asked());
  publish_numbers(1, 10);
  dispatch();
  acknowledge(member, {{{2}, {4}}, {{8}, {9}}});
  reject(member, {{5}, {6}}, 60'000);
  puller.give_room(0);
  reject(member, {{7}, {8}});
  const auto stored = test::stored_cursors(topic.groups(), clocks());
  ASSERT_EQ(stored.size(), 1U);

  GroupWorld next;
  next.publish_numbers(0, 12);
  test::restore_cursors(next.topic, stored, next.clocks());
  EXPECT_EQ(next.stats().next_offset, 10U);
  EXPECT_EQ(next.stats().lag, 7U + 2U);
  EXPECT_EQ(next.stats().retrying, 1U);
  Member heir;
  next.join(heir, asked());
  next.dispatch();
  EXPECT_THAT(heir.consumer.take(), ElementsAre("0", "1#2", "4#2", "6#2", "7#2", "9#2", "10", "11"));
  next.acknowledge_before(heir, 12);
  next.pass(std::chrono::milliseconds(59'999));
  next.dispatch();
  EXPECT_THAT(heir.consumer.take(), ElementsAre()) << "5 was rejected for a minute";
  next.pass(std::chrono::milliseconds(1'000));
  next.dispatch();
  EXPECT_EQ(heir.consumer.take().front(), "5#2");
}

TEST_F(GroupSetTest, NamesOnTheDiskTellTheKind) {
  Member group, own, holding, nameless;
  join(group, asked("a"));
  join(own, asked("b", GroupMode::own));
  auto open = asked("c", GroupMode::own);
  open.holds = true;
  join(holding, open);
  join(nameless, asked("", GroupMode::own));
  auto stored = test::stored_cursors(topic.groups());
  ASSERT_EQ(stored.size(), 3U) << "one without a name is not kept";
  stored.push_back({"sub:7", {}});
  GroupWorld next;
  test::restore_cursors(next.topic, stored);
  EXPECT_EQ(test::stored_cursors(next.topic.groups()).size(), 3U) << "a subscriber's is no group";
  const auto terms = [&](const char* name) { return next.topic.groups().find(name)->terms(); };
  EXPECT_EQ(terms("a").mode, GroupMode::group);
  EXPECT_EQ(terms("b").mode, GroupMode::own);
  EXPECT_TRUE(terms("a").holds && terms("c").holds);
  EXPECT_FALSE(terms("b").holds);
}

}  // namespace
}  // namespace lightq::broker
