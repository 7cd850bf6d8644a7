/// Tests of messages with a time to live that the log drops: how each is counted.
#include <chrono>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "delivery/expiry/drop_counts.hpp"
#include "delivery/expiry/expiry_world.hpp"

namespace lightq::broker {
namespace {

using namespace std::chrono_literals;
using test::asked;
using test::ExpiryWorld;
using test::Member;

class DroppedExpiryTest : public testing::Test {
 protected:
  DroppedExpiryTest() : world(0, 256 * limits::KiB, protocol::Overflow::drop_oldest) {
    keeps.dead_letter_topic = "letters";
    keeps.dead_letter_expired = true;
  }
  /// Publishes until the log begins at `first` or behind it.
  void drop_before(Offset first) {
    while (world.log.first_offset() < first) world.publish(10);
  }
  /// Dispatches once, which does a limited amount of work.
  void dispatch_once() { world.topic->dispatch({.now = world.now, .wall = world.wall}); }
  void expect_counts(std::uint64_t expired, std::uint64_t lost) {
    const auto stats = world.stats();
    EXPECT_EQ(stats.expired, expired);
    EXPECT_EQ(stats.lost, lost);
    EXPECT_EQ(world.topic->stats(world.wall).dropped, lost);
    // Expired messages that the group keeps are pending until they are lost: no letter leaves here.
    const std::uint64_t finished = stats.settings.dead_letter_expired ? 0 : expired;
    EXPECT_EQ(stats.pending, world.log.next_offset().value - finished - lost - stats.acknowledged);
  }

  ExpiryWorld world;
  protocol::GroupSettings keeps;
};

TEST(DropCountsTest, EachMessageIsThereOrExpiredOrLost) {
  log::OffsetSet carried;
  carried.add({Offset{2}, Offset{4}});
  carried.add({Offset{8}, Offset{20}});
  log::OffsetSet expired;
  expired.add({Offset{3}, Offset{6}});
  expired.add({Offset{9}, Offset{10}});
  const OffsetRange range{Offset{0}, Offset{10}};
  const auto expect = [](const DropCounts& dropped, DropCounts right) {
    EXPECT_EQ(dropped.there, right.there);
    EXPECT_EQ(dropped.expired, right.expired);
    EXPECT_EQ(dropped.lost, right.lost);
  };
  expect(dropped_in(range, nullptr, nullptr, false), {0, 0, 10});
  expect(dropped_in(range, &carried, nullptr, false), {4, 0, 6});
  expect(dropped_in(range, nullptr, &expired, false), {0, 4, 6});
  expect(dropped_in(range, &carried, &expired, false), {4, 2, 4});
  expect(dropped_in(range, &carried, &expired, true), {4, 2, 6});
  expect(dropped_in({Offset{10}, Offset{2}}, &carried, &expired, true), {0, 0, 0});
}

// 1,000 messages in as many parts expire at once while they wait for their delay. A dispatch does not end
// all.
TEST_F(DroppedExpiryTest, MessagesThatWaitedAndHaveExpiredAreNotLost) {
  Member member;
  auto open = asked();
  open.credit.messages = 2000;
  world.join(member, open);
  for (int i = 0; i < 4; ++i) world.publish(500, 1000);
  world.dispatch();
  std::vector<OffsetRange> rejected;
  for (std::uint64_t at = 0; at < 2000; at += 2) rejected.push_back({Offset{at}, Offset{at + 1}});
  member.group->reject(*member.member, {3'600'000, rejected}, world.now);
  member.group->acknowledge(*member.member, {Offset{2000}, {}});
  ASSERT_EQ(world.stats().retrying, 1000U);
  world.pass(2s);
  dispatch_once();
  ASSERT_GT(world.stats().retrying, 0U) << "the dispatch has ended all, so this tests nothing";
  drop_before(Offset{2000});
  ASSERT_EQ(world.log.first_offset(), Offset{2000});
  EXPECT_EQ(world.topic->stats(world.wall).dropped, 0U);
  world.dispatch();
  expect_counts(1000, 0);
}

TEST_F(DroppedExpiryTest, ExpiredMessagesThatAGroupKeepsExpireOnceAndAreLostOnce) {
  keeps.dead_waiting_max = 20;
  world.topic->open_group();
  world.set(keeps);
  std::vector<test::TtlMessage> messages(200);
  for (std::size_t at = 0; at < messages.size(); at += 2) messages[at].ttl_ms = 1000;
  world.publish(messages);
  world.live(2s);
  ASSERT_EQ(world.stats().dead_waiting, 100U);
  const std::uint64_t dead = world.stats().dead;
  ASSERT_LT(dead, 100U);
  expect_counts(100, 0);
  drop_before(Offset{200});
  ASSERT_EQ(world.log.first_offset(), Offset{200});
  world.dispatch();
  expect_counts(100, 200);
  EXPECT_EQ(world.stats().dead, dead) << "those ahead of the group did not die";
}

// The transfer of the first ten is under way: the dead-letter topic may have these.
TEST_F(DroppedExpiryTest, MessagesUnderWayToTheDeadLetterTopicAreNotDropped) {
  world.topic->open_group();
  world.set(keeps);
  world.publish(100, 1000);
  world.live(2s);
  GroupDead dead = world.topic->groups().plain()->dead();
  ASSERT_EQ(dead.begin(10, TopicId{9}), 10U);
  drop_before(Offset{100});
  EXPECT_EQ(world.topic->stats(world.wall).dropped, 90U);
  world.dispatch();
  expect_counts(100, 90);
}

TEST_F(DroppedExpiryTest, AMessageThatCanNoLongerBeReadIsLostAndDoesNotDie) {
  Member member;
  world.join(member);
  world.set(keeps);
  world.publish(10);
  world.dispatch();
  ASSERT_EQ(world.stats().in_flight, 10U);
  member.consumer.is_writable = false;
  member.group->reject(*member.member, {3'600'000, {{Offset{0}, Offset{1}}}}, world.now);
  drop_before(Offset{10});
  world.dispatch();
  ASSERT_EQ(world.stats().in_flight, 9U);
  const std::uint64_t lost = world.stats().lost;
  member.group->reject(*member.member, {.ranges = {{Offset{1}, Offset{10}}}, .kind = RejectKind::dead},
                       world.now);
  world.dispatch();
  const auto stats = world.stats();
  EXPECT_EQ(stats.failed, 10U);
  EXPECT_EQ(stats.dead, 0U);
  EXPECT_EQ(stats.dead_waiting, 0U);
  EXPECT_EQ(stats.lost, lost + 9);
}

}  // namespace
}  // namespace lightq::broker
