/// Tests of the memory and the work that a group's state takes: a million scattered messages, and consumers
/// that make it as large as they can.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "admission/turn_work.hpp"
#include "delivery/consumer_group_harness.hpp"
#include "support/random.hpp"

namespace lightq::broker {
namespace {

using std::chrono::milliseconds;
using test::asked;
using test::GroupWorld;
using test::Member;
using test::Random;

constexpr std::uint64_t millions_ring_bytes = 128 * limits::MiB;

TEST(GroupMemory, AMillionHolesTakeAtMostFourMebibytesAndHoldNothingBack) {
  constexpr std::uint64_t holes = 1'000'000;
  constexpr std::uint64_t portion = 8000;
  GroupWorld world(limits::group_ranges_total, {}, millions_ring_bytes);
  Member member;
  world.join(member, asked("g"), 7);
  // Acknowledges every other message, and rejects the others with a long delay.
  for (std::uint64_t at = 0; at < 2 * holes; at += portion) {
    world.publish(std::vector<std::string>(portion, "x"));
    world.dispatch();
    member.consumer.frames.clear();
    std::vector<OffsetRange> every_second;
    for (std::uint64_t i = at; i < at + portion; i += 2) every_second.push_back({{i}, {i + 1}});
    world.acknowledge(member, every_second);
    world.reject(member, {{at}, {at + portion}}, 3'600'000);
    ASSERT_TRUE(member.member->add_credit({portion, portion}));
  }
  const RedeliveryQueue& queue = member.group->messages().redelivery();
  EXPECT_EQ(queue.delayed_messages(), holes);
  RecordProperty("delayed_bytes", std::to_string(queue.bytes()));
  EXPECT_LE(queue.bytes(), 4 * limits::MiB);
  world.publish({"new"});
  world.dispatch();
  EXPECT_THAT(member.consumer.take(), testing::ElementsAre("new"));

  world.pass(milliseconds(3'700'000));
  std::size_t turns = 0;
  for (; queue.delayed_messages() != 0; ++turns) {
    const std::uint64_t before = TurnWork::bytes();
    member.group->tend({.now = world.now});
    ASSERT_LE(TurnWork::bytes() - before, 10'000 * TurnWork::range_passed);
  }
  EXPECT_GT(turns, 900U);
  RecordProperty("ready_bytes", std::to_string(queue.bytes()));
  EXPECT_LE(queue.bytes(), 4 * limits::MiB);
  EXPECT_FALSE(queue.is_full());
  EXPECT_EQ(world.held_back, 0U);

  const auto stored = world.stored("g");
  EXPECT_EQ(stored.unfinished.messages.size(), holes + 1);
  GroupWorld next(limits::group_ranges_total);
  GroupCursors(next.topic.groups()).restore({stored}, stored.unfinished.next, next.clocks());
  const GroupMessages& restored = next.topic.groups().find("g")->messages();
  EXPECT_EQ(restored.redelivery().ready_messages(), holes + 1);
  EXPECT_EQ(restored.next(), stored.unfinished.next);
}

/// A consumer that scatters numbers of deliveries, due times and offsets.
TEST(GroupMemory, AHostileConsumerIsBoundedByItsChargeAndHarmsNoOtherGroup) {
  constexpr std::uint64_t mallory = 7;
  constexpr std::uint64_t alice = 8;
  constexpr std::size_t budget = 4096;
  constexpr std::uint64_t messages = 20'000;
  Random random;
  GroupWorld world(budget, {.state_bytes_max = 128 * limits::KiB}, 16 * limits::MiB);
  world.publish(std::vector<std::string>(messages, "x"));
  Member hostile;
  world.join(hostile, asked("hostile"), mallory);
  std::uint64_t most_work = 0;
  std::size_t most_bytes = 0;
  for (int round = 0; round < 300; ++round) {
    world.topic.answer_at_once();
    const std::uint64_t before = TurnWork::bytes();
    world.topic.dispatch({.now = world.now, .wall = world.wall});
    most_work = std::max(most_work, TurnWork::bytes() - before);
    std::size_t rejected = 0;
    for (const auto& frame : std::exchange(hostile.consumer.frames, {})) {
      for (std::uint64_t at = frame.range.begin.value; at < frame.range.end.value && rejected < 400; ++at) {
        const auto ms = static_cast<std::uint32_t>(random.below(std::uint64_t{1} << random.between(1, 25)));
        if (random.one_in(3)) world.reject(hostile, {{at}, {at + 1}}, ms);
        rejected += 1;
      }
      world.reject(hostile, frame.range, random.one_in(2) ? 0 : 5);
    }
    world.pass(milliseconds(random.below(100)));
    const RedeliveryQueue& queue = hostile.group->messages().redelivery();
    most_bytes = std::max(most_bytes, queue.bytes());
    ASSERT_LE(queue.waiting().due().sets().size(), DueTimes::rounded_max);
    ASSERT_LE(world.budget.ranges.of(mallory), budget);
  }
  RecordProperty("most_bytes", std::to_string(most_bytes));
  RecordProperty("most_work", std::to_string(most_work));
  EXPECT_GT(most_bytes, 64 * limits::KiB) << "or this would show nothing";
  EXPECT_LE(most_bytes, 256 * limits::KiB) << "the limit, and what was in flight when it was reached";
  EXPECT_LE(most_work, 4 * limits::MiB);
  Member other;
  world.join(other, asked("alice"), alice);
  world.dispatch();
  EXPECT_EQ(other.consumer.take().size(), messages) << "her group is not held back";
}

TEST(GroupMemory, RestoredStateIsChargedToTheUserThatOpensTheGroupFirst) {
  constexpr std::uint64_t alice = 8;
  constexpr std::uint64_t bob = 9;
  log::NamedCursor stored{"group:g", {0}, {{4000}, {}}};
  for (std::uint64_t i = 0; i < 4000; i += 2) stored.unfinished.messages.add({{i}, {i + 1}});
  GroupWorld world(limits::group_ranges_total);
  GroupCursors(world.topic.groups()).restore({stored}, {4000}, world.clocks());
  const std::size_t units = world.budget.ranges.total();
  EXPECT_GT(units, 30U);
  EXPECT_EQ(world.budget.ranges.of(0), units);
  Member first, second;
  world.join(first, asked("g"), alice);
  EXPECT_EQ(world.budget.ranges.of(alice), units);
  world.join(second, asked("g"), bob);
  EXPECT_EQ(world.budget.ranges.of(alice), units);
  EXPECT_EQ(world.budget.ranges.total(), units);
  first.group->seek({4000});
  EXPECT_EQ(world.budget.ranges.total(), 0U);
}

TEST(GroupMemory, ManyMessagesAreTakenBackInPieces) {
  constexpr std::uint64_t messages = 12'000;
  constexpr std::uint64_t piece = 4096;
  GroupWorld world(limits::group_ranges_total);
  std::vector<Member> members(2);
  auto request = asked("g");
  request.ack_timeout_ms = 1000;
  request.credit.messages = messages / 2;
  for (Member& member : members) {
    world.join(member, request);
    world.publish(std::vector<std::string>(messages / 2, "x"));
    world.dispatch();
  }
  for (Member& member : members) {
    std::vector<OffsetRange> every_second;
    for (std::uint64_t i = 0; i < messages; i += 2) every_second.push_back({{i}, {i + 1}});
    world.acknowledge(member, every_second);
    member.member->rest();
  }
  const ConsumerGroup& group = *members.front().group;
  ASSERT_EQ(group.messages().in_flight(), messages / 2);
  world.pass(milliseconds(5000));
  std::uint64_t ready = 0;
  for (; group.messages().in_flight() != 0; ready = group.messages().redelivery().ready_messages()) {
    ASSERT_LE(group.next_timer(), world.now);
    members.front().group->tend({.now = world.now});
    ASSERT_LE(group.messages().redelivery().ready_messages() - ready, piece);
    ASSERT_EQ(group.messages().redelivery().ready_messages() + group.messages().in_flight(), messages / 2);
    ASSERT_GT(group.messages().redelivery().ready_messages(), ready);
  }
  EXPECT_EQ(ready, messages / 2);
  EXPECT_GT(group.next_timer(), world.now);
}

TEST(GroupMemory, ATurnOfPlainConsumersIsBoundedByItsWork) {
  constexpr std::uint64_t messages = 4000;
  Random random;
  log::NamedCursor stored{"group:default", {0}, {{2 * messages}, {}}};
  stored.unfinished.delivery_bits.resize(20);
  for (std::uint64_t i = 0; i < 2 * messages; i += 2) {
    stored.unfinished.messages.add({{i}, {i + 1}});
    for (log::OffsetSet& bit : stored.unfinished.delivery_bits) {
      if (random.one_in(2)) bit.add({{i}, {i + 1}});
    }
  }
  GroupWorld world(limits::group_ranges_total);
  world.publish(std::vector<std::string>(2 * messages, "x"));
  GroupCursors(world.topic.groups()).restore({stored}, {2 * messages}, world.clocks());
  test::FakeRecordSink puller;
  world.topic.attach_puller(puller);
  world.topic.answer_at_once();
  std::size_t turns = 0;
  for (bool more = true; more; ++turns) {
    const std::uint64_t before = TurnWork::bytes();
    more = world.topic.dispatch({.now = world.now, .wall = world.wall}).more;
    ASSERT_LE(TurnWork::bytes() - before, 3 * limits::MiB);
  }
  EXPECT_GT(turns, 3U);
  EXPECT_EQ(puller.offsets.size(), messages);
}

TEST(GroupMemory, FreeingALargeStateIsWork) {
  WaitingMessages waiting;
  for (std::uint64_t i = 0; i < 400'000; i += 2) waiting.add({{i}, {i + 1}}, 1);
  const std::uint64_t least = waiting.bytes() / log::offset_leaf_bytes_max * TurnWork::range_passed / 2;
  WaitingMessages other = waiting;
  std::uint64_t before = TurnWork::bytes();
  waiting.clear();
  EXPECT_GE(TurnWork::bytes() - before, least);
  before = TurnWork::bytes();
  other.give_up_before({400'000});
  EXPECT_GE(TurnWork::bytes() - before, least);
}

TEST(GroupMemory, AnIdleGroupCostsNoWorkInADispatch) {
  GroupWorld world(limits::group_ranges_total, {}, millions_ring_bytes);
  std::vector<Member> members(30);
  for (std::size_t i = 0; i < members.size(); ++i) world.join(members[i], asked("g" + std::to_string(i)), 7);
  world.publish(std::vector<std::string>(8000, "x"));
  world.dispatch();
  for (Member& member : members) {
    for (std::uint64_t i = 0; i < 8000; i += 2)
      world.reject(member, {{i}, {i + 1}}, 60'000 + static_cast<std::uint32_t>(i % 100) * 1000);
    world.acknowledge_before(member, 8000);
  }
  world.topic.answer_at_once();
  world.dispatch();
  const std::uint64_t before = TurnWork::bytes();
  for (int i = 0; i < 100; ++i) world.topic.dispatch({.now = world.now, .wall = world.wall});
  EXPECT_LE(TurnWork::bytes() - before, 100 * members.size() * TurnWork::batch_passed);
}

// --- Snapshots ---

TEST(GroupMemory, APieceOfASnapshotVisitsALimitedNumberOfRanges) {
  GroupWorld world(limits::group_ranges_total, {}, millions_ring_bytes);
  std::vector<Member> members(20);
  for (Member& member : members) {
    world.join(member, asked("g"), 7);
    world.publish(std::vector<std::string>(8000, "x"));
    world.dispatch();
  }
  std::size_t ranges = 0;
  for (Member& member : members) {
    for (const auto& frame : member.consumer.frames) {
      std::vector<OffsetRange> every_second;
      for (std::uint64_t i = frame.range.begin.value; i < frame.range.end.value; i += 2)
        every_second.push_back({{i}, {i + 1}});
      world.acknowledge(member, every_second);
    }
    ranges += member.member->outstanding().ranges();
  }
  ASSERT_GE(ranges, 70'000U);
  GroupCursors saves(world.topic.groups());
  saves.begin();
  std::size_t pieces = 0;
  for (bool complete = false; !complete; ++pieces) {
    const std::uint64_t before = TurnWork::bytes();
    complete = saves.collect(4096, world.clocks());
    ASSERT_LE(TurnWork::bytes() - before, 2 * 4096 * TurnWork::range_passed);
  }
  EXPECT_GE(pieces, ranges / 4096);
  EXPECT_EQ(saves.take().finished().front().unfinished.messages.size(), world.stats("g").unacknowledged);
  EXPECT_FALSE(saves.changed());
  world.acknowledge_before(members.front(), 8000);
  EXPECT_TRUE(saves.changed());
}

TEST(GroupMemory, OnlyChangesOfWhatIsSavedAreChanges) {
  GroupWorld world(limits::group_ranges_total);
  Member member;
  world.join(member, asked("g"));
  world.publish(std::vector<std::string>(10, "x"));
  world.dispatch();
  GroupCursors saves(world.topic.groups());
  EXPECT_TRUE(saves.changed()) << "there is a new group";
  const auto changes = [&](const auto& act) {
    saves.begin();
    EXPECT_FALSE(saves.changed());
    act();
    return saves.changed();
  };
  EXPECT_TRUE(changes([&] { world.acknowledge(member, {{{2}, {3}}}); }));
  EXPECT_FALSE(changes([&] { world.acknowledge(member, {{{2}, {3}}}); })) << "it is finished already";
  EXPECT_FALSE(changes([&] { member.group->extend(*member.member, {5000, {{{0}, {10}}}}, world.now); }));
  EXPECT_FALSE(changes([&] { world.dispatch(); }));
  EXPECT_TRUE(changes([&] { world.reject(member, {{4}, {5}}, 1000); }));
  EXPECT_TRUE(changes([&] { world.reject(member, {{5}, {6}}); }));
  EXPECT_TRUE(changes([&] { world.dispatch(); })) << "message 5 is delivered again";
  EXPECT_TRUE(changes([&] { member.group->set_paused(true); }));
  EXPECT_TRUE(changes([&] { member.group->seek({0}); }));
  world.leave(member);
  EXPECT_TRUE(changes([&] { world.topic.groups().remove(*member.group); }));
}

}  // namespace
}  // namespace lightq::broker
