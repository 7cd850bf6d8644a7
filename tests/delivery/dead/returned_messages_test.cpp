/// Tests of messages that are returned: from closed consumers, with late acknowledgements, and within bounds.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "delivery/attempts/flood_brake.hpp"
#include "delivery/dead/failures_fixture.hpp"
#include "delivery/state/due_times.hpp"
#include "support/random.hpp"

namespace lightq::broker {
namespace {

class ReturnedMessagesTest : public GroupFailuresTest {
 protected:
  void end_by(Member& member, MemberEnd how) {
    member.member->ends_by(how);
    end(member);
  }
  void acknowledge_one(Member& member, std::uint64_t offset) {
    acknowledge(member, {{{offset}, {offset + 1}}});
  }
};

// --- The end of a consumer ---

TEST_F(ReturnedMessagesTest, AClosedConsumerWithoutLeasesHasNotFailed) {
  set(1, {60'000});
  join(one, asked());
  publish_numbers(0, 3);
  dispatch();
  one.consumer.take();
  acknowledge_before(one, 1);
  end_by(one, MemberEnd::closed);
  EXPECT_TRUE(dead().empty());
  join(two, asked());
  dispatch();
  EXPECT_EQ(two.consumer.take(), (Strings{"1", "2"})) << "at once, as if they had not been delivered";
  EXPECT_EQ(group().failures().counters(), (GroupCounters{.acknowledged = 1, .released = 2}));
  EXPECT_EQ(group().redelivered(), 0U);
  end(two);
  EXPECT_EQ(dead().size(), 2U) << "its connection is lost";
}

TEST_F(ReturnedMessagesTest, AClosedConsumerWithLeasesHasFailedWithWhatItHasStarted) {
  set(1);
  join(one, with_leases());
  publish_numbers(0, 2);
  dispatch();
  start(one, {{0}, {1}});
  end_by(one, MemberEnd::closed);
  ASSERT_EQ(dead().size(), 1U);
  EXPECT_EQ(dead().front().offset, Offset{0});
}

TEST_F(ReturnedMessagesTest, MessagesThatAConsumerHasNotTakenWereNotDelivered) {
  set(3);
  join(one, asked());
  one.consumer.refuses = 2;
  publish_numbers(0, 5);
  dispatch();
  EXPECT_EQ(one.consumer.take(), (Strings{"0", "1", "2"}));
  EXPECT_EQ(group().failures().counters(), GroupCounters{}) << "nothing was returned";
  one.consumer.refuses = 0;
  one.consumer.is_writable = true;
  one.member->wake();
  dispatch();
  EXPECT_EQ(one.consumer.take(), (Strings{"3", "4"}));
}

TEST_F(ReturnedMessagesTest, AClosedConsumerKeepsEarlierFailures) {
  set(4);
  join(one, asked());
  publish_numbers(0, 1);
  dispatch();
  reject(one, {{0}, {1}});
  dispatch();
  EXPECT_EQ(one.consumer.take(), (Strings{"0", "0#2"}));
  end_by(one, MemberEnd::closed);
  join(two, asked());
  dispatch();
  EXPECT_EQ(two.consumer.take(), (Strings{"0#2"}));
  EXPECT_EQ(group().redelivered(), 1U);
}

TEST_F(ReturnedMessagesTest, AStopOfTheBrokerKillsNoMessage) {
  for (const bool leases : {false, true}) {
    Member member;
    set(2);
    join(member, leases ? with_leases() : asked());
    const auto at = topic.log().next_offset().value;
    publish_numbers(0, 1);
    dispatch();
    reject(member, {{at}, {at + 1}});
    dispatch();
    if (leases) member.group->start(*member.member, {std::nullopt, {{{at}, {at + 1}}}, 2}, now);
    end_by(member, MemberEnd::broker_stops);
    EXPECT_TRUE(dead().empty());
    group().seek(topic.log().next_offset());
  }
}

// --- Late acknowledgements ---

TEST_F(ReturnedMessagesTest, ALateAcknowledgementFinishesADelayedMessage) {
  set(0, {60'000});
  auto open = asked();
  open.ack_timeout_ms = 1000;
  one.consumer.wants_late = true;
  join(one, open);
  publish_numbers(0, 4);
  dispatch();
  pass(1100ms);
  dispatch();
  EXPECT_EQ(stats().retrying, 4U);
  acknowledge(one, {{{1}, {3}}});
  EXPECT_TRUE(one.consumer.was_late.empty());
  EXPECT_EQ(stats().retrying, 2U);
  EXPECT_EQ(stats().acknowledged, 2U);
  EXPECT_EQ(stored().unfinished.delayed.size(), 1U);
  one.consumer.take();
  pass(70s);
  dispatch();
  EXPECT_EQ(one.consumer.take(), (Strings{"0#2", "3#2"}));
}

TEST_F(ReturnedMessagesTest, ALateAcknowledgementFinishesADeadMessageThatIsNotUnderWay) {
  for (const bool transfers : {false, true}) {
    set(1, {}, transfers ? "letters" : "");
    Member member;
    auto open = asked();
    open.ack_timeout_ms = 1000;
    member.consumer.wants_late = true;
    join(member, open);
    const std::uint64_t at = topic.log().next_offset().value;
    publish_numbers(0, 3);
    dispatch();
    pass(1100ms);
    dispatch();
    EXPECT_EQ(group().dead().parked(), transfers ? 0U : 3U);
    EXPECT_EQ(group().dead().waiting(), transfers ? 3U : 0U);
    if (transfers) {
      ASSERT_EQ(group().dead().begin(1, TopicId{2}), 1U);
    }
    acknowledge(member, {{{at}, {at + 2}}});
    const std::vector<OffsetRange> under_way{{{at}, {at + 1}}};
    EXPECT_EQ(member.consumer.was_late, transfers ? under_way : std::vector<OffsetRange>{});
    EXPECT_EQ(dead().size(), transfers ? 2U : 1U);
    EXPECT_EQ(dead().back().offset, Offset{at + 2});
    end(member);
    group().seek(topic.log().next_offset());
  }
}

TEST_F(ReturnedMessagesTest, WithLeasesALateAcknowledgementIsLate) {
  set(0, {60'000});
  auto open = with_leases();
  open.ack_timeout_ms = 1000;
  join(one, open);
  publish_numbers(0, 1);
  dispatch();
  start(one, {{0}, {1}});
  pass(1100ms);
  dispatch();
  one.group->acknowledge(*one.member, {std::nullopt, {{{0}, {1}}}, 1});
  EXPECT_EQ(one.consumer.was_late, (std::vector<OffsetRange>{{{0}, {1}}}));
  EXPECT_EQ(stats().retrying, 1U);
}

// --- Bounds ---

// The records of 10,000 messages with reasons take more than a group may have ranges.
TEST(DeadRecordBounds, RecordsDoNotStopDeliveries) {
  constexpr std::size_t ranges_max = 1000;
  test::GroupWorld world(ranges_max);
  protocol::GroupSettings settings;
  settings.max_attempts = 2;
  settings.dead_letter_topic = "letters";
  world.topic.groups().set_settings("default", settings);
  Member member;
  world.join(member, asked());
  world.publish_numbers(0, 1000);
  world.dispatch();
  for (std::uint64_t at = 0; at < 1000; ++at) {
    Rejection rejection{0, {{{at}, {at + 1}}}};
    rejection.kind = RejectKind::dead;
    rejection.reason = std::string(200, 'r');
    member.group->reject(*member.member, rejection, world.now, world.wall);
  }
  EXPECT_EQ(member.group->dead().waiting(), 1000U);
  member.consumer.take();
  world.publish_numbers(1000, 1010);
  world.dispatch();
  EXPECT_EQ(member.consumer.take().size(), 10U);
  EXPECT_EQ(world.held_back, 0U);
}

TEST_F(ReturnedMessagesTest, WithoutSpaceForRecordsMessagesDieWithoutThem) {
  budget.record_bytes.add(0, limits::death_record_bytes_total - 2000);
  set(1);
  join(one, asked());
  publish_numbers(0, 100);
  dispatch();
  kill(one, {{0}, {100}}, "why");
  EXPECT_EQ(group().dead().parked(), 100U);
  const auto messages = dead();
  ASSERT_EQ(messages.size(), 100U);
  EXPECT_TRUE(messages.front().record);
  EXPECT_FALSE(messages.back().record);
  EXPECT_LE(budget.record_bytes.total(), limits::death_record_bytes_total);
  publish_numbers(100, 101);
  dispatch();
  EXPECT_EQ(one.consumer.take().back(), "100");
  budget.record_bytes.give_back(0, limits::death_record_bytes_total - 2000);
}

TEST(DueTimesRandom, RemovingManyRangesLeavesAllOthers) {
  for (int run = 0; run < 200; ++run) {
    test::Random random(run);
    DueTimes due;
    std::map<std::uint64_t, std::uint64_t> set_of;
    for (std::uint64_t at = 0; at < 200; ++at) {
      if (random.one_in(4)) continue;
      set_of[at] = random.below(6);
      due.add({{at}, {at + 1}}, SteadyTime(std::chrono::seconds(set_of[at])));
    }
    std::vector<OffsetRange> ranges;
    for (std::uint64_t at = random.below(5); at < 200;) {
      const std::uint64_t end = at + random.between(1, random.one_in(5) ? 30 : 2);
      ranges.push_back({{at}, {end}});
      for (std::uint64_t each = at; each < end; ++each) set_of.erase(each);
      at = end + random.below(10);
    }
    due.remove(ranges);
    ASSERT_EQ(due.messages(), set_of.size());
    for (const auto& [at, set] : set_of)
      ASSERT_TRUE(due.sets().at(SteadyTime(std::chrono::seconds(set))).contains({at}));
  }
}

// Each delayed message has a due time of its own.
TEST_F(ReturnedMessagesTest, ALowerLimitVisitsDueTimesOnceForManyMessages) {
  constexpr std::uint64_t messages = 2000;
  join(one, asked());
  publish_numbers(0, messages);
  dispatch();
  for (std::uint64_t at = 0; at < messages; ++at)
    reject(one, {{at}, {at + 1}}, static_cast<std::uint32_t>(60'000 + at * 1500));
  ASSERT_GT(group().messages().redelivery().waiting().due().sets().size(), 500U);
  settings.max_attempts = 1;
  topic.groups().set_settings("default", settings);
  int turns = 0;
  while (topic.dispatch({.now = now, .wall = wall}).more) ++turns;
  EXPECT_EQ(dead({}).size(), 100U);
  EXPECT_EQ(group().dead().parked(), messages);
  EXPECT_EQ(group().messages().redelivery().waiting().due().messages(), 0U);
  EXPECT_LT(turns, 20);
}

TEST_F(ReturnedMessagesTest, APlainConsumersCountsTakeLittleMemory) {
  set(1'000'000);
  join(one, asked());
  publish_numbers(0, 20'000);
  dispatch();
  for (std::uint64_t at = 0; at < 20'000; at += 2) reject(one, {{at}, {at + 1}});
  for (std::uint64_t at = 1; at < 20'000; at += 2) acknowledge_one(one, at);
  one.consumer.is_writable = false;
  FakeRecordSink plain(10, false);
  topic.attach_puller(plain);
  for (int i = 0; i < 3000; ++i) {
    dispatch();
    plain.send(9);
    plain.give_room(plain.taken.size() + 9);
  }
  EXPECT_LE(group().messages().bytes_of_unsent(), 4096U);
  topic.detach_puller(plain);
}

// --- First failures ---

TEST_F(ReturnedMessagesTest, AnAcknowledgementForgetsTheFirstFailure) {
  set(5);
  join(one, asked());
  publish_numbers(0, 3);
  dispatch();
  reject(one, {{1}, {2}});
  dispatch();
  ASSERT_FALSE(group().dead().messages().first_failures().empty());
  acknowledge_one(one, 1);
  EXPECT_TRUE(group().dead().messages().first_failures().empty()) << "message 0 is in flight yet";
}

TEST(FirstFailuresTimes, AreExactAgainWhenOldOnesHaveGone) {
  FirstFailures failures;
  for (std::uint64_t i = 0; i < 1000; ++i)
    failures.add({{i}, {i + 1}}, {static_cast<std::int64_t>(i) * 1'000'000});
  EXPECT_LE(failures.sets().size(), FirstFailures::times_max);
  failures.remove({{0}, {999}});
  failures.add({{5000}, {5001}}, {1'000'700'000});
  failures.add({{5001}, {5002}}, {1'001'700'000});
  EXPECT_EQ(failures.of({5000}), Timestamp{1'000'000'000});
  EXPECT_EQ(failures.of({5001}), Timestamp{1'001'000'000});
}

// --- Statistics ---

TEST_F(ReturnedMessagesTest, RecentNumbersAreThoseOfNow) {
  set(1);
  join(one, asked());
  publish_numbers(0, 10);
  dispatch();
  reject(one, {{0}, {4}});
  EXPECT_EQ(stats().recent_dead, 4U) << "nothing was dispatched since";
  pass(2s);
  dispatch();
  EXPECT_EQ(stats().recent_dead, 4U);
  pass(11s);
  EXPECT_EQ(stats().recent_dead, 0U) << "nothing is dispatched";
  EXPECT_EQ(stats().recent_ended, 0U);
}

}  // namespace
}  // namespace lightq::broker
