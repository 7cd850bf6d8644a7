/// Tests of a group: credit, acknowledgements, redelivery.
#include "delivery/consumer_groups.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>

#include "delivery/consumer_group_harness.hpp"

namespace lightq::broker {
namespace {

using std::chrono::milliseconds;
using test::asked;
using test::GroupWorld;
using test::Member;
using testing::ElementsAre;
using testing::IsEmpty;

class GroupTest : public testing::Test, public GroupWorld {};

// --- Credit ---

TEST_F(GroupTest, NoMoreMessagesComeThanThereIsCreditFor) {
  Member member;
  auto open = asked();
  open.credit.messages = 3;
  join(member, open);
  publish({"a", "b"});
  publish({"c", "d", "e"});
  dispatch();
  EXPECT_THAT(member.consumer.take(), ElementsAre("a", "b", "c"));
  dispatch();
  EXPECT_THAT(member.consumer.take(), IsEmpty());
  EXPECT_TRUE(member.member->add_credit({1, 0}));
  dispatch();
  EXPECT_THAT(member.consumer.take(), ElementsAre("d"));
  EXPECT_TRUE(member.member->add_credit({9, 0}));
  dispatch();
  EXPECT_THAT(member.consumer.take(), ElementsAre("e"));
  EXPECT_EQ(member.member->messages_left(), 8U);
}

TEST_F(GroupTest, OneByteOfCreditPermitsAMessageOfAnySize) {
  Member member;
  auto open = asked();
  open.credit.bytes = 5;
  join(member, open);
  publish({"1234", "1234567890", "x"});
  dispatch();
  EXPECT_THAT(member.consumer.take(), ElementsAre("1234", "1234567890"));
  EXPECT_TRUE(member.member->add_credit({0, 9}));
  dispatch();
  EXPECT_THAT(member.consumer.take(), IsEmpty()) << "nine bytes were owed";
  EXPECT_TRUE(member.member->add_credit({0, 1}));
  dispatch();
  EXPECT_THAT(member.consumer.take(), ElementsAre("x"));
}

TEST_F(GroupTest, ExactlyTheCreditIsEnoughForTheLastByte) {
  Member member;
  auto open = asked();
  open.credit.bytes = 4;
  join(member, open);
  publish({"1234", ""});
  dispatch();
  EXPECT_THAT(member.consumer.take(), ElementsAre("1234")) << "no byte is left, not even for nothing";
}

TEST_F(GroupTest, CreditHasALimit) {
  Member member;
  auto open = asked();
  open.credit.messages = Credit::messages_max;
  open.credit.bytes = Credit::bytes_max - 1;
  join(member, open);
  EXPECT_TRUE(member.member->add_credit({0, 1}));
  EXPECT_FALSE(member.member->add_credit({0, 1}));
  EXPECT_FALSE(member.member->add_credit({1, 0}));
}

TEST_F(GroupTest, CompleteBatchesAreDeliveredWholeAndOthersInParts) {
  topic.answer_at_once();
  Member member;
  auto open = asked();
  open.credit.messages = 5;
  join(member, open);
  publish_numbers(0, 3);
  publish_numbers(3, 7);
  dispatch();
  ASSERT_EQ(member.consumer.frames.size(), 2U);
  EXPECT_TRUE(member.consumer.frames[0].whole);
  EXPECT_FALSE(member.consumer.frames[1].whole);
  EXPECT_EQ(member.consumer.frames[1].range, (OffsetRange{{3}, {5}}));
  EXPECT_TRUE(member.consumer.ends_with_its_bytes);
  EXPECT_EQ(member.consumer.flushes, 1);
  member.consumer.take();
  EXPECT_TRUE(member.member->add_credit({5, 0}));
  dispatch();
  EXPECT_THAT(member.consumer.take(), ElementsAre("5", "6")) << "the batch's rest";
}

TEST_F(GroupTest, NothingIsDeliveredBeforeAMemberBeginsOrWhileItIsNotWritable) {
  Member early;
  const auto opened = topic.groups().open(asked(), first_life);
  early.member = &topic.groups().attach(*opened.group, early.consumer, asked());
  publish({"a"});
  dispatch();
  EXPECT_THAT(early.consumer.take(), IsEmpty());
  early.member->begin();
  early.consumer.is_writable = false;
  dispatch();
  EXPECT_THAT(early.consumer.take(), IsEmpty());
  early.consumer.is_writable = true;
  early.member->wake();
  dispatch();
  EXPECT_THAT(early.consumer.take(), ElementsAre("a"));
}

TEST_F(GroupTest, AMemberWithoutCreditIsSkipped) {
  Member without_messages, without_bytes, other;
  auto open = asked();
  open.credit.messages = 0;
  join(without_messages, open);
  open = asked();
  open.credit.bytes = 0;
  join(without_bytes, open);
  join(other, asked());
  for (int i = 0; i < 3; ++i) publish_numbers(i, i + 1);
  dispatch();
  EXPECT_THAT(other.consumer.take(), ElementsAre("0", "1", "2"));
}

TEST_F(GroupTest, ASlowMemberAmongFourReceivesItsCreditAndDelaysNoOther) {
  constexpr std::uint32_t credit = 10;
  Member members[4];
  auto open = asked();
  open.credit.messages = credit;
  for (Member& member : members) join(member, open);
  int quick = 0;
  int turns = 0;
  for (int i = 0; i < 300; i += 4) publish_numbers(i, i + 4);
  for (; quick < 290 && turns < 100; ++turns) {
    dispatch();
    for (Member& member : members) {
      if (&member == &members[0]) continue;
      for (const auto& frame : member.consumer.frames) {
        acknowledge(member, {frame.range});
        EXPECT_TRUE(
            member.member->add_credit({static_cast<std::uint32_t>(frame.payloads.size()), 1'000'000}));
      }
      quick += static_cast<int>(member.consumer.take().size());
    }
  }
  EXPECT_EQ(quick, 290);
  EXPECT_LE(turns, 10) << "three work off 290 in portions of ten";
  EXPECT_EQ(members[0].consumer.take().size(), credit);
}

TEST_F(GroupTest, MembersTakeTurnsByBatches) {
  Member one, other;
  join(one, asked());
  join(other, asked());
  for (int i = 0; i < 6; ++i) publish_numbers(i, i + 1);
  dispatch();
  EXPECT_THAT(one.consumer.take(), ElementsAre("0", "2", "4"));
  EXPECT_THAT(other.consumer.take(), ElementsAre("1", "3", "5"));
}

TEST_F(GroupTest, MembersTakeTurnsEvenWithSingleBatches) {
  for (const std::size_t count : {std::size_t{2}, std::size_t{3}, std::size_t{4}}) {
    std::vector<Member> members(count);
    for (Member& member : members) join(member, asked());
    for (std::size_t i = 0; i < 3 * count; ++i) {
      publish({"x"});
      dispatch();
    }
    for (Member& member : members) {
      EXPECT_EQ(member.consumer.take().size(), 3U) << "of " << count << " members";
      acknowledge_before(member, 1000);
      leave(member);
    }
  }
}

TEST_F(GroupTest, AMessageThatAMemberCannotAcceptGoesToOthersAndCountsAsUndelivered) {
  for (const auto acknowledgement : {AckMode::by_consumer, AckMode::automatic}) {
    Member small, other;
    auto open = asked();
    open.acknowledgement = acknowledgement;
    join(small, open);
    small.consumer.refuses = 2;
    publish({"a", "large", "c"});
    dispatch();
    EXPECT_THAT(small.consumer.take(), ElementsAre("a"));
    join(other, asked());
    dispatch();
    EXPECT_THAT(other.consumer.take(), ElementsAre("large", "c"));
    for (Member* const member : {&small, &other}) {
      acknowledge_before(*member, 1000);
      leave(*member);
    }
  }
}

// --- Acknowledging ---

TEST_F(GroupTest, CommittedIsTheOffsetBelowWhichAllMessagesAreDone) {
  Member member;
  join(member, asked());
  publish_numbers(0, 10);
  dispatch();
  EXPECT_EQ(stats().committed_offset, 0U);
  EXPECT_EQ(stats().unacknowledged, 10U);
  acknowledge(member, {{{2}, {4}}, {{6}, {7}}});
  EXPECT_EQ(stats().committed_offset, 0U);
  EXPECT_THAT(test::processed(stored()), ElementsAre(OffsetRange{{2}, {4}}, OffsetRange{{6}, {7}}));
  acknowledge(member, {{{0}, {2}}, {{9}, {100}}});
  EXPECT_EQ(stats().committed_offset, 4U);
  acknowledge(member, {{{0}, {2}}});  // a repetition
  EXPECT_EQ(stats().committed_offset, 4U);
  EXPECT_EQ(stats().unacknowledged, 4U);
  acknowledge_before(member, 8);
  EXPECT_EQ(stats().committed_offset, 8U);
  EXPECT_THAT(test::processed(stored()), ElementsAre(OffsetRange{{9}, {10}}));
  acknowledge_before(member, 10);
  EXPECT_EQ(stats().committed_offset, 10U);
  EXPECT_THAT(test::processed(stored()), IsEmpty());
}

TEST_F(GroupTest, ACumulativeAcknowledgementCoversOnlyThatMembersMessages) {
  Member one, other;
  join(one, asked());
  join(other, asked());
  for (int i = 0; i < 4; ++i) publish_numbers(i, i + 1);
  dispatch();
  acknowledge_before(other, 4);
  EXPECT_EQ(stats().unacknowledged, 2U);
  EXPECT_EQ(stats().committed_offset, 0U);
  acknowledge_before(one, 2);
  EXPECT_EQ(stats().committed_offset, 2U);
}

TEST_F(GroupTest, AcknowledgementsOfOtherMembersMessagesAreIgnored) {
  Member one, other;
  join(one, asked());
  join(other, asked());
  publish_numbers(0, 2);
  publish_numbers(2, 4);
  dispatch();
  acknowledge(one, {{{0}, {100}}});
  reject(one, {{2}, {4}});
  one.group->extend(*one.member, {1000, {{{2}, {4}}}}, now);
  dispatch();
  EXPECT_EQ(stats().unacknowledged, 2U);
  EXPECT_THAT(other.consumer.take(), ElementsAre("2", "3"));
  EXPECT_THAT(one.consumer.take(), ElementsAre("0", "1"));
}

TEST_F(GroupTest, AutomaticIsDoneAsItIsDelivered) {
  Member member;
  auto open = asked();
  open.acknowledgement = AckMode::automatic;
  join(member, open);
  publish_numbers(0, 5);
  dispatch();
  EXPECT_EQ(stats().committed_offset, 5U);
  EXPECT_EQ(stats().unacknowledged, 0U);
  leave(member);
  Member next;
  join(next, asked());
  dispatch();
  EXPECT_THAT(next.consumer.take(), IsEmpty());
  EXPECT_EQ(topic.groups().next_timer(), never);
}

TEST_F(GroupTest, AtHalfOfTheRangeLimitNothingMoreIsDelivered) {
  Member member;
  join(member, asked());
  const std::uint64_t half = limits::outstanding_ranges_max / 2;
  std::vector<OffsetRange> every_second;
  for (std::uint64_t i = 0; i < half; ++i) every_second.push_back({{2 * i}, {2 * i + 1}});
  publish(std::vector<std::string>(2 * half, "x"));
  dispatch();
  EXPECT_EQ(member.consumer.take().size(), 2 * half);
  acknowledge(member, every_second);
  publish({"y"});
  dispatch();
  EXPECT_EQ(member.member->outstanding().ranges(), half);
  EXPECT_THAT(member.consumer.take(), IsEmpty());
  acknowledge_before(member, 2);
  dispatch();
  EXPECT_THAT(member.consumer.take(), ElementsAre("y"));
}

TEST_F(GroupTest, MessagesBeyondTheLimitFormSeveralRanges) {
  Member member;
  join(member, asked());
  const std::uint64_t most = limits::outstanding_ranges_max;
  publish(std::vector<std::string>(3 * most, "x"));
  dispatch();
  std::vector<OffsetRange> every_second;
  for (std::uint64_t i = 0; i < most; ++i) every_second.push_back({{2 * i}, {2 * i + 1}});
  acknowledge(member, every_second);
  EXPECT_FALSE(member.member->is_in_pieces());
  acknowledge(member, {{{2 * most}, {2 * most + 1}}});
  EXPECT_TRUE(member.member->is_in_pieces());
}

TEST_F(GroupTest, ManyDelayedRangesHoldNoNewMessageBack) {
  Member member;
  join(member, asked());
  constexpr std::uint64_t pieces = 65'536;
  constexpr std::uint64_t portion = limits::outstanding_ranges_max / 4;
  for (std::uint64_t at = 0; at < 2 * pieces; at += 2 * portion) {
    publish(std::vector<std::string>(2 * portion, "x"));
    dispatch();
    for (std::uint64_t i = at; i < at + 2 * portion; i += 2) reject(member, {{i}, {i + 1}}, 60'000);
    acknowledge_before(member, at + 2 * portion);
    dispatch();
  }
  EXPECT_EQ(stats().retrying, pieces);
  member.consumer.take();
  publish({"new"});
  dispatch();
  EXPECT_THAT(member.consumer.take(), ElementsAre("new"));
  acknowledge_before(member, 1'000'000);
  pass(milliseconds(70'000));
  std::size_t came = 0;
  for (std::uint64_t turn = 0; turn <= 2 * pieces / portion; ++turn) {
    dispatch();
    came += member.consumer.take().size();
    acknowledge_before(member, 1'000'000);
  }
  EXPECT_EQ(came, pieces);
  EXPECT_EQ(held_back, 0U);
}

TEST_F(GroupTest, AFullRedeliveryQueueHoldsBackNewMessages) {
  GroupWorld small(limits::group_ranges_total, {.state_bytes_max = 4096});
  Member member;
  small.join(member, asked());
  small.publish(std::vector<std::string>(4000, "x"));
  small.dispatch();
  for (std::uint64_t i = 0; i < 4000; i += 2)
    small.reject(member, {{i}, {i + 1}}, 60'000 + static_cast<std::uint32_t>(i % 7) * 1000);
  small.acknowledge_before(member, 4000);
  small.dispatch();
  EXPECT_EQ(small.held_back, 1U) << "it is told of once";
  EXPECT_GE(member.group->messages().redelivery().bytes(), 4096U);
  member.consumer.take();
  small.publish({"new"});
  small.dispatch();
  EXPECT_THAT(member.consumer.take(), IsEmpty());
  small.pass(milliseconds(70'000));
  small.dispatch();
  EXPECT_EQ(member.consumer.take().size(), 2001U) << "the queue is empty when the last one is delivered";
}

// --- Redelivery ---

TEST_F(GroupTest, MessagesOfALeavingMemberAreRedeliveredBeforeNewOnes) {
  Member leaving, staying;
  join(leaving, asked());
  publish_numbers(0, 4);
  dispatch();
  acknowledge(leaving, {{{1}, {2}}});
  join(staying, asked());
  leave(leaving);
  publish_numbers(4, 5);
  dispatch();
  EXPECT_THAT(staying.consumer.take(), ElementsAre("0#2", "2#2", "3#2", "4"));
  EXPECT_EQ(stats().redelivered, 3U);
  EXPECT_EQ(stats().next_offset, 5U);
  EXPECT_EQ(topic.stats().messages_sent, 5U) << "once each";
  EXPECT_EQ(topic.stats().deliveries, 8U);
}

TEST_F(GroupTest, DeliveryNumbersCountUp) {
  Member member;
  join(member, asked());
  publish_numbers(0, 2);
  dispatch();
  reject(member, {{0}, {1}});
  dispatch();
  reject(member, {{0}, {1}});
  dispatch();
  EXPECT_THAT(member.consumer.take(), ElementsAre("0", "1", "0#2", "0#3"));
  leave(member);
  Member next;
  join(next, asked());
  dispatch();
  EXPECT_THAT(next.consumer.take(), ElementsAre("0#4", "1#2"));
}

TEST_F(GroupTest, AnUnacknowledgedMessageGoesToAnotherMemberAfterTheTimeout) {
  Member slow, other;
  auto open = asked();
  open.ack_timeout_ms = 1000;
  join(slow, open);
  publish_numbers(0, 3);
  dispatch();
  slow.group->extend(*slow.member, {5000, {{{2}, {3}}}}, now);
  pass(milliseconds(999));
  EXPECT_GT(topic.groups().next_timer(), now);
  join(other, open);
  dispatch();
  EXPECT_THAT(other.consumer.take(), IsEmpty());
  pass(milliseconds(21));
  EXPECT_LE(topic.groups().next_timer(), now);
  slow.consumer.is_writable = false;
  dispatch();
  EXPECT_THAT(other.consumer.take(), ElementsAre("0#2", "1#2"));
  acknowledge(slow, {{{0}, {2}}});
  EXPECT_EQ(stats().unacknowledged, 3U) << "it came too late";
  pass(milliseconds(500));
  acknowledge_before(other, 2);
  EXPECT_EQ(stats().committed_offset, 2U);
  pass(milliseconds(3600));
  dispatch();
  EXPECT_THAT(other.consumer.take(), ElementsAre("2#2"));
}

TEST_F(GroupTest, AConsumerWithoutATimeoutHasThirtySeconds) {
  Member member, other;
  join(member, asked());
  EXPECT_EQ(member.member->ack_timeout_ms(), 30'000U);
  publish({"a"});
  dispatch();
  member.consumer.is_writable = false;
  join(other, asked());
  pass(milliseconds(29'990));
  dispatch();
  EXPECT_THAT(other.consumer.take(), IsEmpty());
  pass(milliseconds(60));
  dispatch();
  EXPECT_THAT(other.consumer.take(), ElementsAre("a#2"));
}

TEST_F(GroupTest, AMessageRejectedWithADelayIsRedeliveredAfterIt) {
  Member member;
  join(member, asked());
  publish_numbers(0, 3);
  dispatch();
  member.consumer.take();
  reject(member, {{0}, {2}}, 500);
  publish_numbers(3, 4);
  dispatch();
  EXPECT_THAT(member.consumer.take(), ElementsAre("3")) << "newer ones do not wait";
  EXPECT_EQ(stats().committed_offset, 0U);
  acknowledge_before(member, 4);
  EXPECT_EQ(stats().committed_offset, 0U);
  EXPECT_THAT(test::processed(stored()), ElementsAre(OffsetRange{{2}, {4}}));
  pass(milliseconds(490));
  dispatch();
  EXPECT_THAT(member.consumer.take(), IsEmpty());
  pass(milliseconds(20));
  EXPECT_LE(topic.groups().next_timer(), now);
  dispatch();
  EXPECT_THAT(member.consumer.take(), ElementsAre("0#2", "1#2"));
}

TEST_F(GroupTest, SeekForgetsDeliveredMessages) {
  Member member;
  join(member, asked());
  publish_numbers(0, 5);
  dispatch();
  member.consumer.take();
  reject(member, {{0}, {1}}, 60'000);
  reject(member, {{1}, {2}});
  EXPECT_EQ(topic.groups().seek(*member.group, {StartPosition::From::offset, 3}).value_or_throw(), Offset{3});
  EXPECT_EQ(stats().committed_offset, 3U);
  EXPECT_EQ(stats().unacknowledged, 0U);
  acknowledge_before(member, 5);
  dispatch();
  EXPECT_THAT(member.consumer.take(), ElementsAre("3", "4")) << "with number 1";
  pass(milliseconds(100'000));
  dispatch();
  EXPECT_THAT(member.consumer.take(), ElementsAre("3#2", "4#2"));
}

}  // namespace
}  // namespace lightq::broker
