/// Tests of expired messages that become dead letters.
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "delivery/expiry/expiry_world.hpp"

namespace lightq::broker {
namespace {

using namespace std::chrono_literals;
using test::ExpiryWorld;
using test::Member;

using Payloads = std::vector<std::string>;

void expect_sum_of_states(const protocol::GroupStats& stats) {
  EXPECT_EQ(stats.pending,
            stats.ready + stats.in_flight + stats.retrying + stats.parked + stats.dead_waiting);
}

class ExpiredLettersTest : public testing::Test {
 protected:
  ExpiredLettersTest() {
    settings.dead_letter_topic = "letters";
    settings.dead_letter_expired = true;
    settings.dead_waiting_max = 100;
  }
  /// Ends all transfers that can begin, and adds the letters.
  void transfer(ExpiryWorld& world) {
    GroupDead dead = world.topic->groups().plain()->dead();
    while (dead.begin(10, TopicId{9}) > 0) {
      for (const Transfer& each : dead.under_way()) {
        letters.push_back(each.message.offset.value);
        EXPECT_EQ(each.message.cause, DeathCause::expired);
        ASSERT_TRUE(dead.done(dead.incarnation(), each.number));
      }
      world.dispatch();
    }
  }
  protocol::GroupSettings settings;
  std::vector<std::uint64_t> letters;
};

TEST_F(ExpiredLettersTest, ExpiredMessagesDieInOrderWhateverIsBetween) {
  ExpiryWorld world;
  world.topic->open_group();
  world.set(settings);
  world.publish({{0}, {100}, {0}, {100}, {100}, {0}});
  world.live(1200ms);
  const auto stats = world.stats();
  EXPECT_EQ(stats.dead_waiting, 3U);
  EXPECT_EQ(stats.ready, 3U);
  EXPECT_EQ(stats.expired, 3U);
  EXPECT_EQ(stats.dead, 3U);
  expect_sum_of_states(stats);
  transfer(world);
  EXPECT_EQ(letters, std::vector<std::uint64_t>({1, 3, 4}));
  Member member;
  world.join(member);
  world.dispatch();
  EXPECT_EQ(member.consumer.take(), Payloads({"0", "2", "5"}));
  EXPECT_EQ(world.stats().redelivered, 0U);
}

TEST_F(ExpiredLettersTest, AFloodPausesTheGroupAndLosesNothing) {
  ExpiryWorld world;
  world.topic->open_group();
  world.set(settings);
  world.publish(1'000, 100);
  world.publish(10);
  world.live(1200ms);
  EXPECT_EQ(world.stats().dead_waiting, 1'000U);
  EXPECT_EQ(world.stats().paused_by, "dead_letters");
  EXPECT_EQ(world.stats().ready, 10U);
  expect_sum_of_states(world.stats());
  Member member;
  world.join(member);
  world.dispatch();
  EXPECT_TRUE(member.consumer.take().empty());
  transfer(world);
  EXPECT_EQ(letters.size(), 1'000U);
  world.dispatch();
  EXPECT_EQ(member.consumer.take().size(), 10U);
  EXPECT_EQ(world.stats().paused_by, "");
}

TEST_F(ExpiredLettersTest, AFullQueueDoesNotPauseTheGroupForEver) {
  ExpiryWorld world;
  world.group_limits.state_bytes_max = 1;  // one message that waits fills the queue
  world.restart();
  world.topic->open_group();
  settings.dead_waiting_max = 3;
  world.set(settings);
  for (int i = 0; i < 10; ++i) world.publish({{0}, {100}});
  world.live(1200ms);
  expect_sum_of_states(world.stats());
  EXPECT_EQ(world.stats().dead_waiting, 10U);
  EXPECT_LE(world.topic->next_timer(), world.now + 1s) << "another group may free memory";
  transfer(world);
  EXPECT_EQ(letters, std::vector<std::uint64_t>{1});
  Member member;
  world.join(member);
  for (int round = 0; round < 10; ++round) {
    world.dispatch();
    transfer(world);
  }
  EXPECT_EQ(member.consumer.take().size(), 10U);
  EXPECT_EQ(letters.size(), 10U);
  EXPECT_EQ(world.stats().paused_by, "");
}

TEST_F(ExpiredLettersTest, WaitingMessagesDieWithTheirAttempts) {
  ExpiryWorld world;
  world.topic->open_group();
  settings.max_attempts = 10;
  world.set(settings);
  world.publish({{2'000}, {0}});
  Member member;
  world.join(member);
  world.dispatch();
  member.group->reject(*member.member, {60'000, {{Offset{0}, Offset{1}}}}, world.now);
  world.live(3s);
  const auto dead = member.group->dead().list({}, Offset{0}, 10).messages;
  ASSERT_EQ(dead.size(), 1U);
  EXPECT_EQ(dead[0].cause, DeathCause::expired);
  EXPECT_EQ(dead[0].attempts, 1U);
}

TEST_F(ExpiredLettersTest, TheMomentOfDeliveryIsExactToo) {
  ExpiryWorld world;
  world.topic->open_group();
  world.set(settings);
  world.publish({{100}, {0}});
  world.pass(100ms);
  Member member;
  world.join(member);
  world.dispatch();
  EXPECT_EQ(member.consumer.take(), Payloads{"1"});
  EXPECT_EQ(world.stats().dead_waiting, 1U);
}

TEST_F(ExpiredLettersTest, ARestartKeepsTheCause) {
  ExpiryWorld world;
  world.topic->open_group();
  world.set(settings);
  world.publish({{100}, {0}, {100}});
  world.live(1200ms);
  const auto stored = test::stored_cursors(world.topic->groups(), world.clocks());
  const auto file = log::CursorFile::encode(stored);
  EXPECT_EQ(file.slot.version(), 5U);
  world.restart();
  world.set(settings);
  world.live(500ms);
  EXPECT_EQ(world.stats().dead_waiting, 2U);
  EXPECT_EQ(world.stats().pending, 3U);
  transfer(world);
  EXPECT_EQ(letters, std::vector<std::uint64_t>({0, 2}));
  DeadFilter expired;
  expired.cause = DeathCause::expired;
  EXPECT_TRUE(world.topic->groups().plain()->dead().list(expired, Offset{0}, 10).messages.empty());
}

TEST_F(ExpiredLettersTest, ExpiryIsNoFloodOfFailures) {
  ExpiryWorld world;
  world.topic->open_group();
  settings.pause_when_failing = true;
  settings.dead_waiting_max = 10'000;
  world.set(settings);
  world.publish(1'000, 100);
  world.publish(200);
  Member member;
  world.join(member);
  world.live(1200ms);
  EXPECT_EQ(world.stats().paused_by, "");
}

class GivenBackTest : public ExpiredLettersTest {
 protected:
  GivenBackTest() {
    world.topic->open_group();
    settings.backoff_ms = {1};
    world.set(settings);
    world.publish({{100}, {0}, {100}});
    world.live(1200ms);
  }
  /// Gives messages back that have become letters, as a dead-letter topic does.
  void give_back(std::uint64_t message) {
    GroupDead dead = world.topic->groups().plain()->dead();
    const OffsetRange range{{message}, {message + 1}};
    dead.protect(range);
    dead.revive({{range, 0}});
    world.live(2s);
  }
  ExpiryWorld world;
};

TEST_F(GivenBackTest, AnExpiredMessageDoesNotExpireAgain) {
  transfer(world);
  ASSERT_EQ(letters, std::vector<std::uint64_t>({0, 2}));
  give_back(0);
  auto stats = world.stats();
  EXPECT_EQ(std::pair(stats.ready, stats.dead_waiting), std::pair(std::uint64_t{2}, std::uint64_t{0}));
  Member member;
  world.join(member);
  world.dispatch();
  EXPECT_EQ(member.consumer.take(), Payloads({"0", "1"}));
  member.group->reject(*member.member, {1, {{Offset{0}, Offset{1}}}}, world.now);
  world.live(2s);
  EXPECT_EQ(member.consumer.take(), Payloads{"0#2"}) << "it expired when it was returned";
  stats = world.stats();
  EXPECT_EQ(std::pair(stats.expired, stats.dead), std::pair(std::uint64_t{2}, std::uint64_t{2}));
  expect_sum_of_states(stats);
}

TEST_F(GivenBackTest, NeitherARestartNorItsNeighboursChangeThat) {
  transfer(world);
  give_back(0);
  world.restart();
  world.set(settings);
  world.live(2s);
  EXPECT_EQ(world.stats().dead_waiting, 0U);
  EXPECT_EQ(world.stats().ready, 2U);
  give_back(2);
  world.restart();
  world.set(settings);
  world.live(2s);
  Member member;
  world.join(member);
  world.dispatch();
  EXPECT_EQ(member.consumer.take(), Payloads({"0", "1", "2"}));
}

TEST_F(GivenBackTest, ADeadMessageThatIsTriedAgainInPlaceDoesNotExpireAgain) {
  GroupDead dead = world.topic->groups().plain()->dead();
  EXPECT_EQ(dead.retry({.ranges = {{Offset{2}, Offset{3}}}}, Offset{0}).messages, 1U);
  world.live(2s);
  const auto stats = world.stats();
  EXPECT_EQ(std::pair(stats.ready, stats.dead_waiting), std::pair(std::uint64_t{2}, std::uint64_t{1}));
  expect_sum_of_states(stats);
}

TEST_F(GivenBackTest, ItMayStillDieOfItsAttempts) {
  transfer(world);
  give_back(0);
  settings.max_attempts = 1;
  world.set(settings);
  Member member;
  world.join(member);
  world.dispatch();
  member.group->reject(*member.member, {1, {{Offset{0}, Offset{1}}}}, world.now);
  world.live(2s);
  const auto dead = member.group->dead().list({}, Offset{0}, 10).messages;
  ASSERT_EQ(dead.size(), 1U);
  EXPECT_EQ(dead[0].cause, DeathCause::attempts);
}

TEST_F(GivenBackTest, ASeekToItEndsTheProtection) {
  transfer(world);
  give_back(0);
  Member member;
  world.join(member);
  member.group->seek(Offset{0});
  world.live(2s);
  EXPECT_EQ(member.consumer.take(), Payloads({"1"}));
}

TEST(ExpiryOfGivenBack, EndsWithTheMessage) {
  ExpiryWorld world;
  world.topic->open_group();
  protocol::GroupSettings settings;
  settings.dead_letter_topic = "letters";
  settings.dead_letter_expired = true;
  world.set(settings);
  world.publish({{100}, {0}});
  world.live(1200ms);
  GroupDead dead = world.topic->groups().plain()->dead();
  ASSERT_EQ(dead.retry({}, Offset{0}).messages, 1U);
  Member member;
  world.join(member);
  world.dispatch();
  ASSERT_EQ(member.consumer.take(), Payloads({"0", "1"}));
  member.group->acknowledge(*member.member, {.before = {}, .ranges = {{Offset{0}, Offset{2}}}});
  const auto stored = test::stored_cursors(world.topic->groups(), world.clocks());
  ASSERT_EQ(stored.size(), 1U);
  EXPECT_TRUE(stored[0].unfinished.dead.expired.empty());
}

TEST(ExpiryOfGivenBack, ATimeToLiveThatTheTopicGetsLaterDoesNotApply) {
  ExpiryWorld world;
  world.topic->open_group();
  world.publish({{0}, {0}});
  Member member;
  world.join(member);
  world.dispatch();
  Rejection dead{.ranges = {{Offset{0}, Offset{1}}}};
  dead.kind = RejectKind::dead;
  member.group->reject(*member.member, dead, world.now);
  member.group->reject(*member.member, {60'000, {{Offset{1}, Offset{2}}}}, world.now);
  ASSERT_EQ(world.stats().parked, 1U);
  world.leave(member);
  ASSERT_EQ(world.topic->groups().plain()->dead().retry({}, Offset{0}).messages, 1U);
  world.topic->expiry().set_ttl(1'000);
  world.live(5s);
  EXPECT_EQ(world.stats().ready, 1U) << "it was given back";
  EXPECT_EQ(world.stats().expired, 1U) << "the other was not";
}

}  // namespace
}  // namespace lightq::broker
