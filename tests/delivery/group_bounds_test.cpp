/// Tests of the limits of a group and the cost of its work: ranges, members, sums. They count work, and
/// measure no times.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "admission/turn_work.hpp"
#include "delivery/consumer_group_harness.hpp"
#include "delivery/consumer_groups.hpp"

namespace lightq::broker {
namespace {

using std::chrono::milliseconds;
using test::asked;
using test::GroupWorld;
using test::Member;

class GroupBounds : public testing::Test, public GroupWorld {};

/// Makes groups of `user`. Their members acknowledge every other message and leave, until the group stops
/// delivering.
void scatter(GroupWorld& world, std::uint64_t user, int groups, std::uint64_t messages) {
  for (int group = 0; group < groups; ++group) {
    const auto open = asked("u" + std::to_string(user) + "g" + std::to_string(group));
    for (int member = 0; member < 8; ++member) {
      Member scattering;
      ASSERT_EQ(world.join(scattering, open, user), ClientError::none);
      world.dispatch();
      std::vector<OffsetRange> every_second;
      for (std::uint64_t i = 1; i < messages; i += 2) every_second.push_back({{i}, {i + 1}});
      world.acknowledge(scattering, every_second);
      world.leave(scattering);
    }
  }
}

TEST_F(GroupBounds, ScatteredAcknowledgementsOfAllGroupsAreBoundedInAllAndByUser) {
  constexpr std::uint64_t mallory = 7;
  constexpr std::uint64_t alice = 8;
  constexpr int groups = 20;
  GroupWorld bounded(512);
  bounded.publish(std::vector<std::string>(4000, "x"));
  scatter(bounded, mallory, groups, 4000);
  EXPECT_LE(bounded.budget.ranges.total(), 512U - 512 / 8 + groups * 16) << "16 of each group are free";
  EXPECT_GT(bounded.budget.ranges.total(), 350U) << "the bound is what stops it";
  Member other;
  bounded.join(other, asked("alice"), alice);
  bounded.dispatch();
  EXPECT_EQ(other.consumer.take().size(), 4000U);
  std::vector<OffsetRange> some;
  for (std::uint64_t i = 1; i < 100; i += 2) some.push_back({{i}, {i + 1}});
  EXPECT_TRUE(other.group->acknowledge(*other.member, {std::nullopt, some})) << "room is left for her";
}

TEST_F(GroupBounds, RangesAreGivenBackWithTheGroupAndItsMembers) {
  GroupWorld bounded(1024);
  bounded.publish(std::vector<std::string>(100, "x"));
  Member member;
  bounded.join(member, asked("g"), 7);
  bounded.dispatch();
  for (std::uint64_t i = 1; i < 100; i += 2) bounded.acknowledge(member, {{{i}, {i + 1}}});
  EXPECT_EQ(bounded.budget.ranges.total(), 50U);
  bounded.leave(member);
  const std::size_t bytes = bounded.topic.groups().find("g")->messages().redelivery().bytes();
  EXPECT_GT(bytes, 50U);
  EXPECT_EQ(bounded.budget.ranges.total(), (bytes + 63) / 64) << "they wait for another member";
  bounded.topic.groups().remove(*bounded.topic.groups().find("g"));
  EXPECT_EQ(bounded.budget.ranges.total(), 0U);
}

TEST_F(GroupBounds, MembersOfAllGroupsAreBoundedInAllAndByUser) {
  constexpr std::uint64_t mallory = 7;
  const LogLives lives(incarnation);
  RangeBudget small(limits::group_ranges_total, 16);
  test::TopicOnLog crowded({TopicId{1}, *TopicName::parse("t"), {.broker_type = protocol::BrokerType::queue}},
                           limits::MiB, wall, {}, &small);
  test::FakeConsumer consumer;
  std::vector<std::pair<ConsumerGroup*, GroupMember*>> members;
  for (int i = 0;; ++i) {
    ASSERT_LT(i, 17);
    const auto open = asked("g" + std::to_string(i % 3));
    const auto opened = crowded.groups().open(open, lives, mallory);
    if (opened.refusal != ClientError::none) {
      EXPECT_EQ(opened.crowd, ConsumerGroups::Crowd::members_of_all);
      break;
    }
    members.emplace_back(opened.group, &crowded.groups().attach(*opened.group, consumer, open, mallory));
  }
  EXPECT_EQ(members.size(), 14U) << "the last eighth is left to others";
  EXPECT_EQ(crowded.groups().open(asked("g0"), lives, 8).refusal, ClientError::none);
  for (const auto& [group, member] : members) crowded.groups().detach(*group, *member);
  EXPECT_EQ(small.members.total(), 0U);
}

TEST_F(GroupBounds, AnAcknowledgementThatWouldScatterTooMuchStopsHalfWay) {
  GroupWorld bounded(64);
  bounded.publish(std::vector<std::string>(1000, "x"));
  Member member;
  bounded.join(member, asked("g"), 7);
  bounded.dispatch();
  std::vector<OffsetRange> every_second;
  for (std::uint64_t i = 1; i < 1000; i += 2) every_second.push_back({{i}, {i + 1}});
  EXPECT_FALSE(member.group->acknowledge(*member.member, {std::nullopt, every_second}));
  EXPECT_LE(member.member->outstanding().ranges(), 64U);
  EXPECT_TRUE(member.group->acknowledge(*member.member, {Offset{999}, {}})) << "what makes it less is taken";
}

TEST_F(GroupBounds, ExtendingCountsEveryPieceAsWorkOfTheTurn) {
  constexpr std::uint64_t pieces = 200;
  publish(std::vector<std::string>(2 * pieces, "x"));
  Member member;
  join(member, asked());
  dispatch();
  std::vector<OffsetRange> every_second;
  for (std::uint64_t i = 1; i < 2 * pieces; i += 2) every_second.push_back({{i}, {i + 1}});
  acknowledge(member, every_second);
  const std::uint64_t before = TurnWork::bytes();
  EXPECT_TRUE(member.group->extend(*member.member, {1'000, {{{0}, {std::uint64_t{1} << 62}}}}, now));
  EXPECT_GE(TurnWork::bytes() - before, pieces * TurnWork::range_passed);
}

TEST_F(GroupBounds, SeekVisitsOnlyMembersThatHaveMessages) {
  constexpr int idle_members = 500;
  std::vector<Member> idle(idle_members);
  auto without_credit = asked();
  without_credit.credit.messages = 0;
  for (Member& member : idle) join(member, without_credit, 7);
  Member busy;
  join(busy, asked(), 8);
  publish(std::vector<std::string>(10, "x"));
  dispatch();
  ASSERT_EQ(stats().unacknowledged, 10U);
  EXPECT_EQ(busy.group->standing().members_of(7), std::size_t{idle_members});
  EXPECT_EQ(busy.group->standing().members_of(8), 1U);
  const std::uint64_t before = TurnWork::bytes();
  busy.group->seek({0});
  EXPECT_LT(TurnWork::bytes() - before, 10 * TurnWork::member_visited);
  EXPECT_EQ(stats().unacknowledged, 0U);
  for (Member& member : idle) leave(member);
  EXPECT_EQ(busy.group->standing().members_of(7), 0U);
}

TEST_F(GroupBounds, SeekForgetsMessagesThatWereTakenBackByTheTimeout) {
  publish_numbers(0, 4);
  Member slow;
  slow.consumer.wants_late = true;
  auto once = asked();
  once.credit.messages = 4;
  once.ack_timeout_ms = 1000;
  join(slow, once);
  dispatch();
  pass(milliseconds(1020));
  dispatch();
  ASSERT_TRUE(slow.member->has_overdue());
  slow.group->seek({0});
  EXPECT_FALSE(slow.member->has_overdue());
}

TEST_F(GroupBounds, TheStateOfAllGroupsIsKeptWhole) {
  constexpr std::uint64_t pieces = 5000;
  publish(std::vector<std::string>(2 * pieces, "x"));
  std::vector<OffsetRange> every_second;
  for (std::uint64_t i = 1; i < 2 * pieces; i += 2) every_second.push_back({{i}, {i + 1}});
  std::vector<Member> members(10);
  for (std::size_t i = 0; i < members.size(); ++i) {
    join(members[i], asked("g" + std::to_string(i)));
    dispatch();
    acknowledge(members[i], every_second);
  }
  for (const auto& cursor : test::stored_cursors(topic.groups()))
    EXPECT_EQ(test::processed(cursor), every_second) << cursor.name;
}

TEST_F(GroupBounds, StatisticsAreSumsOfTheCountedEvents) {
  Member first;
  Member second;
  join(first, asked());
  join(second, asked());
  publish(std::vector<std::string>(10, "x"));
  publish(std::vector<std::string>(10, "x"));
  dispatch();
  EXPECT_EQ(stats().unacknowledged, 20U);
  EXPECT_EQ(stats().committed_offset, 0U);
  acknowledge(first, {{{0}, {3}}, {{5}, {7}}});
  EXPECT_EQ(stats().unacknowledged, 15U);
  EXPECT_EQ(stats().committed_offset, 3U);
  leave(first);
  EXPECT_EQ(stats().unacknowledged, 10U);
  EXPECT_EQ(stats().committed_offset, 3U);
  leave(second);
  EXPECT_EQ(stats().unacknowledged, 0U);
}

TEST_F(GroupBounds, StatisticsPassNoRangeThatAGroupKeeps) {
  constexpr int groups = 20;
  GroupWorld scattered(std::size_t{100'000});
  scattered.publish(std::vector<std::string>(1000, "x"));
  scatter(scattered, 7, groups, 1000);
  std::size_t kept = 0;
  for (const auto& cursor : test::stored_cursors(scattered.topic.groups()))
    kept += test::processed(cursor).size();
  ASSERT_GT(kept, 5'000U);
  Member busy;
  scattered.join(busy, asked("busy"), 7);
  scattered.dispatch();
  std::vector<OffsetRange> every_second;
  for (std::uint64_t i = 1; i < 1000; i += 2) every_second.push_back({{i}, {i + 1}});
  scattered.acknowledge(busy, every_second);
  ASSERT_GT(busy.member->outstanding().ranges(), 400U);
  const std::uint64_t before = TurnWork::bytes();
  const auto shown = scattered.topic.stats(scattered.wall);
  EXPECT_EQ(shown.groups.size(), std::size_t{groups} + 1);
  // Finds the time when each message was stored.
  const std::uint64_t oldest = (groups + 1) * TurnWork::batch_looked_at;
  EXPECT_LE(TurnWork::bytes() - before, oldest) << "and no range of any group";
  EXPECT_GT(kept * TurnWork::range_passed, oldest) << "or this would show nothing";
}

TEST_F(GroupBounds, PendingCountsMessagesInEveryState) {
  Member first;
  join(first, asked());
  publish_numbers(0, 10);
  const auto expect = [&](std::uint64_t ready, std::uint64_t in_flight, std::uint64_t retrying) {
    const auto shown = stats();
    EXPECT_EQ(shown.pending, 10U);
    EXPECT_EQ(shown.ready, ready);
    EXPECT_EQ(shown.in_flight, in_flight);
    EXPECT_EQ(shown.retrying, retrying);
    EXPECT_EQ(shown.lag, ready + retrying);
    EXPECT_EQ(topic.stats(wall).queue_size, ready + retrying);
  };
  expect(10, 0, 0);
  dispatch();
  expect(0, 10, 0);
  reject(first, {{0}, {10}}, 60'000);
  dispatch();
  expect(0, 0, 10);
  pass(milliseconds(61'000));
  topic.set_paused(true);
  dispatch();
  expect(10, 0, 0);
  topic.set_paused(false);
  dispatch();
  expect(0, 10, 0);
  acknowledge(first, {});
  leave(first);
  expect(10, 0, 0);
}

TEST_F(GroupBounds, ADispatchAsksOnlyMembersWithCredit) {
  constexpr std::size_t many = 1000;
  std::vector<Member> idle(many);
  auto without_credit = asked();
  without_credit.credit.messages = 0;
  for (Member& member : idle) join(member, without_credit);
  Member busy;
  join(busy, asked());
  publish({"first"});
  dispatch();
  const std::uint64_t before = busy.group->standing().members_asked;
  for (int i = 0; i < 100; ++i) {
    publish({"x"});
    dispatch();
  }
  EXPECT_EQ(busy.consumer.take().size(), 101U);
  EXPECT_LE(busy.group->standing().members_asked - before, 300U) << "not 100,000";
  ASSERT_TRUE(idle[500].member->add_credit({1, 0}));
  publish({"y", "z"});
  dispatch();
  EXPECT_EQ(idle[500].consumer.take().size() + busy.consumer.take().size(), 2U);
}

TEST_F(GroupBounds, ManyDueTimesAreNotWalkedOverAgainForEach) {
  constexpr std::uint64_t messages = 4000;
  Member member;
  join(member, asked());
  publish(std::vector<std::string>(messages, "x"));
  dispatch();
  for (std::uint64_t i = 0; i < messages; i += 2)
    reject(member, {{i}, {i + 1}}, static_cast<std::uint32_t>(10 + 10 * (i % 1000)));
  acknowledge_before(member, messages);
  member.consumer.take();
  member.member->rest();
  const std::uint64_t before = TurnWork::bytes();
  for (int i = 0; i < 1000; ++i) {  // 10 s
    pass(milliseconds(10));
    member.group->tend({.now = now});
  }
  EXPECT_LE(TurnWork::bytes() - before, (messages / 2 * 8 + 1000) * TurnWork::range_passed)
      << "each range is walked over when it is due";
  pass(milliseconds(5000));
  member.member->wake();
  dispatch();
  EXPECT_GE(member.consumer.take().size(), messages / 2) << "all of them came again";
}

}  // namespace
}  // namespace lightq::broker
