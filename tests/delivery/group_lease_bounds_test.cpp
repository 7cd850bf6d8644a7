/// Tests of the costs of members with leases: ranges, memory, snapshots and saves.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "delivery/group_lease_fixture.hpp"

namespace lightq::test {
namespace {

using std::chrono::milliseconds;

class GroupLeaseBounds : public GroupLeaseTest {};

TEST_F(GroupLeaseBounds, AMemberWithFewerRangesThanBeforeReceivesMessagesAgain) {
  broker::GroupLimits limits;
  limits.outstanding_ranges_max = 4;
  GroupWorld world(1000, limits);
  Member member;
  world.join(member, with_leases());
  world.publish_numbers(0, 3);
  world.dispatch();
  const auto begin_on = [&](std::uint64_t offset) {
    member.group->start(*member.member, {std::nullopt, {{{offset}, {offset + 1}}}, 1}, world.now);
  };
  begin_on(1);
  world.publish_numbers(3, 4);
  world.dispatch();
  ASSERT_EQ(world.stats().in_flight, 3U) << "three ranges are half of the limit, and more";
  begin_on(0);
  begin_on(2);
  world.dispatch();
  EXPECT_EQ(world.stats().in_flight, 4U) << "all started messages form one range";
}

TEST_F(GroupLeaseBounds, MessagesThatOthersFinishedAreForgottenWhenMoreAreTakenBack) {
  GroupWorld world(std::size_t{1000});
  Member silent, other;
  world.join(silent, with_leases());
  for (std::uint64_t round = 0; round < 200; ++round) {
    world.publish_numbers(0, 1);
    world.dispatch();
    ASSERT_EQ(silent.consumer.take().size(), 1U);
    fall_silent(silent);
    world.join(other, asked());
    world.dispatch();
    world.acknowledge_before(other, round + 1);
    world.leave(other);
    speak(silent);
    ASSERT_TRUE(silent.member->has_overdue());
    ASSERT_LE(world.budget.ranges.total(), 68U) << "round " << round;
  }
}

TEST_F(GroupLeaseBounds, AMemberForgetsOverdueMessagesIfOnlyTheirMemoryIsInTheWay) {
  GroupWorld world(std::size_t{20});
  Member member;
  auto open = with_leases();
  open.ack_timeout_ms = 1000;
  world.join(member, open);
  world.publish_numbers(0, 40);
  world.dispatch();
  for (std::uint64_t at = 0; at < 40; at += 2)
    member.group->start(*member.member, {std::nullopt, {{{at}, {at + 1}}}, 1}, world.now);
  member.consumer.take();
  world.pass(milliseconds(1020));
  world.dispatch();
  for (std::uint64_t at = 1; at < 40; at += 2)
    member.group->acknowledge(*member.member, {std::nullopt, {{{at}, {at + 1}}}, 1});
  world.dispatch();
  EXPECT_GE(world.stats().in_flight, 16U) << "messages that timed out are delivered again";
  EXPECT_FALSE(member.member->has_overdue());
}

TEST_F(GroupLeaseBounds, ASnapshotNotesOnlyMessagesThatWereStartedMeanwhile) {
  Member member;
  join(member, with_leases());
  publish_numbers(0, 100);
  dispatch();
  for (std::uint64_t at = 0; at < 100; at += 2) start(member, {{at}, {at + 1}}, 1);
  auto& messages = member.group->messages();
  std::size_t ranges_left = 1;
  ASSERT_FALSE(messages.snapshot(ranges_left, clocks())) << "one range of many";
  for (int i = 0; i < 10; ++i) {
    start(member, {{0}, {100}}, 7);  // another hand-out
    start(member, {{0}, {1}}, 1);    // started before
    member.group->extend(*member.member, {1000, {{{2}, {3}}}, 1}, now);
  }
  start(member, {{1}, {2}}, 1);
  ranges_left = 1000;
  const auto snapshot = messages.snapshot(ranges_left, clocks());
  ASSERT_TRUE(snapshot);
  std::size_t entries = 0;
  snapshot->in_flight.for_each([&](const broker::CountedRange&) { ++entries; });
  EXPECT_LE(entries, 101U) << "each range once, and the message that was started";
  EXPECT_GE(entries, 98U);
}

TEST_F(GroupLeaseBounds, AnExtensionOfStartedMessagesChangesNothingThatIsSaved) {
  Member member;
  join(member, with_leases());
  publish_numbers(0, 3);
  dispatch();
  const auto extend = [&](OffsetRange range) {
    member.group->extend(*member.member, {1000, {range}, 1}, now);
  };
  const auto before = member.group->messages().version();
  extend({{0}, {1}});
  const auto started = member.group->messages().version();
  EXPECT_NE(started, before) << "a restart finds another number of deliveries";
  extend({{0}, {1}});
  EXPECT_EQ(member.group->messages().version(), started);
}

}  // namespace
}  // namespace lightq::test
