/// Tests of the messages that a session consumer with leases gives back, receives again, or gives up.
#include <gmock/gmock.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <lightq/consumer.hpp>

#include "session_consumer_lease_fixture.hpp"

namespace lightq::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class SessionConsumerReturn : public SessionConsumerLease {};

TEST_F(SessionConsumerReturn, GivesBackWhatTheProgramHasNotBegunWhenItIsClosed) {
  Consumer consumer = connected();
  deliver(0, {"a", "b", "c", "d"}, handed(1));
  next(consumer);
  next(consumer);
  said_already();
  (void)consumer.close(Timeout(0));
  EXPECT_THAT(said_already(), ElementsAre("release #1 [2,3)", "close", "goodbye"));
}

TEST_F(SessionConsumerReturn, AcknowledgesBeforeItGivesBack) {
  Consumer consumer = connected();
  deliver(0, {"a", "b", "c", "d"}, handed(1));
  next(consumer);
  next(consumer);
  said_already();
  EXPECT_EQ(consumer.acknowledge(OffsetRange{{0}, {3}}), 3U);
  EXPECT_THAT(said_already(), IsEmpty());
  (void)consumer.close(Timeout(0));
  EXPECT_THAT(said_already(), ElementsAre("ack #1 [0,3)", "release #1 [2,3)", "close", "goodbye"))
      << "2 is not in flight any more, so the broker ignores its release";
}

TEST_F(SessionConsumerReturn, AcknowledgesBeforeItGivesBackWithoutAClose) {
  {
    Consumer consumer = connected();
    deliver(0, {"a", "b", "c", "d"}, handed(1));
    next(consumer);
    next(consumer);
    said_already();
    EXPECT_EQ(consumer.acknowledge(Offset{0}), 1U);
  }
  EXPECT_THAT(said_already(), ElementsAre("ack #1 [0,1)", "release #1 [2,3)", "goodbye"));
}

TEST_F(SessionConsumerReturn, GivesBackWhenAnotherConsumerTakesItsPlace) {
  Consumer consumer = connected();
  deliver(0, {"a", "b", "c", "d"}, handed(1));
  next(consumer);
  next(consumer);
  said_already();
  EXPECT_EQ(consumer.acknowledge(Offset{0}), 1U);
  consumer = make();
  EXPECT_THAT(said_already(), ElementsAre("ack #1 [0,1)", "release #1 [2,3)", "goodbye"));
  EXPECT_FALSE(consumer.finished());
}

TEST_F(SessionConsumerReturn, GivesNothingBackThatTheProgramHas) {
  Consumer consumer = connected();
  deliver(10, {"a", "b", "c", "d"}, handed(1));
  deliver(6, {"e"}, handed(2));  // another member had not begun it, so it is not started alone
  for (int i = 0; i < 5; ++i) next(consumer);
  EXPECT_THAT(said_already(), Contains("started #2 [6,14)"));
  (void)consumer.close(Timeout(0));
  EXPECT_THAT(said_already(), ElementsAre("release #2 [7,10)", "close", "goodbye"));
}

TEST_F(SessionConsumerReturn, ReleasesOnRequest) {
  Consumer consumer = connected();
  deliver(0, {"a", "b"}, handed(1));
  next(consumer);
  said_already();
  consumer.release({{0}, {2}});
  poll(consumer);
  EXPECT_THAT(said_already(), ElementsAre("release #1 [0,2)", "credit 2/2"));
}

TEST_F(SessionConsumerReturn, ReleasesOneMessage) {
  Consumer consumer = connected();
  deliver(0, {"a", "b"}, handed(1));
  next(consumer);
  said_already();
  consumer.release(Offset{1});
  poll(consumer);
  EXPECT_THAT(said_already(), Contains("release #1 [1,2)"));
}

TEST_F(SessionConsumerReturn, StartsMessagesThatWereDeliveredBeforeWithTheirBatch) {
  Consumer consumer = connected();
  deliver(0, Payloads(15, "x"), handed(1));
  for (int i = 0; i < 8; ++i) {
    next(consumer);
    time += 10us;
  }
  said_already();  // the window ends at 15
  deliver(100, {"a", "b", "c"}, handed(2, 2));
  for (int i = 0; i < 7; ++i) next(consumer);
  EXPECT_THAT(said_already(), IsEmpty());
  EXPECT_EQ(next_text(consumer), "a");
  EXPECT_THAT(said_already(), ElementsAre("started #2 [100,103)")) << "no message behind the batch";
  EXPECT_EQ(next_text(consumer), "b");
  const auto rest = consumer.receive_batch(Timeout(0)).value_or_throw();
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->range(), (OffsetRange{{102}, {103}}));
  EXPECT_THAT(said_already(), IsEmpty());
}

TEST_F(SessionConsumerReturn, DoesNotTakeARedeliveredMessageForAPartOfItsWindow) {
  Consumer consumer = connected();
  deliver(0, Payloads(15, "x"), handed(1));
  for (int i = 0; i < 8; ++i) {
    next(consumer);
    time += 10us;
  }
  said_already();
  for (int i = 8; i < 15; ++i) next(consumer);
  consumer.acknowledge(OffsetRange{{0}, {15}});
  deliver(8, {"again", "and again"}, handed(1, 2));  // had been another member's
  deliver(10, {"a third"}, handed(1, 2));
  EXPECT_EQ(next_text(consumer), "again");
  EXPECT_THAT(said_already(), Contains("started #1 [8,10)")) << "not those of the next batch";
  EXPECT_EQ(next_text(consumer), "and again");
  EXPECT_EQ(next_text(consumer), "a third");
  EXPECT_THAT(said_already(), Contains("started #1 [10,11)"));
}

// The broker delivers a suspect in a batch of its own.
TEST_F(SessionConsumerReturn, StartsEachSuspectAlone) {
  Consumer consumer = connected();
  deliver(0, {"a"}, handed(1, 3));
  deliver(1, {"b"}, handed(1, 3));
  for (std::uint64_t offset = 0; offset < 2; ++offset) {
    const auto batch = consumer.receive_batch(1s).value_or_throw();
    ASSERT_TRUE(batch);
    EXPECT_EQ(batch->range(), (OffsetRange{{offset}, {offset + 1}}));
    EXPECT_EQ(batch->delivery(), 3U);
    EXPECT_THAT(said_already(),
                Contains("started #1 [" + std::to_string(offset) + "," + std::to_string(offset + 1) + ")"));
    EXPECT_EQ(consumer.acknowledge(*batch), 1U);
  }
}

TEST_F(SessionConsumerReturn, ReceivesABatchThatWasDeliveredBeforeAtOnce) {
  Consumer consumer = connected();
  deliver(0, {"a", "b"}, handed(1, 2));
  const auto batch = consumer.receive_batch(1s).value_or_throw();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->range(), (OffsetRange{{0}, {2}}));
  EXPECT_THAT(said_already(), Contains("started #1 [0,2)"));
}

TEST_F(SessionConsumerReturn, GathersRejectionsWithTheSameDelayForAMillisecond) {
  constexpr std::uint64_t messages = 100;
  Consumer consumer = connected();
  deliver(0, Payloads(messages, "x"), handed(1));
  ASSERT_TRUE(consumer.receive_batch(1s).value_or_throw());
  said_already();
  const auto reject = [&](std::uint64_t from, std::uint64_t to, Timeout delay = Timeout(0)) {
    for (std::uint64_t offset = from; offset < to; ++offset) consumer.reject(Offset{offset}, delay);
  };
  reject(0, 60);
  EXPECT_THAT(said_already(), ElementsAre("reject 0 #1 [0,1)")) << "the first one is sent at once";
  EXPECT_EQ(consumer.next_timer(), time) << "an event loop would wait";
  time += 1ms;
  reject(60, 76);
  EXPECT_THAT(said_already(), ElementsAre(StartsWith("reject 0 #1 [1,")));
  reject(76, messages, Timeout(250));
  poll(consumer);
  EXPECT_THAT(said_already(), ElementsAre(EndsWith(",76)"), "reject 250 #1 [76,100)", StartsWith("credit")));
}

TEST_F(SessionConsumerReturn, RejectsMessagesAsDeadWithAReason) {
  opened.dead_letters = true;
  Consumer consumer = connected();
  deliver(0, {"a", "b", "c"}, handed(1));
  next(consumer);
  next(consumer);
  said_already();
  consumer.dead_letter(Offset{0}, "not an order");
  consumer.dead_letter(OffsetRange{{0}, {2}});
  EXPECT_EQ(consumer.unacknowledged(), 1U);
  EXPECT_THAT(said(consumer), ElementsAre("dead 'not an order' #1 [0,1)", "dead '' #1 [1,2)", "credit 2/2"));
}

TEST_F(SessionConsumerReturn, CutsALongReasonBetweenTwoCharacters) {
  opened.dead_letters = true;
  Consumer consumer = connected();
  deliver(0, {"a", "b"}, handed(1));
  next(consumer);
  next(consumer);
  said(consumer);
  consumer.dead_letter(Offset{0}, std::string(255, 'x') + "é");
  consumer.dead_letter(Offset{1}, std::string(254, 'x') + "é!");
  const auto words = said(consumer);
  ASSERT_THAT(words, ::testing::SizeIs(::testing::Ge(2U)));
  EXPECT_EQ(words[0], "dead '" + std::string(255, 'x') + "' #1 [0,1)");
  EXPECT_EQ(words[1], "dead '" + std::string(254, 'x') + "é' #1 [1,2)");
}

TEST_F(SessionConsumerReturn, RejectsDeadMessagesForAnotherDeliveryAtABrokerThatKnowsNoDeath) {
  Consumer consumer = connected();
  deliver(0, {"a"}, handed(1));
  next(consumer);
  said_already();
  consumer.dead_letter(Offset{0}, "not an order");
  EXPECT_THAT(said(consumer), ElementsAre("reject 0 #1 [0,1)", "credit 1/1"));
  EXPECT_FALSE(consumer.opened()->dead_letters);
}

}  // namespace
}  // namespace lightq::test
