/// Tests of the mark before which no message has a time to live of its own. A start after a crash reads from
/// there.
#include <chrono>
#include <cstdint>
#include <optional>

#include <gtest/gtest.h>

#include "delivery/expiry/expiry_world.hpp"

namespace lightq::broker {
namespace {

using namespace std::chrono_literals;
using test::ExpiryWorld;

std::optional<Offset> mark_of(const ExpiryWorld& world) {
  return world.topic->expiry().mark();
}

TEST(ExpiryMarkTest, ATopicWithoutSuchMessagesHasNoMarkAndReadsOnlyTheTailAfterACrash) {
  ExpiryWorld world;
  world.open_group();
  world.publish(10);
  world.publish({{0}, {0}}, Codec::lz4);
  EXPECT_EQ(mark_of(world), std::nullopt);
  world.crash({});
  EXPECT_EQ(mark_of(world), std::nullopt) << "the tail is not read yet";
  world.live(1s);
  EXPECT_EQ(mark_of(world), std::nullopt);
  EXPECT_EQ(world.topic->expiry().index(), nullptr);
}

TEST(ExpiryMarkTest, ATopicsTimeToLiveNeedsNoMark) {
  ExpiryWorld world(60'000);
  world.open_group();
  world.publish(10);
  world.live(2min);
  EXPECT_EQ(mark_of(world), std::nullopt);
  world.publish(10, 1'000);
  EXPECT_EQ(mark_of(world), Offset{10});
}

// The mark of the last save is older than the message. Then the clock was set forward, or the saves have
// failed for some minutes.
TEST(ExpiryMarkTest, AMessageBeforeTheLastMinuteExpiresAfterACrash) {
  ExpiryWorld world;
  world.open_group();
  world.publish(10, 1'000);
  world.live(3s);
  ASSERT_EQ(world.stats().pending, 0U);
  ASSERT_EQ(world.topic->expiry().index(), nullptr) << "no such message is stored now";
  const auto saved = mark_of(world);
  ASSERT_TRUE(saved);
  world.publish(1, 300'000);
  world.live(2min);
  world.publish(1);
  world.crash(saved);
  EXPECT_EQ(world.stats().pending, 2U);
  world.live(4min);
  EXPECT_EQ(world.stats().pending, 1U);
  EXPECT_EQ(world.stats().expired, 1U);
}

TEST(ExpiryMarkTest, TheMarkStaysOverRestartsAndFollowsTheLogInLargeSteps) {
  ExpiryWorld world;
  ConsumerGroup& group = world.open_group();
  EXPECT_EQ(mark_of(world), std::nullopt);
  world.publish(100);
  world.publish(1, 1'000);
  EXPECT_EQ(mark_of(world), Offset{100});
  group.seek(Offset{100});
  world.live(3s);
  EXPECT_EQ(mark_of(world), Offset{101}) << "the log begins there";
  world.restart();
  world.live(1s);
  EXPECT_EQ(world.topic->expiry().index(), nullptr);
  const auto publish_plain = [&] {
    world.publish(1000);
    world.topic->groups().plain()->seek(Offset{200});
    world.dispatch();
  };
  publish_plain();
  const auto mark = mark_of(world);
  EXPECT_EQ(mark, Offset{101}) << "the batch with the message at 200 is still stored";
  for (int i = 0; i < 60; ++i) publish_plain();
  EXPECT_EQ(mark_of(world), mark);
  for (int i = 0; i < 10; ++i) publish_plain();
  EXPECT_EQ(mark_of(world), Offset{65'536});
}

}  // namespace
}  // namespace lightq::broker
