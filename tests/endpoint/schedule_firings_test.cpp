/// Tests of the messages that recurring schedules publish: with a clock that is stepped, over restarts, and
/// while the disk is full.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "delivery/consumer_group_harness.hpp"
#include "endpoint/schedule_world.hpp"
#include "recurring/firing_times.hpp"

namespace lightq::broker {
namespace {

using namespace std::chrono_literals;
using protocol::BrokerType;
using protocol::MissedFirings;
using testing::ElementsAre;
using testing::HasSubstr;

class ScheduleFiringsTest : public ScheduleWorld {
 protected:
  using ScheduleWorld::ScheduleWorld;
  std::vector<std::string> ids() {
    std::vector<std::string> ids;
    for (const Published& message : published()) ids.push_back(message.id);
    return ids;
  }
  std::string id_now() { return firing_id("tick", minute()); }
  /// Lets a minute pass, until the message of it is there.
  void pass_minute() {
    const std::size_t before = published().size();
    set_clock(1min);
    ASSERT_TRUE(run_until([&] { return published().size() > before; }));
  }
};

TEST_F(ScheduleFiringsTest, EachMinuteHasItsMessage) {
  schedule.settings.key = "k";
  schedule.settings.headers = {{"kind", "report"}};
  begin();
  run_a_while();
  EXPECT_THAT(ids(), ElementsAre()) << "it does not fire for times before it was set";
  pass_minute();
  const std::string first = id_now();
  pass_minute();
  EXPECT_THAT(ids(), ElementsAre(first, id_now()));
  const Published message = published().back();
  EXPECT_EQ(message.payload, "go");
  EXPECT_EQ(message.key, "k");
  EXPECT_EQ(message.time, minute());
  EXPECT_THAT(message.headers, ElementsAre("kind=report"));
  EXPECT_EQ(state().fired, 2U);
  EXPECT_EQ(state().last, minute());
}

TEST_F(ScheduleFiringsTest, AMessageMayHaveATimeToLive) {
  test::FakeConsumer consumer;
  ASSERT_EQ(topic->open_consumer(test::asked("workers"), consumer).code, ClientError::none);
  ASSERT_TRUE(run_until([&] { return consumer.opened_at.has_value(); }));
  topic->detach_consumer(consumer);
  schedule.settings.headers = {{"lightq-ttl-ms", "300000"}};
  begin();
  run_a_while();
  pass_minute();
  const auto group = [&] {
    topic->dispatch().published();
    return topic->stats().groups.at(0);
  };
  EXPECT_EQ(group().pending, 1U);
  for (int i = 0; i < 6; ++i) pass_minute();
  ASSERT_TRUE(run_until([&] { return group().expired == 2; })) << group().expired;
  EXPECT_EQ(group().pending, 5U);
}

TEST_F(ScheduleFiringsTest, NoMessageIsEarly) {
  begin();
  run_a_while();
  const std::int64_t left = minute().us + minute_us - wall_time().us;
  set_clock(std::chrono::microseconds(left - 10'000'000));
  run_a_while(50);  // five seconds
  EXPECT_THAT(ids(), ElementsAre());
  ASSERT_TRUE(run_until([&] { return !ids().empty(); }));
  EXPECT_THAT(ids(), ElementsAre(id_now()));
}

TEST_F(ScheduleFiringsTest, AfterAStepForwardOnlyTheNewestFires) {
  begin();
  run_a_while();
  set_clock(24h);
  ASSERT_TRUE(run_until([&] { return !ids().empty(); }));
  run_a_while();
  EXPECT_THAT(ids(), ElementsAre(id_now()));
}

TEST_F(ScheduleFiringsTest, AfterAStepBackNothingFiresAgain) {
  begin();
  run_a_while();
  pass_minute();
  pass_minute();
  const auto before = ids();
  set_clock(-10min);
  run_a_while();
  for (int i = 0; i < 9; ++i) {
    set_clock(1min);
    run_a_while();
    EXPECT_EQ(ids(), before);
  }
  set_clock(3min);
  ASSERT_TRUE(run_until([&] { return ids().size() > before.size(); }));
  EXPECT_EQ(ids().back(), id_now());
}

TEST_F(ScheduleFiringsTest, TimesWhileTheBrokerWasDownAreLeftOut) {
  begin();
  run_a_while();
  pass_minute();
  const auto before = ids();
  for (const bool cleanly : {true, false}) {
    end();
    step_clock(1h);
    restart(cleanly);
    begin(true);
    run_a_while();
    EXPECT_EQ(ids(), before);
    EXPECT_NE(state().last, std::nullopt) << "the topic knows the last firing";
  }
  pass_minute();
  EXPECT_EQ(ids().back(), id_now());
  EXPECT_EQ(ids().size(), before.size() + 1);
}

TEST_F(ScheduleFiringsTest, AClockThatWasAheadAtTheStartSilencesNoSchedule) {
  step_clock(24h * 365);
  begin(true);
  run_a_while();
  set_clock(-24h * 365);
  run_a_while();
  EXPECT_THAT(ids(), ElementsAre());
  pass_minute();
  EXPECT_EQ(ids().size(), 1U);
}

TEST_F(ScheduleFiringsTest, OfThemTheLastIsPublishedWithOnce) {
  schedule.settings.missed = MissedFirings::once;
  begin();
  run_a_while();
  pass_minute();
  std::vector<std::string> expected = ids();
  for (const bool cleanly : {true, false}) {
    end();
    step_clock(1h);
    restart(cleanly);
    begin(true);
    ASSERT_TRUE(run_until([&] { return ids().size() > expected.size(); }));
    run_a_while();
    expected.push_back(id_now());
    EXPECT_EQ(ids(), expected);
  }
  end();
  restart(true);
  begin(true);
  run_a_while();
  EXPECT_EQ(ids(), expected) << "nothing was missed";
}

TEST_F(ScheduleFiringsTest, AChangedScheduleDoesNotFireForEarlierTimes) {
  begin();
  run_a_while();
  pass_minute();
  const auto before = ids();
  schedule.settings.payload = "other";
  schedule.since = wall_time();
  office->put(*topic, "tick", schedule);
  run_a_while();
  EXPECT_EQ(ids(), before);
  pass_minute();
  EXPECT_EQ(published().back().payload, "other");
  schedule.paused = true;
  office->put(*topic, "tick", schedule);
  EXPECT_TRUE(office->states({1}).empty());
  set_clock(1h);
  run_a_while();
  EXPECT_EQ(ids().size(), before.size() + 1);
  schedule.paused = false;
  schedule.since = wall_time();
  office->put(*topic, "tick", schedule);
  run_a_while();
  EXPECT_EQ(ids().size(), before.size() + 1) << "times during the pause are left out";
  pass_minute();
  office->remove({1}, "tick");
  set_clock(1h);
  run_a_while();
  EXPECT_EQ(ids().size(), before.size() + 2);
}

TEST_F(ScheduleFiringsTest, WhileTheDiskIsFullTheNewestWaits) {
  begin();
  run_a_while();
  pass_minute();
  const auto before = ids();
  fail(ENOSPC,
       [](FaultyStorage::Call call, const std::string&) { return call == FaultyStorage::Call::write; });
  for (int i = 0; i < 3; ++i) {
    set_clock(1min);
    run_a_while();
  }
  EXPECT_EQ(ids(), before);
  EXPECT_THAT(state().waiting_by, HasSubstr("disk"));
  const Timestamp newest = minute();
  fail(0, {});
  ASSERT_TRUE(run_until([&] { return ids().size() > before.size(); }));
  EXPECT_EQ(ids().size(), before.size() + 1);
  EXPECT_GE(published().back().time, newest);
  EXPECT_EQ(state().waiting_by, "");
  const auto tells = [](const std::string& line) { return line.find("schedule tick") != std::string::npos; };
  EXPECT_EQ(std::ranges::count_if(sink.lines, tells), 1) << "it says so once";
}

TEST_F(ScheduleFiringsTest, AMessageThatIsTooLongIsLeftOutAndReported) {
  set_message_bytes_max(10);
  begin();
  run_a_while();
  set_clock(1min);
  run_a_while();
  EXPECT_THAT(ids(), ElementsAre());
  EXPECT_THAT(sink.lines,
              testing::Contains(testing::AllOf(HasSubstr("schedule tick"), HasSubstr("message_bytes_max"))));
}

TEST_F(ScheduleFiringsTest, WithoutItsZoneAScheduleDoesNotFire) {
  schedule.settings.zone = "Europe/Atlantis";
  begin();
  set_clock(1h);
  run_a_while();
  EXPECT_THAT(ids(), ElementsAre());
  EXPECT_THAT(state().waiting_by, HasSubstr("Europe/Atlantis"));
  EXPECT_THAT(sink.lines, testing::Contains(HasSubstr("does not fire")));
}

TEST_F(ScheduleFiringsTest, AfterTheTopicHasEndedNothingHappens) {
  begin();
  run_a_while();
  topic->begin_stop(ClientError::topic_deleted);
  set_clock(1h);
  run_a_while();
  EXPECT_THAT(ids(), ElementsAre());
  office->forget({1});
}

class RejectedFiringsTest : public ScheduleFiringsTest {
 protected:
  RejectedFiringsTest() : ScheduleFiringsTest(BrokerType::file, protocol::Overflow::reject) {}
};

TEST_F(RejectedFiringsTest, FurtherAttemptsCountAsNoRejectedMessages) {
  begin();
  run_a_while();
  fail(ENOSPC,
       [](FaultyStorage::Call call, const std::string&) { return call == FaultyStorage::Call::write; });
  set_clock(1min);
  run_a_while();
  EXPECT_THAT(state().waiting_by, HasSubstr("disk"));
  EXPECT_EQ(topic->stats().rejected, 0U);
}

class ScheduleInMemoryTest : public ScheduleFiringsTest {
 protected:
  ScheduleInMemoryTest() : ScheduleFiringsTest(BrokerType::queue) {}
};

TEST_F(ScheduleInMemoryTest, ATopicInMemoryHasSchedulesToo) {
  begin();
  run_a_while();
  pass_minute();
  EXPECT_THAT(ids(), ElementsAre(id_now()));
  end();
  step_clock(1h);
  restart(true);
  begin(true);
  run_a_while();
  EXPECT_THAT(ids(), ElementsAre());
  pass_minute();
  EXPECT_THAT(ids(), ElementsAre(id_now()));
}

}  // namespace
}  // namespace lightq::broker
