/// Tests the dead messages of a group: parked ones, the outbox, and the pauses of a group because of them.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "delivery/dead/failures_fixture.hpp"

namespace lightq::broker {
namespace {

class DeadMessagesTest : public GroupFailuresTest {};

TEST_F(DeadMessagesTest, AMessageIsParkedWhenItHasFailedTooOften) {
  set(3);
  join(one, asked());
  publish_numbers(0, 2);
  dispatch();
  EXPECT_EQ(one.consumer.take(), (Strings{"0", "1"}));
  const Timestamp first = wall;
  for (const char* const again : {"1#2", "1#3"}) {
    acknowledge_before(one, 1);
    reject(one, {{1}, {2}});
    pass(2s);
    dispatch();
    EXPECT_EQ(one.consumer.take(), (Strings{again}));
  }
  reject(one, {{1}, {2}});
  dispatch();
  EXPECT_EQ(one.consumer.take(), Strings{});
  ASSERT_EQ(dead().size(), 1U);
  const DeadMessage message = dead().front();
  EXPECT_EQ(message.offset, Offset{1});
  EXPECT_EQ(message.state, DeadState::parked);
  EXPECT_EQ(message.cause, DeathCause::attempts);
  EXPECT_EQ(message.attempts, 3U);
  EXPECT_EQ(message.record, (DeathRecord{first, wall, ""}));
  EXPECT_EQ(group().committed(), Offset{1}) << "a dead message is not finished";
  EXPECT_EQ(stats().pending, 1U);
  EXPECT_EQ(stats().ready + stats().retrying + stats().in_flight, 0U);
  EXPECT_EQ(group().failures().counters(), (GroupCounters{.acknowledged = 1, .failed = 3, .dead = 1}));
}

TEST_F(DeadMessagesTest, ARetryBeginsAnewAndAPurgeFinishes) {
  set(1);
  join(one, asked());
  publish_numbers(0, 4);
  dispatch();
  reject(one, {{0}, {4}});
  EXPECT_EQ(group().dead().count({}, Offset{0}).messages, 4U);
  EXPECT_EQ(group().dead().purge({.ranges = {{{1}, {3}}}}, Offset{0}).messages, 2U);
  EXPECT_EQ(retry_all(), 2U);
  one.consumer.take();
  dispatch();
  EXPECT_EQ(one.consumer.take(), (Strings{"0", "3"})) << "delivered as for the first time";
  acknowledge_before(one, 4);
  EXPECT_EQ(group().committed(), Offset{4});
  EXPECT_TRUE(dead().empty());
}

TEST_F(DeadMessagesTest, AConsumerDeclaresAMessageDeadWithAReason) {
  join(one, asked());
  publish_numbers(0, 2);
  dispatch();
  kill(one, {{0}, {1}}, "bad JSON");
  dispatch();
  ASSERT_EQ(dead().size(), 1U) << "the settings are the defaults";
  EXPECT_EQ(dead().front().cause, DeathCause::rejected);
  EXPECT_EQ(dead().front().attempts, 1U);
  EXPECT_EQ(dead().front().record, (DeathRecord{wall, wall, "bad JSON"}));
  EXPECT_EQ(dead({.cause = DeathCause::attempts}).size(), 0U);
  EXPECT_EQ(dead({.cause = DeathCause::rejected}).size(), 1U);
  EXPECT_EQ(dead({.state = DeadState::dead_waiting}).size(), 0U);
}

TEST_F(DeadMessagesTest, TooManyDeadLettersPauseTheGroup) {
  set(1, {}, "letters");
  settings.dead_waiting_max = 3;
  topic.groups().set_settings("default", settings);
  join(one, asked());
  publish_numbers(0, 10);
  dispatch();
  reject(one, {{0}, {4}});
  EXPECT_EQ(group().dead().waiting(), 4U);
  EXPECT_EQ(group().pause_cause(), PauseCause::dead_letters);
  EXPECT_TRUE(topic.dispatch({.now = now, .wall = wall}).dead_waiting);
  one.consumer.take();
  publish_numbers(10, 11);
  dispatch();
  EXPECT_EQ(one.consumer.take(), Strings{});
  EXPECT_EQ(group().dead().begin(10), 4U);
  const auto transfers = group().dead().under_way();
  EXPECT_EQ(transfers.front().number, 1U);
  EXPECT_TRUE(group().dead().done(group().dead().incarnation(), 1));
  EXPECT_EQ(group().pause_cause(), PauseCause::none);
  dispatch();
  EXPECT_EQ(one.consumer.take(), (Strings{"10"}));
  EXPECT_EQ(stats().pending, 10U);
}

TEST_F(DeadMessagesTest, TransfersGoOnAfterARestartWithTheSameNumbers) {
  set(1, {}, "letters");
  join(one, asked());
  publish_numbers(0, 5);
  dispatch();
  reject(one, {{0}, {5}});
  group().dead().begin(1);
  const std::uint64_t life = group().dead().incarnation();
  EXPECT_TRUE(group().dead().done(life, 1));
  EXPECT_EQ(group().dead().begin(2), 2U);
  EXPECT_EQ(group().dead().retry({}, Offset{0}).messages, 2U) << "but for those under way";
  Member after;
  restart(after);
  GroupDead dead = restarted->topic.groups().plain()->dead();
  EXPECT_EQ(dead.incarnation(), life);
  ASSERT_EQ(dead.under_way().size(), 2U);
  EXPECT_EQ(dead.under_way()[0].number, 2U);
  EXPECT_EQ(dead.under_way()[0].message.offset, Offset{1});
  EXPECT_EQ(after.consumer.take(), (Strings{"3", "4"}));
  EXPECT_TRUE(dead.give_up(life, 2)) << "the target refuses it";
  EXPECT_EQ(dead.parked(), 1U);
  EXPECT_TRUE(dead.under_way().empty());
  EXPECT_EQ(dead.begin(9), 1U);
  EXPECT_EQ(dead.under_way()[0].number, 2U) << "without a gap";
  restarted->topic.groups().pass_over(*restarted->topic.groups().plain());
  EXPECT_EQ(dead.incarnation(), 0U);
  EXPECT_FALSE(dead.done(life, 2));
}

TEST_F(DeadMessagesTest, WithoutADeadLetterTopicTheOutboxIsParked) {
  set(1, {}, "letters");
  join(one, asked());
  publish_numbers(0, 3);
  dispatch();
  reject(one, {{0}, {3}});
  set(1);
  EXPECT_EQ(group().dead().waiting(), 0U);
  EXPECT_EQ(group().dead().parked(), 3U);
  EXPECT_EQ(dead().front().attempts, 1U);
  EXPECT_TRUE(dead().front().record);
}

TEST_F(DeadMessagesTest, AGroupWhoseDeliveriesEndDeadPauses) {
  set(1);
  settings.pause_when_failing = true;
  topic.groups().set_settings("default", settings);
  join(one, asked());
  publish_numbers(0, 400);
  dispatch();
  const auto end = [&](std::uint64_t from, std::uint64_t dead_from, std::uint64_t to) {
    acknowledge(one, {{{from}, {dead_from}}});
    if (dead_from < to) reject(one, {{dead_from}, {to}});
    dispatch();
  };
  end(0, 50, 100);
  EXPECT_EQ(group().pause_cause(), PauseCause::none) << "half";
  EXPECT_EQ(group().failures().brake().ended(), 100U);
  EXPECT_EQ(group().failures().brake().dead(), 50U);
  pass(11s);
  end(100, 100, 199);
  EXPECT_EQ(group().pause_cause(), PauseCause::none) << "99 in ten seconds";
  end(199, 199, 200);
  EXPECT_EQ(group().pause_cause(), PauseCause::failing);
  EXPECT_TRUE(group().is_paused());
  Member after;
  restart(after);
  EXPECT_EQ(restarted->topic.groups().plain()->pause_cause(), PauseCause::failing);
  EXPECT_EQ(after.consumer.take(), Strings{});
  group().set_paused(false);
  end(200, 200, 210);
  EXPECT_EQ(group().pause_cause(), PauseCause::none) << "the command has forgotten what was before";
}

TEST_F(DeadMessagesTest, ASeekAndAPurgeForgetEverything) {
  set(2);
  join(one, asked());
  publish_numbers(0, 4);
  dispatch();
  reject(one, {{0}, {4}});
  dispatch();
  kill(one, {{0}, {1}});
  group().seek({0});
  EXPECT_TRUE(dead().empty());
  one.consumer.take();
  dispatch();
  EXPECT_EQ(one.consumer.take(), (Strings{"0", "1", "2", "3"}));
  kill(one, {{0}, {2}});
  EXPECT_EQ(topic.groups().pass_over(group()), 4U) << "dead messages were not finished";
  EXPECT_TRUE(dead().empty());
  EXPECT_EQ(group().committed(), Offset{4});
}

TEST_F(DeadMessagesTest, ManyDeadMessagesTakeLittleMemory) {
  join(one, asked());
  constexpr int messages = 100'000;
  for (int i = 0; i < messages; i += 1000) {
    publish_numbers(i, i + 1000);
    dispatch();
    std::vector<OffsetRange> odd;
    for (int at = i; at < i + 1000; at += 2)
      odd.push_back({{static_cast<std::uint64_t>(at)}, {static_cast<std::uint64_t>(at) + 1}});
    Rejection rejection{0, odd};
    rejection.kind = RejectKind::dead;
    rejection.reason = std::string(256, 'r');
    one.group->reject(*one.member, rejection, now, wall);
    acknowledge_before(one, static_cast<std::uint64_t>(i) + 1000);
    one.consumer.frames.clear();
  }
  EXPECT_EQ(group().dead().parked(), messages / 2U);
  EXPECT_LT(group().dead().messages().bytes(), 6 * limits::MiB);
  std::size_t records = 0;
  for (std::optional<Offset> from = Offset{0}; from;) {
    const DeadList list = group().dead().list({}, *from, 1000);
    for (const DeadMessage& message : list.messages) records += message.record ? 1 : 0;
    from = list.next;
  }
  EXPECT_EQ(records, DeathRecord::records_max);
}

// The log drops the oldest messages although they are dead: they are lost, as any other.
TEST(DeadMessages, DroppedDeadMessagesAreLost) {
  test::GroupWorld world(protocol::BrokerType::queue, protocol::Overflow::drop_oldest, 64 * limits::KiB);
  Member member;
  world.join(member, asked());
  world.publish_numbers(0, 10);
  world.dispatch();
  Rejection rejection{0, {{{0}, {10}}}};
  rejection.kind = RejectKind::dead;
  member.group->reject(*member.member, rejection, world.now, world.wall);
  const std::string large(16 * limits::KiB, 'x');
  for (int i = 0; i < 20; ++i) world.publish({large});
  world.dispatch();
  EXPECT_EQ(member.group->dead().parked(), 0U);
  EXPECT_GE(world.stats().lost, 10U);
}

}  // namespace
}  // namespace lightq::broker
