/// Tests of acknowledgements and other requests about messages that were taken back before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "delivery/consumer_group_harness.hpp"

namespace lightq::test {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class GroupLateTest : public ::testing::Test, protected GroupWorld {};

TEST_F(GroupLateTest, ALateAcknowledgementCountsUntilTheMessageIsRedelivered) {
  Member slow, other;
  auto open = asked();
  open.ack_timeout_ms = 1000;
  slow.consumer.wants_late = true;
  join(slow, open);
  publish_numbers(0, 5);
  dispatch();
  slow.consumer.is_writable = false;
  pass(milliseconds(1020));
  dispatch();
  EXPECT_EQ(stats().unacknowledged, 0U);
  acknowledge(slow, {{{0}, {2}}});
  EXPECT_EQ(stats().committed_offset, 2U);
  EXPECT_THAT(slow.consumer.was_late, IsEmpty());
  open.credit.messages = 2;
  join(other, open);
  dispatch();
  EXPECT_THAT(other.consumer.take(), ElementsAre("2#2", "3#2"));
  acknowledge(slow, {{{0}, {5}}});
  EXPECT_THAT(slow.consumer.was_late, ElementsAre(OffsetRange{{2}, {4}}));
  acknowledge(slow, {{{0}, {5}}});
  EXPECT_THAT(slow.consumer.was_late, ElementsAre(OffsetRange{{2}, {4}})) << "each is told once";
  acknowledge(other, {{{2}, {4}}});
  EXPECT_EQ(stats().committed_offset, 5U);
}

TEST_F(GroupLateTest, AMessageRedeliveredToTheSameMemberIsNotLate) {
  Member slow;
  auto open = asked();
  open.ack_timeout_ms = 1000;
  slow.consumer.wants_late = true;
  join(slow, open);
  publish_numbers(0, 2);
  dispatch();
  pass(milliseconds(1020));
  dispatch();
  EXPECT_THAT(slow.consumer.take(), ElementsAre("0", "1", "0#2", "1#2"));
  acknowledge_before(slow, 2);
  EXPECT_EQ(stats().committed_offset, 2U);
  EXPECT_THAT(slow.consumer.was_late, IsEmpty());
}

TEST_F(GroupLateTest, ALateAcknowledgementFinishesALimitedNumberOfParts) {
  constexpr std::uint64_t messages = 6000;
  constexpr std::uint64_t parts_max = 1024;
  Member slow, other;
  auto open = asked();
  open.ack_timeout_ms = 1000;
  slow.consumer.wants_late = true;
  join(slow, open);
  publish(std::vector<std::string>(messages, "x"));
  dispatch();
  slow.consumer.is_writable = false;
  pass(milliseconds(1020));
  open.ack_timeout_ms = 1'000'000;
  join(other, open);
  dispatch();
  ASSERT_EQ(stats().unacknowledged, messages) << "the other member has all of them";
  other.consumer.is_writable = false;
  for (std::uint64_t i = 0; i < messages; i += 2) reject(other, {{i}, {i + 1}});
  const std::uint64_t before = broker::TurnWork::bytes();
  acknowledge_before(slow, messages);
  EXPECT_LE(broker::TurnWork::bytes() - before, 4 * parts_max * broker::TurnWork::set_changed);
  EXPECT_EQ(other.group->messages().redelivery().ready_messages(), messages / 2 - parts_max);
  const auto& late = slow.consumer.was_late;
  ASSERT_EQ(late.size(), parts_max);
  EXPECT_EQ(late.front(), (OffsetRange{{1}, {2}}));
  EXPECT_EQ(late.back(), (OffsetRange{{2 * parts_max - 1}, {messages}}))
      << "all others are late, in one range";
}

TEST_F(GroupLateTest, AMemberWithoutTheOptionIsNotToldOfLateAcknowledgements) {
  Member slow;
  auto open = asked();
  open.ack_timeout_ms = 1000;
  join(slow, open);
  publish_numbers(0, 2);
  dispatch();
  slow.consumer.is_writable = false;
  pass(milliseconds(1020));
  dispatch();
  acknowledge(slow, {{{0}, {2}}});
  EXPECT_EQ(stats().committed_offset, 0U);
}

TEST_F(GroupLateTest, AReleaseIsNeverLate) {
  Member member;
  auto open = asked();
  open.leases = true;
  open.credit.messages = 2;
  join(member, open);
  publish_numbers(0, 2);
  dispatch();
  topic.groups().pass_over(*member.group);
  member.group->reject(*member.member, {0, {{{0}, {2}}}, 1, broker::RejectKind::release}, now);
  EXPECT_THAT(member.consumer.was_late, IsEmpty()) << "it asks for nothing";
  member.group->acknowledge(*member.member, {std::nullopt, {{{0}, {2}}}, 1});
  EXPECT_THAT(member.consumer.was_late, ElementsAre(OffsetRange{{0}, {2}}));
}

TEST_F(GroupLateTest, RangesOfAMemberWithLeasesAreForgottenWhenThereAreTooMany) {
  for (const std::uint64_t ranges : {1024U, 1025U}) {
    GroupWorld world(1'000'000);
    Member member;
    auto open = asked();
    open.leases = true;
    open.credit.messages = 2 * ranges;
    open.ack_timeout_ms = 1000;
    world.join(member, open);
    world.publish_numbers(0, static_cast<int>(2 * ranges));
    world.dispatch();
    std::vector<OffsetRange> every_second;
    for (std::uint64_t at = 0; at < 2 * ranges; at += 2) every_second.push_back({{at}, {at + 1}});
    ASSERT_TRUE(member.group->start(*member.member, {std::nullopt, every_second, 1}, world.now));
    world.pass(milliseconds(1020));
    world.dispatch();
    ASSERT_EQ(world.stats().unacknowledged, ranges);
    member.group->acknowledge(*member.member, {Offset{2 * ranges}, {}, 1});
    EXPECT_EQ(member.consumer.was_late.size(), ranges == 1024 ? ranges : 0);
    EXPECT_EQ(world.stats().unacknowledged, 0U);
  }
}

}  // namespace
}  // namespace lightq::test
