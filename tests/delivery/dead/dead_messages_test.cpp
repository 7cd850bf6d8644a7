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

TEST_F(DeadMessagesTest, AreSelectedByTheTimeOfTheirDeath) {
  join(one, asked());
  publish_numbers(0, 6);
  dispatch();
  std::vector<Timestamp> died;
  for (std::uint64_t i = 0; i < 3; ++i) {
    kill(one, {{2 * i}, {2 * i + 2}});
    died.push_back(wall);
    pass(5s);
  }
  const auto offsets = [&](const DeadFilter& filter) {
    std::vector<std::uint64_t> all;
    for (const DeadMessage& message : dead(filter)) all.push_back(message.offset.value);
    return all;
  };
  using Offsets = std::vector<std::uint64_t>;
  const auto just_behind = [](Timestamp time) { return Timestamp{time.us + 1}; };
  EXPECT_EQ(offsets({.failed_since = died[1]}), (Offsets{2, 3, 4, 5})) << "at this time or later";
  EXPECT_EQ(offsets({.failed_since = just_behind(died[1])}), (Offsets{4, 5}));
  EXPECT_EQ(offsets({.failed_until = died[1]}), (Offsets{0, 1})) << "before this time";
  EXPECT_EQ(offsets({.failed_until = just_behind(died[1])}), (Offsets{0, 1, 2, 3}));
  EXPECT_EQ(offsets({.failed_since = died[1], .failed_until = died[2]}), (Offsets{2, 3}));
  EXPECT_EQ(offsets({.failed_since = died[2], .failed_until = died[1]}), Offsets{});
  EXPECT_EQ(offsets({.failed_since = died[0], .ranges = {{{1}, {3}}}}), (Offsets{1, 2}));
  EXPECT_EQ(offsets({.cause = DeathCause::attempts, .failed_since = died[0]}), Offsets{});
  EXPECT_EQ(group().dead().count({.failed_until = died[1]}, Offset{0}).messages, 2U);
  EXPECT_EQ(group().dead().purge({.failed_since = died[2]}, Offset{0}).messages, 2U);
  EXPECT_EQ(offsets({}), (Offsets{0, 1, 2, 3}));
}

TEST_F(DeadMessagesTest, ASelectionByTimeWorksInPiecesAndMeansNoMessageWithoutATime) {
  constexpr int messages = static_cast<int>(DeathRecord::records_max) + 100;
  join(one, asked());
  publish_numbers(0, messages);
  while (one.consumer.frames.empty() || one.consumer.frames.back().range.end < Offset{messages}) dispatch();
  kill(one, {{0}, {messages}});
  std::uint64_t found = 0;
  int pieces = 0;
  for (DeadPiece piece{.next = Offset{0}}; piece.next; ++pieces) {
    piece = group().dead().count({.failed_since = Timestamp{0}}, *piece.next);
    found += piece.messages;
    EXPECT_LE(piece.messages, 256U);
  }
  EXPECT_EQ(found, DeathRecord::records_max) << "the others have no record";
  EXPECT_GT(pieces, 20);
  EXPECT_EQ(group().dead().count({}, Offset{0}).messages, std::uint64_t{messages});
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
  EXPECT_EQ(group().dead().begin(10, letters), 4U);
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
  group().dead().begin(1, letters);
  const std::uint64_t life = group().dead().incarnation();
  EXPECT_TRUE(group().dead().done(life, 1));
  EXPECT_EQ(group().dead().begin(2, letters), 2U);
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
  EXPECT_EQ(dead.begin(9, letters), 1U);
  EXPECT_EQ(dead.under_way()[0].number, 1U);
  EXPECT_NE(dead.incarnation(), life) << "the number 2 is not used again";
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

// The topic may have the messages under way. They are parked when it is known that it does not.
TEST_F(DeadMessagesTest, WithoutADeadLetterTopicMessagesUnderWayWaitForItsAnswer) {
  set(1, {}, "letters");
  join(one, asked());
  publish_numbers(0, 5);
  dispatch();
  reject(one, {{0}, {5}});
  ASSERT_EQ(group().dead().begin(3, letters), 3U);
  const std::uint64_t life = group().dead().incarnation();
  set(1);
  EXPECT_EQ(group().dead().waiting(), 3U);
  EXPECT_EQ(group().dead().parked(), 2U);
  EXPECT_EQ(group().dead().target(), letters);
  EXPECT_EQ(group().dead().incarnation(), life);
  EXPECT_TRUE(group().dead().done(life, 1)) << "the topic has it";
  group().dead().renew();
  EXPECT_EQ(group().dead().waiting(), 0U);
  EXPECT_EQ(group().dead().parked(), 4U);
  EXPECT_EQ(dead().front().offset, Offset{1});
}

// The catalogue has no settings of the group, because they are the defaults, and its file is from before.
TEST_F(DeadMessagesTest, AfterARestartWithDefaultSettingsTheOutboxIsParked) {
  set(1, {}, "letters");
  join(one, asked());
  publish_numbers(0, 5);
  dispatch();
  reject(one, {{0}, {5}});
  ASSERT_EQ(group().dead().begin(2, letters), 2U);
  const auto stored = test::stored_cursors(topic.groups(), clocks());
  test::GroupWorld after(0x100000);
  after.publish_numbers(0, 5);
  test::restore_cursors(after.topic, stored, clocks());
  GroupDead dead = after.topic.groups().plain()->dead();
  dead.park_without_target();
  EXPECT_EQ(dead.waiting(), 2U);
  EXPECT_EQ(dead.parked(), 3U);
  dead.renew();
  EXPECT_EQ(dead.parked(), 5U);
}

TEST_F(DeadMessagesTest, TheReasonWhyTransfersWaitIsShownWhileMessagesWait) {
  set(1, {}, "letters");
  join(one, asked());
  publish_numbers(0, 1);
  dispatch();
  group().dead().set_trouble("no such topic");
  EXPECT_EQ(stats().dead_waiting_by, "");
  reject(one, {{0}, {1}});
  EXPECT_EQ(stats().dead_waiting_by, "no such topic");
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
  EXPECT_EQ(group().failures().recent({}).ended, 100U);
  EXPECT_EQ(group().failures().recent({}).dead, 50U);
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

// A limit of a million messages that wait is allowed. A save copies them every second.
TEST(DeadMessages, AMillionThatWaitTakeAndCopyLittle) {
  constexpr std::uint64_t messages = log::SavedDead::outbox_max;
  DeadMessages dead;
  for (std::uint64_t at = 0; at < 2 * messages; at += 2)
    dead.add({{at}, {at + 1}}, Death(), DeadState::dead_waiting);
  ASSERT_EQ(dead.waiting().size(), messages);
  EXPECT_LT(dead.waiting().bytes(), 4 * limits::MiB);
  EXPECT_EQ(dead.begin(256, {9}, {messages}), 256U);
  const DeadMessages copy = dead;
  EXPECT_TRUE(copy.waiting().shares_all_with(dead.waiting()));
  std::vector<OffsetRange> found;
  Offset from{0};
  constexpr std::size_t parts = 256;
  while (const auto next = dead.find({}, from, parts, true, found)) {
    dead.remove(found);
    found.clear();
    from = *next;
  }
  dead.remove(found);
  EXPECT_EQ(dead.waiting().size(), 256U) << "those under way";
  dead.add({{2 * messages}, {2 * messages + 10}}, Death(), DeadState::dead_waiting);
  EXPECT_EQ(dead.give_up_before({2 * messages + 5}), 5U);
  EXPECT_EQ(dead.outbox().under_way().size(), 256U);
  EXPECT_EQ(dead.waiting().size(), 261U);
}

// The records of several groups are copied in several turns.
TEST_F(DeadMessagesTest, ASaveCopiesALimitedNumberOfRecordsInATurn) {
  constexpr std::uint64_t records = DeathRecord::records_max;
  for (const char* const name : {"a", "b", "c"}) {
    ASSERT_EQ(join(one, asked(name)), ClientError::none);
    one.group->messages().redelivery().change_dead([](DeadMessages& dead) {
      for (std::uint64_t at = 0; at < 2 * records; at += 2)
        dead.add({{at}, {at + 1}}, Death(), DeadState::parked);
    });
  }
  GroupCursors saves(topic.groups());
  saves.begin();
  int turns = 1;
  constexpr std::size_t ranges_of_turn = 64;
  while (!saves.collect(ranges_of_turn, clocks())) ++turns;
  EXPECT_EQ(turns, 3);
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
