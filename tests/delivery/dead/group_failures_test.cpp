/// Tests the settings of a group on messages that fail: attempts, back-off, suspects.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "delivery/dead/failures_fixture.hpp"

namespace lightq::broker {
namespace {

TEST_F(GroupFailuresTest, BackOffGrowsByItsStepsAndTheLastOneRepeats) {
  set(0, {1000, 10'000});
  join(one, asked());
  publish_numbers(0, 1);
  dispatch();
  for (const auto wait : {1000ms, 10'000ms, 10'000ms}) {
    one.consumer.take();
    reject(one, {{0}, {1}});
    EXPECT_EQ(stats().retrying, 1U);
    pass(wait * 9 / 10 - 1ms);
    dispatch();
    EXPECT_EQ(one.consumer.take(), Strings{}) << "a tenth early at most";
    pass(wait * 2 / 10 + wait / 64 + 10ms);
    dispatch();
    EXPECT_EQ(one.consumer.take().size(), 1U) << "a tenth late at most";
  }
  reject(one, {{0}, {1}}, 50);
  pass(60ms);
  dispatch();
  EXPECT_EQ(one.consumer.take(), (Strings{"0#5"})) << "the consumer's delay counts";
}

TEST_F(GroupFailuresTest, BackOffHoldsForAllFailures) {
  set(0, {1000});
  auto open = asked();
  open.ack_timeout_ms = 500;
  join(one, open);
  join(two, asked());
  two.consumer.is_writable = false;
  publish_numbers(0, 1);
  dispatch();
  pass(600ms);
  dispatch();
  EXPECT_EQ(stats().retrying, 1U) << "timed out";
  pass(1200ms);
  dispatch();
  EXPECT_EQ(one.consumer.take(), (Strings{"0", "0#2"}));
  end(one);
  two.consumer.is_writable = true;
  two.member->wake();
  dispatch();
  EXPECT_EQ(stats().retrying, 1U) << "lost with its session";
  pass(1200ms);
  dispatch();
  EXPECT_EQ(two.consumer.take(), (Strings{"0#3"}));
  Rejection release{0, {{{0}, {1}}}};
  release.kind = RejectKind::release;
  two.group->reject(*two.member, release, now);
  dispatch();
  EXPECT_EQ(two.consumer.take(), (Strings{"0#3"})) << "a release is no failure";
  EXPECT_EQ(group().failures().counters(),
            (GroupCounters{.released = 1, .timed_out = 1, .lost_with_session = 1}));
}

TEST_F(GroupFailuresTest, OnlyWhatWasStartedFailsWithItsSession) {
  set(1);
  join(one, with_leases());
  publish_numbers(0, 3);
  dispatch();
  start(one, {{0}, {1}});
  end(one);
  join(two, asked());
  dispatch();
  EXPECT_EQ(two.consumer.take(), (Strings{"1", "2"}));
  ASSERT_EQ(dead().size(), 1U);
  EXPECT_EQ(dead().front().offset, Offset{0});
}

TEST_F(GroupFailuresTest, WhatAPlainConsumerHasNotSentHasNotFailed) {
  set(2);
  join(one, asked());
  publish_numbers(0, 2);
  dispatch();
  reject(one, {{0}, {1}});
  acknowledge_before(one, 2);
  one.consumer.is_writable = false;
  FakeRecordSink plain(10, false);
  topic.attach_puller(plain);
  publish_numbers(2, 3);
  dispatch();
  topic.detach_puller(plain);
  one.consumer.is_writable = true;
  one.member->wake();
  one.consumer.take();
  dispatch();
  EXPECT_EQ(one.consumer.take(), (Strings{"0#2"})) << "alone, with the failure from before";
  acknowledge_before(one, 1);
  dispatch();
  EXPECT_EQ(one.consumer.take(), (Strings{"2"}));
}

// Without a limit of attempts too: the delivery of a message that only lay in a buffer does not count.
TEST_F(GroupFailuresTest, WhatAPlainConsumerHasNotSentWasNotDelivered) {
  set(0);
  FakeRecordSink plain(10, false);
  topic.attach_puller(plain);
  publish_numbers(0, 3);
  dispatch();
  ASSERT_EQ(plain.taken.size(), 3U);
  plain.send(1);
  Member after;
  restart(after);
  EXPECT_EQ(after.consumer.take(), (Strings{"1", "2"})) << "with the number 1 after a restart";
  topic.detach_puller(plain);
  join(one, asked());
  dispatch();
  EXPECT_EQ(one.consumer.take(), (Strings{"1", "2"}));
  EXPECT_EQ(stats().redelivered, 0U);
  reject(one, {{1}, {2}});
  acknowledge(one, {{{2}, {3}}});
  leave(one);
  FakeRecordSink next(10, false);
  topic.attach_puller(next);
  dispatch();
  topic.detach_puller(next);
  join(two, asked());
  dispatch();
  EXPECT_EQ(two.consumer.take(), Strings{"1#2"}) << "one attempt, with and without the second plain consumer";
  EXPECT_EQ(stats().redelivered, 1U) << "each number of a message once";
}

TEST_F(GroupFailuresTest, ARestartOfTheBrokerKillsNoMessage) {
  set(1);
  join(one, asked());
  publish_numbers(0, 2);
  dispatch();
  kill(one, {{1}, {2}}, "why");
  Member after;
  restart(after);
  EXPECT_EQ(after.consumer.take(), (Strings{"0"})) << "it was in flight";
  const auto kept = restarted->topic.groups().plain()->dead().list({}, Offset{0}, 10).messages;
  EXPECT_EQ(kept, dead());
  EXPECT_EQ(restarted->topic.groups().plain()->committed(), Offset{0});
}

TEST_F(GroupFailuresTest, ALowerLimitActsOnMessagesThatWait) {
  set(0, {60'000});
  join(one, asked());
  publish_numbers(0, 3000);
  dispatch();
  for (std::uint64_t i = 0; i < 3000; i += 2) reject(one, {{i}, {i + 1}});
  EXPECT_EQ(stats().retrying, 1500U);
  settings.max_attempts = 1;
  topic.groups().set_settings("default", settings);
  dispatch();
  EXPECT_EQ(stats().retrying, 0U);
  EXPECT_EQ(group().dead().parked(), 1500U);
  settings.max_attempts = 5;
  topic.groups().set_settings("default", settings);
  dispatch();
  EXPECT_EQ(group().dead().parked(), 1500U) << "a higher limit frees nothing";
}

TEST_F(GroupFailuresTest, ALowerLimitActsWhileTheTopicIsPaused) {
  join(one, asked());
  publish_numbers(0, 1);
  dispatch();
  reject(one, {{0}, {1}}, 60'000);
  topic.set_paused(true);
  settings.max_attempts = 1;
  topic.groups().set_settings("default", settings);
  dispatch();
  EXPECT_EQ(group().dead().parked(), 1U);
}

TEST_F(GroupFailuresTest, SettingsHoldForGroupsThatAreCreatedLater) {
  set(1);
  topic.groups().set_settings("later", settings);
  auto open = asked("later");
  join(one, open);
  publish_numbers(0, 1);
  dispatch();
  reject(one, {{0}, {1}});
  EXPECT_EQ(one.group->dead().parked(), 1U);
  settings.processing_timeout_ms = 77;
  topic.groups().set_settings("later", settings);
  open.leases = true;
  join(two, open);
  EXPECT_EQ(two.member->ack_timeout_ms(), 77U);
}

// 1 poison message in 1,000, and consumers that end when they meet it.
TEST_F(GroupFailuresTest, OnlyThePoisonDies) {
  for (const bool leases : {false, true}) {
    for (const std::uint32_t max_attempts : {4U, 5U, 9U}) {
      test::GroupWorld world(0x100000);
      settings = {};
      settings.max_attempts = max_attempts;
      world.topic.groups().set_settings("default", settings);
      world.publish_numbers(0, 1000);
      constexpr std::uint64_t poison = 700;
      std::map<std::uint64_t, std::uint32_t> deliveries;
      std::uint64_t acknowledged = 0;
      for (int life = 0; life < 100; ++life) {
        Member member;
        auto open = asked();
        open.credit.messages = 100;
        open.leases = leases;
        world.join(member, open);
        bool dies = false;
        while (!dies) {
          world.dispatch();
          const auto frames = std::exchange(member.consumer.frames, {});
          if (frames.empty()) break;
          for (const auto& frame : frames) {
            for (std::uint64_t at = frame.range.begin.value; at < frame.range.end.value && !dies; ++at) {
              deliveries[at] = frame.delivery;
              // As the library does: ten at once, but a message that was delivered before alone.
              if (leases) {
                const std::uint64_t end =
                    frame.delivery > 1 ? at + 1 : std::min(at + 10, frame.range.end.value);
                member.group->start(*member.member, {std::nullopt, {{{at}, {end}}}, frame.hand_out},
                                    world.now);
              }
              dies = at == poison;
              if (dies) break;
              member.group->acknowledge(*member.member, {std::nullopt, {{{at}, {at + 1}}}, frame.hand_out});
              ++acknowledged;
            }
            if (dies) break;
          }
          ASSERT_TRUE(member.member->add_credit({100, 0}));
        }
        world.topic.groups().detach(*member.group, *member.member, world.now);
      }
      ConsumerGroup& group = *world.topic.groups().plain();
      EXPECT_EQ(acknowledged, 999U);
      EXPECT_EQ(group.dead().parked(), 1U);
      EXPECT_TRUE(group.dead().messages().parked().contains({poison}));
      EXPECT_EQ(deliveries[poison], max_attempts);
      for (const auto& [offset, number] : deliveries) {
        if (offset == poison) continue;
        EXPECT_LE(number - 1, max_attempts / 2) << "message " << offset;
      }
    }
  }
}

TEST_F(GroupFailuresTest, AConsumerWithoutLeasesFinishesItsMessagesBeforeASuspect) {
  set(2);
  join(one, asked());
  publish_numbers(0, 12);
  dispatch();
  one.consumer.take();
  reject(one, {{3}, {4}});
  dispatch();
  EXPECT_EQ(one.consumer.take(), Strings{}) << "it has other messages";
  publish_numbers(12, 13);
  dispatch();
  EXPECT_EQ(one.consumer.take(), Strings{}) << "it finishes them";
  join(two, asked());
  two.consumer.is_writable = false;
  acknowledge_before(one, 12);
  dispatch();
  EXPECT_EQ(one.consumer.take(), (Strings{"3#2"})) << "alone";
  two.consumer.is_writable = true;
  two.member->wake();
  dispatch();
  EXPECT_EQ(two.consumer.take(), (Strings{"12"})) << "others go on";
  two.consumer.is_writable = false;
  acknowledge_before(one, 4);
  publish_numbers(13, 14);
  dispatch();
  EXPECT_EQ(one.consumer.take(), (Strings{"13"}));
}

// A member that acknowledges only after ten messages waits for its own timeout; the others go on.
TEST_F(GroupFailuresTest, ASuspectHoldsUpOneConsumerAtMost) {
  set(2);
  join(one, asked());
  join(two, asked());
  for (int i = 0; i < 4; ++i) {
    publish_numbers(i, i + 1);
    dispatch();
  }
  EXPECT_EQ(one.consumer.take(), (Strings{"0", "2"}));
  EXPECT_EQ(two.consumer.take(), (Strings{"1", "3"}));
  reject(two, {{1}, {2}});
  for (int i = 4; i < 100; ++i) {
    publish_numbers(i, i + 1);
    dispatch();
  }
  EXPECT_EQ(one.consumer.frames.size() + two.consumer.frames.size(), 96U);
  EXPECT_TRUE(one.consumer.frames.empty() || two.consumer.frames.empty()) << "one waits for its messages";
  one.consumer.take();
  two.consumer.take();
  pass(31s);
  dispatch();
  Strings taken = one.consumer.take();
  for (const std::string& payload : two.consumer.take()) taken.push_back(payload);
  EXPECT_EQ(taken.size(), 2U) << "each has one message alone";
  EXPECT_TRUE(std::ranges::count(taken, "1#2") == 1 || std::ranges::count(taken, "0#2") == 1);
}

TEST_F(GroupFailuresTest, AMemberThatCanTakeASuspectIsAskedBeforeOthers) {
  set(2);
  join(one, asked());
  publish_numbers(0, 2);
  dispatch();
  join(two, with_leases());
  reject(one, {{0}, {1}});
  one.consumer.take();
  dispatch();
  EXPECT_EQ(two.consumer.take(), (Strings{"0#2"}));
  publish_numbers(2, 4);
  dispatch();
  EXPECT_EQ(one.consumer.take().size() + two.consumer.take().size(), 2U) << "nobody waits for a suspect";
}

}  // namespace
}  // namespace lightq::broker
