/// Tests of a topic with segments that cannot be opened for a while. Consumers wait, no message is skipped or
/// committed, and delivery continues by itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>

#include "delivery/consumer_group_harness.hpp"
#include "delivery/fake_consumer.hpp"
#include "delivery/fake_record_sink.hpp"
#include "delivery/topic.hpp"
#include "support/log_fixture.hpp"

namespace lightq::broker {
namespace {

using test::FakeRecordSink;
using test::FaultyStorage;
using test::Member;
using Call = FaultyStorage::Call;
using std::chrono::milliseconds;

constexpr int shortages[] = {EMFILE, ENFILE, ENOMEM, EACCES, EIO};
constexpr std::uint64_t messages = 40;

class UnavailableTopicTest : public test::LogFixture {
 protected:
  UnavailableTopicTest() { options.segment_bytes = limits::segment_bytes_min; }

  /// Makes a topic of 40 messages in segments of six. No segment is mapped.
  void make_topic() {
    topic.reset();
    log.reset();  // before its pool
    pool = std::make_unique<log::SegmentPool>(log::SegmentPoolOptions{"/pool"}, storage);
    if (!storage.exists(segment_path(0))) {
      open();
      for (std::uint64_t i = 0; i < messages; ++i)
        ASSERT_EQ(append({std::to_string(i) + std::string(10'000, 'p')}), log::AppendOutcome::appended);
      ASSERT_TRUE(log->flush().ok());
    }
    open();
    protocol::TopicSettings settings;
    settings.broker_type = protocol::BrokerType::file;
    topic.emplace(TopicDefinition{TopicId{1}, *TopicName::parse("t"), settings}, *log, now);
  }
  ClientError join(Member& member, const ConsumeRequest& asked) {
    const auto opened = topic->groups().open(asked, LogLives(77));
    if (opened.refusal != ClientError::none) return opened.refusal;
    member.group = opened.group;
    member.member = &topic->groups().attach(*opened.group, member.consumer, asked);
    member.member->begin();
    return ClientError::none;
  }
  /// Makes calls for the segment of message 12 fail.
  void fail(Call call, int error, int times = 1'000'000) {
    storage.on_call = [this, call, error, times](Call asked, const std::string& path) mutable {
      if (path == segment_path(12) && asked == Call::open) ++tries;
      if (asked != call || path != segment_path(12) || times-- <= 0) return FaultyStorage::Fault{};
      return FaultyStorage::Fault{error, 0};
    };
  }
  void dispatch() {
    while (topic->dispatch({.now = steady}).more) {
    }
  }
  /// Lets time pass as a reactor does: dispatches at each timer.
  void pass(milliseconds time) {
    const SteadyTime until = steady + time;
    while (topic->next_timer() <= until) {
      steady = std::max(steady, topic->next_timer());
      dispatch();
    }
    steady = until;
  }
  [[nodiscard]] protocol::GroupStats stats(const std::string& group) const {
    for (const auto& each : topic->stats(now).groups) {
      if (each.group == group) return each;
    }
    return {};
  }
  static void expect_all(const std::vector<std::string>& payloads) {
    ASSERT_EQ(payloads.size(), messages);
    for (std::uint64_t i = 0; i < messages; ++i)
      EXPECT_EQ(payloads[i].substr(0, payloads[i].find('p')), std::to_string(i));
  }

  std::optional<Topic> topic;
  SteadyTime steady{std::chrono::hours(1)};
  int tries = 0;
};

TEST_F(UnavailableTopicTest, AGroupOverSessionsWaitsAndContinues) {
  for (const Call call : {Call::open, Call::map, Call::read}) {
    for (const int error : shortages) {
      make_topic();
      fail(call, error);
      Member member;
      ASSERT_EQ(join(member, test::asked("g")), ClientError::none);
      dispatch();
      pass(milliseconds(5000));
      EXPECT_EQ(member.consumer.payloads().size(), 12U) << error;
      member.group->acknowledge(*member.member, {Offset{12}, {}});
      const auto waiting = stats("g");
      EXPECT_EQ(waiting.committed_offset, 12U);
      EXPECT_EQ(waiting.lost, 0U);
      EXPECT_EQ(waiting.ready, messages - 12);
      EXPECT_EQ(waiting.blocked_by, "disk: " + std::generic_category().message(error));
      EXPECT_EQ(topic->stats(now).corrupt, 0U);
      storage.on_call = nullptr;
      pass(milliseconds(1000));
      expect_all(member.consumer.payloads());
      EXPECT_EQ(stats("g").blocked_by, "");
      EXPECT_EQ(stats("g").lost, 0U);
      for (const auto& frame : member.consumer.frames) EXPECT_EQ(frame.lost, 0U);
      EXPECT_EQ(topic->next_timer(), member.group->next_timer());
      topic->groups().detach(*member.group, *member.member);
    }
  }
}

TEST_F(UnavailableTopicTest, AGroupWhoseMembersHaveNoCreditIsNotBlocked) {
  make_topic();
  fail(Call::open, EMFILE);
  Member member;
  ASSERT_EQ(join(member, test::asked("g")), ClientError::none);
  dispatch();
  EXPECT_NE(stats("g").blocked_by, "");
  member.group->acknowledge(*member.member, {Offset{12}, {}});
  topic->groups().detach(*member.group, *member.member);
  Member without_credit;
  ConsumeRequest asked = test::asked("g");
  asked.credit = {};
  ASSERT_EQ(join(without_credit, asked), ClientError::none);
  pass(milliseconds(1000));
  EXPECT_EQ(stats("g").blocked_by, "");
  ASSERT_TRUE(without_credit.member->add_credit(test::asked("g").credit));
  dispatch();
  EXPECT_NE(stats("g").blocked_by, "");
  topic->groups().detach(*without_credit.group, *without_credit.member);
}

TEST_F(UnavailableTopicTest, SoDoPullersAndSubscribers) {
  for (const int error : shortages) {
    make_topic();
    fail(Call::open, error);
    FakeRecordSink puller, taker;
    topic->attach_puller(puller);
    Subscriber& subscriber = topic->subscribers().add(Offset{0});
    topic->subscribers().attach(subscriber, taker);
    dispatch();
    pass(milliseconds(5000));
    EXPECT_EQ(puller.taken.size(), 12U);
    EXPECT_EQ(taker.taken.size(), 12U);
    EXPECT_EQ(topic->groups().plain()->committed(), Offset{12});
    EXPECT_EQ(subscriber.committed(), Offset{12});
    EXPECT_EQ(topic->subscribers().stats(subscriber).blocked_by, stats("default").blocked_by);
    EXPECT_NE(topic->subscribers().stats(subscriber).blocked_by, "");
    ASSERT_NE(topic->unavailable(), nullptr);
    EXPECT_EQ(topic->unavailable()->system_error, error);
    storage.on_call = nullptr;
    pass(milliseconds(1000));
    expect_all(puller.taken);
    expect_all(taker.taken);
    EXPECT_EQ(topic->unavailable(), nullptr);
    EXPECT_EQ(topic->subscribers().stats(subscriber).lost, 0U);
    EXPECT_EQ(topic->subscribers().stats(subscriber).blocked_by, "");
    topic->detach_puller(puller);
    topic->subscribers().remove(subscriber);
  }
}

TEST_F(UnavailableTopicTest, IsRetriedTwiceASecondAtAnyPublishRate) {
  make_topic();
  fail(Call::open, EMFILE);
  Member member;
  ASSERT_EQ(join(member, test::asked("g")), ClientError::none);
  FakeRecordSink taker;
  Subscriber& subscriber = topic->subscribers().add(Offset{0});
  topic->subscribers().attach(subscriber, taker);
  dispatch();
  tries = 0;
  for (int ms = 0; ms < 10'000; ++ms) {
    steady += milliseconds(1);
    dispatch();
  }
  // Two cursors, and each attempt is repeated after the log has released its own views.
  EXPECT_LE(tries, 2 * 2 * 20);
  EXPECT_GE(tries, 2 * 15);
  topic->groups().detach(*member.group, *member.member);
  topic->subscribers().remove(subscriber);
}

TEST_F(UnavailableTopicTest, OneFailureDelaysByAtMostHalfASecond) {
  for (const int error : shortages) {
    make_topic();
    fail(Call::open, error, 2);
    FakeRecordSink puller;
    topic->attach_puller(puller);
    dispatch();
    EXPECT_EQ(puller.taken.size(), 12U);
    pass(milliseconds(500));
    expect_all(puller.taken);
    topic->detach_puller(puller);
  }
}

TEST_F(UnavailableTopicTest, RequeuedMessagesAreNotGivenUp) {
  make_topic();
  Member gone, heir;
  auto all = test::asked("g");
  ASSERT_EQ(join(gone, all), ClientError::none);
  dispatch();
  ASSERT_EQ(gone.consumer.payloads().size(), messages);
  topic->groups().detach(*gone.group, *gone.member);  // requeues all messages
  // An idle log releases its files.
  log->maintain(now);
  log->maintain({now.us + 60'000'000});
  fail(Call::open, EMFILE);
  ASSERT_EQ(join(heir, all), ClientError::none);
  dispatch();
  pass(milliseconds(3000));
  EXPECT_EQ(heir.consumer.payloads().size(), 12U);
  EXPECT_EQ(stats("g").lost, 0U);
  EXPECT_EQ(stats("g").ready, messages - 12);
  EXPECT_NE(stats("g").blocked_by, "");
  storage.on_call = nullptr;
  pass(milliseconds(1000));
  expect_all(heir.consumer.payloads());
  EXPECT_EQ(stats("g").redelivered, messages);
  topic->groups().detach(*heir.group, *heir.member);
}

TEST_F(UnavailableTopicTest, AStartAtATimeFailsWhileTheLogIsUnavailable) {
  make_topic();
  storage.on_call = [](Call call, const std::string& path) {
    return FaultyStorage::Fault{call == Call::open && path.ends_with(".seg") ? EMFILE : 0, 0};
  };
  Member member;
  auto by_time = test::asked("late");
  by_time.start = {StartPosition::From::time, 1};
  EXPECT_EQ(join(member, by_time), ClientError::io_error);
  EXPECT_EQ(topic->groups().find("late"), nullptr);
  ASSERT_EQ(join(member, test::asked("g")), ClientError::none);
  const Offset before = member.group->next();
  EXPECT_EQ(topic->groups().seek(*member.group, by_time.start).error().system_error, EMFILE);
  EXPECT_EQ(member.group->next(), before) << "it stays where it is";
  EXPECT_EQ(*topic->groups().seek(*member.group, {StartPosition::From::offset, 20}), Offset{20});
  topic->groups().detach(*member.group, *member.member);
}

}  // namespace
}  // namespace lightq::broker
