/// Tests of the subscribers of a topic: their turns, their cursors and their counts.
#include "delivery/subscribers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "admission/turn_work.hpp"
#include "delivery/fake_record_sink.hpp"
#include "log/memory/ring_log.hpp"
#include "support/batches.hpp"

namespace lightq::broker {
namespace {

using test::FakeRecordSink;
using testing::ElementsAre;
using testing::IsEmpty;

/// Takes everything, and counts much work each time.
class CostlySink final : public RecordSink {
 public:
  bool offer(Offset /*offset*/, ByteView /*payload*/) override {
    ++taken;
    return true;
  }
  void flush() override { TurnWork::add(2 * limits::MiB); }
  [[nodiscard]] std::optional<Offset> first_unsent() const override { return std::nullopt; }
  [[nodiscard]] std::vector<Offset> unsent() const override { return {}; }
  void forget_unsent() override {}

  int taken = 0;
};

class SubscribersTest : public testing::Test {
 protected:
  void append(const std::vector<std::string>& payloads) {
    auto batch = test::make_batch(payloads);
    ASSERT_EQ(log_.append(batch, Timestamp{1}).outcome, log::AppendOutcome::appended);
  }
  Subscribers::DispatchResult dispatch(Subscribers& subscribers) { return subscribers.dispatch({}, damage_); }
  Subscribers::DispatchResult dispatch() { return dispatch(subscribers_); }

  log::RingLog log_{log::RingLogOptions{.capacity_bytes = 64 * limits::KiB}};
  DamageCount damage_;
  Subscribers subscribers_{log_, false};
};

TEST_F(SubscribersTest, StartAtTheNextMessageOrAtAnEarlierOne) {
  append({"0", "1"});
  FakeRecordSink from_next, from_first, from_beyond;
  subscribers_.attach(subscribers_.add(std::nullopt), from_next);
  subscribers_.attach(subscribers_.add(Offset{0}), from_first);
  subscribers_.attach(subscribers_.add(Offset{100}), from_beyond);
  append({"2"});
  const auto result = dispatch();
  EXPECT_THAT(from_next.taken, ElementsAre("2"));
  EXPECT_THAT(from_first.taken, ElementsAre("0", "1", "2"));
  EXPECT_THAT(from_beyond.taken, ElementsAre("2")) << "no cursor is behind the end of the log";
  EXPECT_EQ(result.bytes, 5U);
  EXPECT_EQ(result.furthest, Offset{3});
  EXPECT_FALSE(result.more);
  EXPECT_EQ(dispatch().furthest, Offset{0}) << "nobody received anything";
  EXPECT_EQ(subscribers_.deliveries(), 5U);
}

TEST_F(SubscribersTest, TakeTurnsWhenTheirMessagesCostMuchWork) {
  std::array<CostlySink, 3> sinks;
  for (auto& sink : sinks) subscribers_.attach(subscribers_.add(std::nullopt), sink);
  append({"a"});
  for (std::size_t served = 1; served <= sinks.size(); ++served) {
    EXPECT_TRUE(dispatch().more);
    for (std::size_t at = 0; at < sinks.size(); ++at)
      EXPECT_EQ(sinks.at(at).taken, at < served ? 1 : 0) << "after dispatch " << served;
  }
}

TEST_F(SubscribersTest, KeepTheirTurnsWhenOneIsRemoved) {
  std::array<CostlySink, 3> sinks;
  std::array<Subscriber*, 3> cursors{};
  for (std::size_t at = 0; at < sinks.size(); ++at) {
    cursors.at(at) = &subscribers_.add(std::nullopt);
    subscribers_.attach(*cursors.at(at), sinks.at(at));
  }
  append({"a"});
  EXPECT_TRUE(dispatch().more);
  subscribers_.remove(*cursors[0]);
  EXPECT_EQ(subscribers_.attached(), 2U);
  EXPECT_TRUE(dispatch().more);
  EXPECT_EQ(sinks[1].taken, 1);
  EXPECT_EQ(sinks[2].taken, 0);
}

TEST_F(SubscribersTest, UnsentMessagesOfADisconnectedConsumerAreNotCounted) {
  FakeRecordSink sink(10, false);
  Subscriber& cursor = subscribers_.add(std::nullopt);
  subscribers_.attach(cursor, sink);
  append({"0", "1", "2"});
  dispatch();
  sink.send(1);
  EXPECT_EQ(subscribers_.deliveries(), 3U);
  EXPECT_EQ(subscribers_.passed_up_to(Offset{3}), Offset{1}) << "the log keeps unsent messages";
  EXPECT_EQ(subscribers_.furthest(), Offset{3});
  subscribers_.detach(cursor);
  subscribers_.detach(cursor);
  EXPECT_EQ(subscribers_.deliveries(), 1U);
  EXPECT_EQ(subscribers_.attached(), 0U);
  EXPECT_EQ(subscribers_.furthest(), Offset{1});
  subscribers_.remove(cursor);
  EXPECT_EQ(subscribers_.deliveries(), 1U) << "the topic's count stays";
  EXPECT_EQ(subscribers_.furthest(), Offset{0});
  EXPECT_EQ(subscribers_.passed_up_to(Offset{3}), Offset{3});
}

TEST_F(SubscribersTest, APausedSubscriberKeepsItsPosition) {
  FakeRecordSink sink;
  Subscriber& cursor = subscribers_.add(std::nullopt);
  subscribers_.attach(cursor, sink);
  append({"0"});
  dispatch();
  subscribers_.pause(cursor);
  subscribers_.pause(cursor);
  EXPECT_EQ(subscribers_.attached(), 0U);
  append({"1"});
  dispatch();
  EXPECT_THAT(sink.taken, ElementsAre("0"));
  subscribers_.attach(cursor, sink);
  dispatch();
  EXPECT_THAT(sink.taken, ElementsAre("0", "1"));
}

TEST_F(SubscribersTest, APauseOfTheTopicStopsAll) {
  FakeRecordSink sink;
  subscribers_.attach(subscribers_.add(std::nullopt), sink);
  append({"0"});
  subscribers_.set_paused(true);
  dispatch();
  EXPECT_THAT(sink.taken, IsEmpty());
  EXPECT_EQ(subscribers_.next_timer(), never);
  subscribers_.set_paused(false);
  dispatch();
  EXPECT_THAT(sink.taken, ElementsAre("0"));
}

TEST_F(SubscribersTest, FinishedMessagesAreNeverSentAgain) {
  FakeRecordSink sink(1, false), later;
  Subscriber& cursor = subscribers_.add(std::nullopt);
  subscribers_.attach(cursor, sink);
  append({"0", "1"});
  dispatch();
  subscribers_.finish_all();
  EXPECT_EQ(subscribers_.passed_up_to(Offset{2}), Offset{2});
  subscribers_.detach(cursor);
  subscribers_.attach(cursor, later);
  append({"2"});
  dispatch();
  EXPECT_THAT(later.taken, ElementsAre("2"));
  EXPECT_EQ(subscribers_.stats(cursor).lost, 0U);
}

TEST_F(SubscribersTest, StatisticsCountDroppedMessagesBeforeTheyAreMissed) {
  Subscriber& cursor = subscribers_.add(std::nullopt);
  append({"0", "1"});
  append({"2"});
  log_.drop_before(Offset{2});
  const auto absent = subscribers_.stats(cursor);
  EXPECT_FALSE(absent.connected);
  EXPECT_EQ(absent.next_offset, 0U);
  EXPECT_EQ(absent.lag, 1U);
  EXPECT_EQ(absent.lost, 2U);
  FakeRecordSink sink;
  subscribers_.attach(cursor, sink);
  dispatch();
  const auto present = subscribers_.stats(cursor);
  EXPECT_TRUE(present.connected);
  EXPECT_EQ(present.next_offset, 3U);
  EXPECT_EQ(present.lag, 0U);
  EXPECT_EQ(present.lost, 2U);
  EXPECT_EQ(present.delivered, 1U);
}

TEST_F(SubscribersTest, OfDirectTopicsHaveNoMessagesFromTheirAbsence) {
  Subscribers direct(log_, true);
  FakeRecordSink sink;
  Subscriber& cursor = direct.add(std::nullopt);
  append({"0"});
  EXPECT_EQ(direct.passed_up_to(Offset{1}), Offset{1}) << "an absent consumer keeps no message";
  direct.attach(cursor, sink);
  append({"1"});
  EXPECT_EQ(direct.passed_up_to(Offset{2}), Offset{1});
  dispatch(direct);
  EXPECT_THAT(sink.taken, ElementsAre("1"));
  EXPECT_EQ(direct.passed_up_to(Offset{2}), Offset{2});
}

}  // namespace
}  // namespace lightq::broker
