/// Tests of members with leases: hand-out numbers, started messages, silent clients and revocations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "delivery/group_lease_fixture.hpp"

namespace lightq::test {
namespace {

using broker::RevokeCause;
using std::chrono::milliseconds;
using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(GroupLeaseTest, ANewMemberHasTheHandOutNumberOne) {
  Member member, other;
  join(member, with_leases());
  publish_numbers(0, 3);
  dispatch();
  ASSERT_EQ(member.consumer.frames.size(), 1U);
  EXPECT_EQ(member.consumer.frames[0].hand_out, 1U);
  leave(member);
  join(other, asked());
  dispatch();
  EXPECT_EQ(other.consumer.frames.at(0).hand_out, 0U) << "without leases";
}

TEST_F(GroupLeaseTest, MessagesThatAreNotStartedHaveNoTimeout) {
  Member member;
  join(member, with_leases());
  publish_numbers(0, 3);
  dispatch();
  pass(minutes(24 * 60));
  dispatch();
  EXPECT_EQ(stats().unacknowledged, 3U);
  acknowledge(member, {{0}, {3}}, 1);
  EXPECT_EQ(stats().committed_offset, 3U);
}

TEST_F(GroupLeaseTest, TheProcessingTimeoutRunsFromTheStartAndCounts) {
  Member member;
  join(member, with_leases());
  publish_numbers(0, 3);
  dispatch();
  member.consumer.take();
  pass(minutes(29));
  start(member, {{0}, {1}}, 1);
  pass(minutes(29));
  dispatch();
  EXPECT_THAT(member.consumer.take(), IsEmpty());
  pass(minutes(2));
  dispatch();
  EXPECT_THAT(member.consumer.take(), ElementsAre("0#2"));
  EXPECT_THAT(member.consumer.revocations,
              ElementsAre(FakeConsumer::Revocation{RevokeCause::processing_timeout, 2, {{{0}, {1}}}}));
  expect_partition();
}

TEST_F(GroupLeaseTest, AConsumerChoosesItsProcessingTimeout) {
  Member member;
  auto open = with_leases();
  open.ack_timeout_ms = 1000;
  join(member, open);
  publish_numbers(0, 2);
  dispatch();
  member.consumer.take();
  start(member, {{0}, {1}}, 1);
  pass(milliseconds(1020));
  dispatch();
  EXPECT_THAT(member.consumer.take(), ElementsAre("0#2"));
}

TEST_F(GroupLeaseTest, WithoutAProcessingTimeoutAMessageStays) {
  broker::GroupLimits limits;
  limits.processing_timeout_ms = 0;
  GroupWorld world(1000, limits);
  Member member;
  world.join(member, with_leases());
  world.publish_numbers(0, 2);
  world.dispatch();
  member.group->start(*member.member, {Offset{2}, {}, 1}, world.now);
  world.pass(minutes(24 * 60));
  world.dispatch();
  EXPECT_EQ(world.stats().unacknowledged, 2U);
  EXPECT_EQ(world.stats().redelivered, 0U);
}

TEST_F(GroupLeaseTest, AStartBeforeTheDeliveryCountsForLaterMessages) {
  Member member;
  join(member, with_leases());
  publish_numbers(0, 2);
  dispatch();
  start(member, {{0}, {4}}, 1);
  publish_numbers(2, 6);
  dispatch();
  leave(member);
  Member other;
  join(other, asked());
  dispatch();
  EXPECT_THAT(other.consumer.take(), ElementsAre("0#2", "1#2", "2#2", "3#2", "4", "5"));
}

TEST_F(GroupLeaseTest, TheWindowOfStartedMessagesEndsWithItsHandOut) {
  Member member;
  join(member, with_leases());
  publish_numbers(0, 2);
  dispatch();
  start(member, {{0}, {4}}, 1);
  release(member, {{0}, {1}}, 1);
  publish_numbers(2, 4);
  dispatch();
  member.consumer.take();
  leave(member);
  Member other;
  join(other, asked());
  dispatch();
  EXPECT_THAT(other.consumer.take(), ElementsAre("0", "1#2", "2", "3")) << "2 and 3 have the number 2";
}

TEST_F(GroupLeaseTest, ALostSessionCountsOnlyWhatWasStarted) {
  Member member, other;
  join(member, with_leases());
  publish_numbers(0, 5);
  dispatch();
  start(member, {{0}, {2}}, 1);
  leave(member);
  join(other, asked());
  dispatch();
  EXPECT_THAT(other.consumer.take(), ElementsAre("0#2", "1#2", "2", "3", "4"));
  expect_partition();
}

TEST_F(GroupLeaseTest, AReleaseIsNotCountedAndARejectIs) {
  Member member;
  join(member, with_leases(4));
  publish_numbers(0, 4);
  dispatch();
  member.consumer.take();
  start(member, {{0}, {2}}, 1);
  release(member, {{0}, {1}}, 1);
  reject(member, {{1}, {2}}, 1);
  release(member, {{2}, {3}}, 1);
  reject(member, {{3}, {4}}, 1);
  Member other;
  join(other, asked());
  dispatch();
  EXPECT_THAT(other.consumer.take(), ElementsAre("0", "1#2", "2", "3#2"));
}

TEST_F(GroupLeaseTest, DeliveriesThatDoNotCountAreNoRedeliveries) {
  Member member, other;
  join(member, with_leases());
  publish_numbers(0, 4);
  dispatch();
  release(member, {{0}, {1}}, 1);
  dispatch();
  EXPECT_EQ(stats().redelivered, 0U) << "0 again, as the first time";
  reject(member, {{1}, {3}}, 1);
  dispatch();
  EXPECT_EQ(stats().redelivered, 2U) << "1 and 2 for the second time";
  release(member, {{1}, {3}}, 3);
  dispatch();
  EXPECT_EQ(stats().redelivered, 2U) << "still for the second time";
  leave(member);
  join(other, with_leases());
  dispatch();
  EXPECT_EQ(stats().redelivered, 2U);
  reject(other, {{1}, {2}}, 1);
  dispatch();
  EXPECT_EQ(stats().redelivered, 3U) << "1 for the third time";
  EXPECT_EQ(other.consumer.frames.back().delivery, 3U);
}

TEST_F(GroupLeaseTest, AnAcknowledgementOfAnEarlierHandOutFinishesNothing) {
  Member member;
  auto open = with_leases();
  open.ack_timeout_ms = 1000;
  join(member, open);
  publish_numbers(0, 2);
  dispatch();
  start(member, {{0}, {2}}, 1);
  pass(milliseconds(1020));
  dispatch();
  EXPECT_THAT(member.consumer.take(), ElementsAre("0", "1", "0#2", "1#2"));
  EXPECT_EQ(stats().unacknowledged, 2U);
  acknowledge(member, {{0}, {2}}, 1);
  EXPECT_EQ(stats().committed_offset, 0U);
  EXPECT_THAT(member.consumer.was_late, ElementsAre(OffsetRange{{0}, {2}}));
  acknowledge(member, {{0}, {2}}, 1);
  EXPECT_THAT(member.consumer.was_late, ElementsAre(OffsetRange{{0}, {2}})) << "each is told once";
  acknowledge(member, {{0}, {2}}, 2);
  EXPECT_EQ(stats().committed_offset, 2U);
}

TEST_F(GroupLeaseTest, AnAcknowledgementLeavesLateMessagesOfEarlierHandOuts) {
  Member member;
  auto open = with_leases(2);
  open.ack_timeout_ms = 1000;
  join(member, open);
  publish_numbers(0, 4);
  dispatch();
  start(member, {{0}, {2}}, 1);
  pass(milliseconds(1020));
  dispatch();  // 0 and 1 are overdue
  Member other;
  join(other, with_leases(2));
  dispatch();
  EXPECT_THAT(other.consumer.take(), ElementsAre("0#2", "1#2"));
  ASSERT_TRUE(member.member->add_credit({2, 1000}));
  dispatch();
  EXPECT_EQ(member.consumer.frames.back().hand_out, 2U);
  member.group->acknowledge(*member.member, {Offset{4}, {}, 2});
  EXPECT_THAT(member.consumer.was_late, IsEmpty()) << "it has acknowledged 2 and 3 only";
  acknowledge(member, {{0}, {2}}, 1);
  EXPECT_THAT(member.consumer.was_late, ElementsAre(OffsetRange{{0}, {2}}));
}

TEST_F(GroupLeaseTest, RejectsAndExtensionsOfAnEarlierHandOutAreLate) {
  Member member;
  auto open = with_leases();
  open.ack_timeout_ms = 1000;
  join(member, open);
  publish_numbers(0, 2);
  dispatch();
  start(member, {{0}, {2}}, 1);
  pass(milliseconds(1020));
  dispatch();
  reject(member, {{0}, {1}}, 1);
  member.group->extend(*member.member, {60'000, {{{1}, {2}}}, 1}, now);
  EXPECT_THAT(member.consumer.was_late, ElementsAre(OffsetRange{{0}, {1}}, OffsetRange{{1}, {2}}));
  EXPECT_EQ(stats().unacknowledged, 2U);
}

TEST_F(GroupLeaseTest, AnAcknowledgementIsLateEvenIfTheMessageStillWaits) {
  Member member;
  auto open = with_leases(1);
  open.ack_timeout_ms = 1000;
  join(member, open);
  publish_numbers(0, 1);
  dispatch();
  start(member, {{0}, {1}}, 1);
  pass(milliseconds(1020));
  dispatch();
  acknowledge(member, {{0}, {1}}, 1);
  EXPECT_THAT(member.consumer.was_late, ElementsAre(OffsetRange{{0}, {1}}));
  EXPECT_EQ(stats().committed_offset, 0U);
}

TEST_F(GroupLeaseTest, OnlyWhatASilentClientHasNotStartedGoesToOthers) {
  Member member, other;
  join(member, with_leases());
  publish_numbers(0, 4);
  dispatch();
  start(member, {{0}, {1}}, 1);
  fall_silent(member);
  dispatch();
  EXPECT_EQ(stats().unacknowledged, 4U) << "nobody else can take them";
  join(other, with_leases());
  dispatch();
  EXPECT_THAT(other.consumer.take(), ElementsAre("1", "2", "3"));
  EXPECT_THAT(member.consumer.revocations,
              ElementsAre(FakeConsumer::Revocation{RevokeCause::silent, 2, {{{1}, {4}}}}));
  pass(minutes(20));
  speak(member);
  acknowledge(member, {{0}, {4}}, 1);
  EXPECT_THAT(member.consumer.was_late, ElementsAre(OffsetRange{{1}, {4}}));
  acknowledge(other, {{1}, {4}}, 1);
  EXPECT_EQ(stats().committed_offset, 4U);
}

TEST_F(GroupLeaseTest, ASilentClientKeepsItsMessagesUntilAnotherMemberHasCredit) {
  Member member, other;
  join(member, with_leases());
  publish_numbers(0, 4);
  dispatch();
  join(other, with_leases(0));
  fall_silent(member);
  dispatch();
  EXPECT_EQ(stats().unacknowledged, 4U);
  EXPECT_THAT(member.consumer.revocations, IsEmpty());
  ASSERT_TRUE(other.member->add_credit({2, 1000}));
  dispatch();
  EXPECT_THAT(other.consumer.take(), ElementsAre("0", "1"));
  EXPECT_EQ(stats().ready, 2U);
  expect_partition();
}

TEST_F(GroupLeaseTest, ManyRangesAreTakenBackFromASilentClientInSeveralTurns) {
  constexpr std::uint64_t messages = 4000;
  Member member, other;
  join(member, with_leases());
  publish_numbers(0, static_cast<int>(messages));
  dispatch();
  for (std::uint64_t at = 0; at < messages; at += 2) start(member, {{at}, {at + 1}}, 1);
  join(other, with_leases());
  fall_silent(member);
  const auto revoked = [&] {
    std::size_t ranges = 0;
    for (const auto& revocation : member.consumer.revocations) ranges += revocation.ranges.size();
    return ranges;
  };
  topic.answer_at_once();
  EXPECT_TRUE(topic.dispatch({.now = now, .wall = wall}).more);
  EXPECT_EQ(revoked(), 1024U);
  dispatch();
  EXPECT_EQ(revoked(), messages / 2);
  EXPECT_EQ(other.consumer.payloads().size(), messages / 2);
  EXPECT_EQ(stats().unacknowledged, messages);
}

TEST_F(GroupLeaseTest, AClientThatSpeaksInTimeKeepsItsMessages) {
  Member member, other;
  join(member, with_leases());
  publish_numbers(0, 4);
  dispatch();
  fall_silent(member);
  speak(member);
  join(other, with_leases());
  dispatch();
  EXPECT_THAT(other.consumer.take(), IsEmpty());
  EXPECT_EQ(stats().unacknowledged, 4U);
}

TEST_F(GroupLeaseTest, APlainConsumerTakesOverFromASilentClient) {
  Member member;
  FakeRecordSink plain(100, true);
  join(member, with_leases());
  publish_numbers(0, 3);
  dispatch();
  fall_silent(member);
  topic.groups().attach(plain);
  dispatch();
  EXPECT_THAT(plain.taken, ElementsAre("0", "1", "2"));
  topic.groups().detach(plain);
}

TEST_F(GroupLeaseTest, AMemberThatTimedOutReceivesMessagesAgain) {
  Member member;
  auto open = with_leases();
  open.ack_timeout_ms = 1000;
  join(member, open);
  publish_numbers(0, 1);
  dispatch();
  start(member, {{0}, {1}}, 1);
  fall_silent(member);
  pass(milliseconds(1020));
  dispatch();
  EXPECT_EQ(stats().ready, 1U);
  member.consumer.take();
  speak(member);
  dispatch();
  EXPECT_THAT(member.consumer.take(), ElementsAre("0#2"));
}

TEST_F(GroupLeaseTest, ASeekAndAPurgeRevokeTheMessagesOfAllMembers) {
  Member first, second, old;
  join(first, with_leases(2));
  join(second, with_leases(2));
  join(old, asked());
  publish_numbers(0, 2);
  publish_numbers(2, 4);
  publish_numbers(4, 6);
  dispatch();
  first.group->seek(Offset{0});
  EXPECT_THAT(first.consumer.revocations,
              ElementsAre(FakeConsumer::Revocation{RevokeCause::seek, 2, {{{0}, {2}}}}));
  EXPECT_THAT(second.consumer.revocations,
              ElementsAre(FakeConsumer::Revocation{RevokeCause::seek, 2, {{{2}, {4}}}}));
  EXPECT_THAT(old.consumer.revocations, IsEmpty());
  EXPECT_EQ(stats().unacknowledged, 0U);
  acknowledge(first, {{0}, {2}}, 1);
  EXPECT_THAT(first.consumer.was_late, ElementsAre(OffsetRange{{0}, {2}}));
  ASSERT_TRUE(first.member->add_credit({1, 1000}));
  dispatch();
  EXPECT_EQ(first.consumer.frames.back().hand_out, 2U);
  EXPECT_EQ(first.consumer.frames.back().delivery, 1U) << "a seek begins the count anew";
  topic.groups().pass_over(*first.group);
  EXPECT_EQ(first.consumer.revocations.back().cause, RevokeCause::purge);
}

TEST_F(GroupLeaseTest, ASeekBeginsANewHandOutAlsoIfNothingIsInFlight) {
  Member member;
  join(member, with_leases());
  publish_numbers(0, 2);
  dispatch();
  acknowledge(member, {{0}, {2}}, 1);
  member.group->seek(Offset{0});
  EXPECT_THAT(member.consumer.revocations, IsEmpty());
  start(member, {{0}, {2}}, 1);  // sent before the client knew of the seek
  dispatch();
  EXPECT_EQ(member.consumer.frames.back().hand_out, 2U);
  acknowledge(member, {{0}, {2}}, 1);
  EXPECT_EQ(stats().committed_offset, 0U) << "of the hand-out before the seek";
  leave(member);
  Member other;
  join(other, with_leases());
  dispatch();
  EXPECT_EQ(other.consumer.frames.front().hand_out, 1U) << "it joined after the seek";
  EXPECT_THAT(other.consumer.take(), ElementsAre("0", "1")) << "the second hand-out was not started";
}

TEST_F(GroupLeaseTest, ARevocationForLostRightsCountsWhatWasStarted) {
  Member member, other;
  join(member, with_leases());
  publish_numbers(0, 3);
  dispatch();
  start(member, {{0}, {1}}, 1);
  member.group->returns().tell_end(*member.member, RevokeCause::rights);
  EXPECT_THAT(member.consumer.revocations,
              ElementsAre(FakeConsumer::Revocation{RevokeCause::rights, 2, {{{0}, {3}}}}));
  EXPECT_EQ(stats().unacknowledged, 3U) << "they are requeued when the member leaves";
  leave(member);
  join(other, asked());
  dispatch();
  EXPECT_THAT(other.consumer.take(), ElementsAre("0#2", "1", "2"));
}

TEST_F(GroupLeaseTest, AMemberWithoutLeasesIsNotToldOfItsEndAndItsDeliveriesCount) {
  Member member, other;
  join(member, asked());
  publish_numbers(0, 2);
  dispatch();
  member.group->returns().tell_end(*member.member, RevokeCause::rights);
  EXPECT_THAT(member.consumer.revocations, IsEmpty());
  leave(member);
  join(other, asked());
  dispatch();
  EXPECT_THAT(other.consumer.take(), ElementsAre("0#2", "1#2"));
}

TEST_F(GroupLeaseTest, ASavedGroupCountsOnlyStartedDeliveries) {
  Member member;
  join(member, with_leases());
  publish_numbers(0, 4);
  dispatch();
  start(member, {{0}, {2}}, 1);
  const broker::DeliveryCounts counts(stored().unfinished.delivery_bits);
  EXPECT_EQ(counts.of({0}), 1U);
  EXPECT_EQ(counts.of({1}), 1U);
  EXPECT_EQ(counts.of({2}), 0U);
  EXPECT_EQ(counts.of({3}), 0U);
}

TEST_F(GroupLeaseTest, HandOutsKeepMessagesInOneRange) {
  Member member;
  join(member, with_leases());
  for (int i = 0; i < 100; ++i) {
    publish_numbers(10 * i, 10 * i + 10);
    dispatch();
  }
  EXPECT_EQ(member.member->outstanding().ranges(), 1U);
  start(member, {{0}, {500}}, 1);
  EXPECT_EQ(member.member->outstanding().ranges(), 2U);
  acknowledge(member, {{0}, {500}}, 1);
  EXPECT_EQ(member.member->outstanding().ranges(), 1U);
}

}  // namespace
}  // namespace lightq::test
