/// Tests of delivery/tracing for messages that expire, and of delivery/expiry/expired_runs.
#include <chrono>
#include <cstdint>

#include <gtest/gtest.h>

#include "delivery/expiry/expired_runs.hpp"
#include "delivery/expiry/expiry_world.hpp"
#include "delivery/tracing/group_trace.hpp"

namespace lightq::broker {
namespace {

using namespace std::chrono_literals;
using protocol::MessageState;
using test::ExpiryWorld;
using test::Member;

MessageState state_of(const ExpiryWorld& world, ConsumerGroup& group, std::uint64_t message) {
  return trace_in_group(group, {message}, true, world.clocks()).trace.state;
}

TEST(ExpiredTraceTest, AMessageHasExpiredBeforeAndAfterTheGroupPassesIt) {
  ExpiryWorld world;
  ConsumerGroup& group = world.open_group();
  world.publish({{100}, {0}, {100}});
  Member member;
  member.consumer.is_writable = false;
  world.join(member);
  world.live(2s);
  ASSERT_EQ(group.messages().next(), Offset{1});
  EXPECT_EQ(state_of(world, group, 0), MessageState::expired) << "the group has passed it";
  EXPECT_EQ(state_of(world, group, 1), MessageState::ready);
  EXPECT_EQ(state_of(world, group, 2), MessageState::expired) << "the group has not come to it";
}

TEST(ExpiredTraceTest, AMessageThatExpiresWhileItWaitsHasExpiredAndAnAcknowledgedOneIsDone) {
  ExpiryWorld world;
  world.publish({{1'000}, {1'000}, {0}});
  Member member;
  ASSERT_EQ(world.join(member), ClientError::none);
  world.dispatch();
  member.group->reject(*member.member, {60'000, {{Offset{0}, Offset{1}}}}, world.now);
  member.group->acknowledge(*member.member, {std::nullopt, {{Offset{1}, Offset{2}}}});
  EXPECT_EQ(state_of(world, *member.group, 0), MessageState::retrying);
  world.live(3s);
  EXPECT_EQ(state_of(world, *member.group, 0), MessageState::expired);
  EXPECT_EQ(state_of(world, *member.group, 1), MessageState::done) << "it has expired later";
}

TEST(ExpiredTraceTest, AMessageThatTheGroupKeepsForItsDeadLetterTopicIsNotRemembered) {
  ExpiryWorld world;
  ConsumerGroup& group = world.open_group();
  world.set({.dead_letter_topic = "letters", .dead_letter_expired = true});
  world.publish({{100}, {0}});
  world.live(2s);
  EXPECT_EQ(state_of(world, group, 0), MessageState::dead_waiting);
  EXPECT_FALSE(group.messages().expiry().runs().has({0}));
}

TEST(ExpiredTraceTest, ASeekForgetsTheMessagesThatComeAgain) {
  ExpiryWorld world;
  ConsumerGroup& group = world.open_group();
  world.publish({{100}, {100}, {100}, {0}});
  world.live(2s);
  ASSERT_EQ(group.messages().next(), Offset{3});
  group.seek({1}, RevokeCause::seek);
  EXPECT_EQ(state_of(world, group, 0), MessageState::expired);
  EXPECT_FALSE(group.messages().expiry().runs().has({1}));
  EXPECT_EQ(state_of(world, group, 1), MessageState::expired) << "the group has not come to it";
  world.dispatch();
  EXPECT_EQ(state_of(world, group, 1), MessageState::expired) << "the group has passed it again";
}

TEST(ExpiredRunsTest, RunsThatFollowOneAnotherAreOneAndTheOldestIsForgotten) {
  ExpiredRuns runs;
  EXPECT_FALSE(runs.has({0}));
  runs.add({{3}, {3}});
  EXPECT_FALSE(runs.has({3}));
  for (std::uint64_t message = 0; message < 1'000; ++message) runs.add({{message}, {message + 1}});
  EXPECT_TRUE(runs.has({0}) && runs.has({999}));
  EXPECT_FALSE(runs.has({1'000}));
  for (std::uint64_t run = 1; run < ExpiredRuns::runs_max; ++run)
    runs.add({{run * 2'000}, {run * 2'000 + 1}});
  EXPECT_TRUE(runs.has({500})) << "as many runs as fit";
  runs.add({{1'000'000}, {1'000'001}});
  EXPECT_FALSE(runs.has({500}));
  EXPECT_TRUE(runs.has({2'000}) && runs.has({1'000'000}));
  EXPECT_FALSE(runs.has({2'001}));
  runs.forget_from({4'000});
  EXPECT_TRUE(runs.has({2'000}));
  EXPECT_FALSE(runs.has({4'000}) || runs.has({1'000'000}));
}

}  // namespace
}  // namespace lightq::broker
