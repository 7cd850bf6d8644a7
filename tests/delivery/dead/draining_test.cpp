/// Tests that a suspect is delivered, and that others go on, whatever members without leases do.
#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "delivery/dead/failures_fixture.hpp"
#include "support/random.hpp"

namespace lightq::broker {
namespace {

class DrainingTest : public GroupFailuresTest {
 protected:
  void extend(Member& member, OffsetRange range) {
    member.group->extend(*member.member, {600'000, {range}}, now);
  }
  void publish_next() {
    publish_numbers(published, published + 1);
    ++published;
  }
  /// The first member holds message 0 for good. The second one works for `work` on each message, and has
  /// another one by then unless it drains. Message 2 is a suspect. Returns true if the second one receives it
  /// in time.
  bool receives_the_suspect_within(SteadyTime::duration time, SteadyTime::duration work) {
    set(2);
    join(one, asked());
    join(two, asked());
    for (int i = 0; i < 4; ++i) {
      publish_next();
      dispatch();
    }
    EXPECT_EQ(one.consumer.take(), (Strings{"0", "2"}));
    EXPECT_EQ(two.consumer.take(), (Strings{"1", "3"}));
    std::deque<std::pair<std::uint64_t, SteadyTime>> held{{1, now}, {3, now}};
    reject(one, {{2}, {3}});
    for (const SteadyTime end = now + time; now < end; pass(100ms)) {
      extend(one, {{0}, {1}});
      publish_next();
      publish_next();
      dispatch();
      bool any = false;
      for (const auto& frame : std::exchange(two.consumer.frames, {})) {
        if (frame.range.begin == Offset{2}) return true;
        for (Offset at = frame.range.begin; at < frame.range.end; at = at + 1)
          held.emplace_back(at.value, now);
        any = true;
      }
      while (!held.empty() && held.front().second + work <= now && (held.size() > 1 || !any)) {
        const std::uint64_t done = held.front().first;
        acknowledge(two, {{{done}, {done + 1}}});
        held.pop_front();
      }
    }
    return false;
  }
  int published = 0;
};

// A member that has one message alone rests. Settings by which that message is no suspect any more wake it.
TEST_F(DrainingTest, AMemberTakesMessagesAgainWhenItsMessageIsNoSuspectAnyMore) {
  set(2);
  join(one, asked());
  publish_numbers(0, 3);
  dispatch();
  one.consumer.take();
  reject(one, {{0}, {1}});
  acknowledge(one, {{{1}, {3}}});
  dispatch();
  EXPECT_EQ(one.consumer.take(), Strings{"0#2"});
  publish_numbers(3, 5);
  dispatch();
  EXPECT_EQ(one.consumer.take(), Strings{});
  set(6);
  EXPECT_EQ(one.consumer.take(), (Strings{"3", "4"}));
}

TEST_F(DrainingTest, ASuspectIsDeliveredBesideAMemberThatNeverFinishes) {
  EXPECT_TRUE(receives_the_suspect_within(3s, 100ms));
}

TEST_F(DrainingTest, AMemberWithLongMessagesGetsMoreTimeUntilItHasFinished) {
  EXPECT_TRUE(receives_the_suspect_within(40s, 5s));
}

TEST_F(DrainingTest, AMemberThatDrainedInVainTakesMessagesAgain) {
  set(2);
  join(one, asked());
  publish_numbers(0, 2);
  dispatch();
  one.consumer.take();
  reject(one, {{1}, {2}});
  extend(one, {{0}, {1}});
  publish_numbers(2, 3);
  dispatch();
  EXPECT_EQ(one.consumer.take(), Strings{}) << "it is to finish message 0";
  EXPECT_LE(group().next_timer(), now + 1s) << "nothing else may happen";
  pass(1000ms);
  dispatch();
  EXPECT_EQ(one.consumer.take(), (Strings{"2"}));
  publish_numbers(3, 4);
  dispatch();
  EXPECT_EQ(one.consumer.take(), (Strings{"3"}));
  pass(1000ms);
  publish_numbers(4, 5);
  dispatch();
  EXPECT_EQ(one.consumer.take(), Strings{}) << "it tries again";
  acknowledge(one, {{{0}, {1}}, {{2}, {4}}});
  dispatch();
  EXPECT_EQ(one.consumer.take(), (Strings{"1#2"}));
  acknowledge(one, {{{1}, {2}}});
  dispatch();
  EXPECT_EQ(one.consumer.take(), (Strings{"4"}));
}

TEST_F(DrainingTest, APausedGroupDrainsNobodyInVain) {
  set(2);
  join(one, asked());
  publish_numbers(0, 3);
  dispatch();
  one.consumer.take();
  reject(one, {{1}, {2}});
  extend(one, {{0}, {1}});
  dispatch();
  group().set_paused(true);
  for (int i = 0; i < 100; ++i) {
    pass(1000ms);
    dispatch();
    EXPECT_GT(group().next_timer(), now) << "it would run without an end";
  }
  group().set_paused(false);
  publish_numbers(3, 4);
  dispatch();
  EXPECT_EQ(one.consumer.take(), (Strings{"3"})) << "its time was over";
  for (int ms = 0; ms < 3500; ms += 100) {
    pass(100ms);
    dispatch();
  }
  publish_numbers(4, 5);
  dispatch();
  EXPECT_EQ(one.consumer.take(), (Strings{"4"})) << "it drained for two seconds at most";
}

/// A consumer of the random test.
struct DrainMember {
  Member as;
  bool finishes = true;              // else it keeps its first message for good
  std::chrono::milliseconds work{};  // for each message
  std::deque<std::uint64_t> held;
  SteadyTime busy_until{};
  SteadyTime served_at{};  // it received a message, or had none to receive
};

// From every state with a ready message and a member that could take it, a delivery follows.
TEST(DrainingRandom, EverySuspectIsDeliveredAndNobodyWaitsForLong) {
  int suspects = 0;
  for (int run = 0; run < 60; ++run) {
    test::Random random(run);
    test::GroupWorld world(0x100000);
    protocol::GroupSettings settings;
    settings.max_attempts = 2;
    world.topic.groups().set_settings("default", settings);
    std::vector<std::unique_ptr<DrainMember>> members;
    const std::uint64_t count = random.between(1, 5);
    for (std::uint64_t i = 0; i < count; ++i) {
      auto member = std::make_unique<DrainMember>();
      member->finishes = i == 0 || random.one_in(2);
      member->work = std::chrono::milliseconds(random.between(1, 400));
      auto open = test::asked();
      open.credit.messages = static_cast<std::uint32_t>(random.between(1, 8));
      open.ack_timeout_ms = 3'600'000;
      world.join(member->as, open);
      member->served_at = world.now;
      members.push_back(std::move(member));
    }
    std::map<std::uint64_t, SteadyTime> waiting;  // suspects
    int published = 0;
    for (int step = 0; step < 3000; ++step) {
      while (world.stats().ready < 20) {
        world.publish_numbers(published, published + 5);
        published += 5;
      }
      world.dispatch();
      for (const auto& member : members) {
        for (const auto& frame : std::exchange(member->as.consumer.frames, {})) {
          member->served_at = world.now;
          for (std::uint64_t at = frame.range.begin.value; at < frame.range.end.value; ++at) {
            if (waiting.erase(at) != 0) ++suspects;
            ASSERT_TRUE(frame.delivery == 1 || member->held.empty());
            if (member->held.empty()) member->busy_until = world.now + member->work;
            member->held.push_back(at);
          }
        }
        const std::size_t kept = member->finishes ? 0 : 1;
        if (member->held.size() > kept && member->busy_until <= world.now) {
          const std::uint64_t at = member->held[kept];
          member->held.erase(member->held.begin() + static_cast<std::ptrdiff_t>(kept));
          if (random.one_in(50) && waiting.size() < 3) {
            member->as.group->reject(*member->as.member, {0, {{{at}, {at + 1}}}}, world.now);
            const WaitingMessages& queue = member->as.group->messages().redelivery().waiting();
            if (queue.alone().contains({at})) waiting[at] = world.now;
          } else {
            member->as.group->acknowledge(*member->as.member, {std::nullopt, {{{at}, {at + 1}}}});
          }
          ASSERT_TRUE(member->as.member->add_credit({1, 0}));
          member->busy_until = world.now + member->work;
        }
        // A member with credit gets a message, at the latest when it has drained in vain for about twice as
        // long as the slowest member needs.
        if (!member->as.member->can_take()) member->served_at = world.now;
        ASSERT_LT(world.now - member->served_at, 10s)
            << "run " << run << ", step " << step << ": a member with " << member->held.size()
            << " messages, finishes " << member->finishes;
      }
      for (const auto& [at, since] : waiting)
        ASSERT_LT(world.now - since, 120s) << "run " << run << ", message " << at;
      world.pass(std::chrono::milliseconds(20));
    }
  }
  EXPECT_GT(suspects, 1000) << suspects;
}

}  // namespace
}  // namespace lightq::broker
