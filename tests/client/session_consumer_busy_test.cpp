/// Tests of a session consumer with a slow program: which messages it keeps, and how it learns which ones it
/// has lost.
#include <gmock/gmock.h>

#include <cstdint>

#include <lightq/consumer.hpp>

#include "session_consumer_fixture.hpp"

namespace lightq::test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SessionConsumerBusy : public SessionConsumerTest {
 protected:
  /// Returns the frames that arrived without a call of the program, in words.
  std::vector<std::string> said_already() {
    std::vector<std::string> words;
    for (int step = 0; step < 50; ++step) {
      peer.read();
      while (const auto frame = peer.next()) words.push_back(word_of(*frame));
    }
    return words;
  }
  void let_come(Consumer& consumer) {
    for (int step = 0; step < 50; ++step) {
      peer.write();
      poll(consumer);
    }
  }

  static constexpr const char* all = "extend 30000 [0,18446744073709551615)";
};

TEST_F(SessionConsumerBusy, AnnouncesThatItMayBeBusyAndKnowsLeases) {
  const std::uint32_t always =
      session::hello_hears_late | session::hello_knows_leases | session::hello_knows_dead_letters;
  Consumer consumer = make();
  EXPECT_EQ(greet(consumer).codecs.bits(), CodecSet::known().bits() | always | session::hello_may_be_busy);
  options.may_be_busy = false;
  Consumer brisk = make();
  EXPECT_EQ(greet(brisk).codecs.bits(), CodecSet::known().bits() | always);
}

TEST_F(SessionConsumerBusy, KeepsWaitingMessagesWhileItsHandlerTakes25SecondsAMessage) {
  Consumer consumer = make();
  connect(consumer);
  deliver(0, {"a"});
  deliver(1, {"b"});
  deliver(2, {"c"});
  EXPECT_EQ(next_text(consumer), "a");
  EXPECT_THAT(said_already(), IsEmpty());
  clock.advance(25s);
  EXPECT_EQ(consumer.acknowledge(Offset{0}), 1U);
  EXPECT_THAT(said_already(), ElementsAre("ack [0,1)", "credit 1/1")) << "the next call may come in 25 s";
  EXPECT_EQ(next_text(consumer), "b");
  EXPECT_THAT(said_already(), ElementsAre(all));
  clock.advance(25s);
  EXPECT_EQ(consumer.acknowledge(Offset{1}), 1U);
  EXPECT_THAT(said_already(), ElementsAre("ack [1,2)", "credit 1/1"));
  EXPECT_EQ(next_text(consumer), "c");
  EXPECT_THAT(said_already(), ElementsAre(all));
}

TEST_F(SessionConsumerBusy, DoesNotExtendMessagesThatTheProgramHas) {
  Consumer consumer = make();
  connect(consumer);
  deliver(5, {"a", "b", "c", "d"});
  EXPECT_EQ(next_text(consumer), "a");
  EXPECT_EQ(next_text(consumer), "b");
  EXPECT_THAT(said_already(), IsEmpty());
  clock.advance(1s);
  consumer.acknowledge(Offset{5});
  EXPECT_THAT(said_already(), ElementsAre("ack [5,6)", "credit 1/1"))
      << "a sixteenth of the time is not over";
  clock.advance(1s);
  EXPECT_EQ(next_text(consumer), "c");
  EXPECT_THAT(said_already(), ElementsAre("extend 30000 [0,6) [7,18446744073709551615)"));
  clock.advance(2s);
  EXPECT_EQ(next_text(consumer), "d");
  EXPECT_THAT(said_already(), ElementsAre("extend 30000 [0,6) [8,18446744073709551615)"));
  clock.advance(2s);
  poll(consumer);
  EXPECT_THAT(said_already(), IsEmpty()) << "it has all";
}

TEST_F(SessionConsumerBusy, KeepsTheUnacknowledgedPartOfABatch) {
  Consumer consumer = make();
  connect(consumer);
  deliver(0, {"a", "b", "c", "d"});
  let_come(consumer);
  EXPECT_TRUE(consumer.receive_batch(Timeout(0)).value_or_throw().has_value());
  said_already();
  clock.advance(2s);
  poll(consumer);
  EXPECT_THAT(said_already(), IsEmpty()) << "the program may do nothing with it";
  consumer.acknowledge(Offset{0});
  EXPECT_THAT(said_already(),
              ElementsAre("extend 30000 [0,18446744073709551615)", "ack [0,1)", "credit 1/1"));
  clock.advance(2s);
  poll(consumer);
  EXPECT_THAT(said_already(), IsEmpty());
  consumer.acknowledge(OffsetRange{{1}, {4}});
  EXPECT_THAT(said_already(), ElementsAre("ack [1,4)", "credit 3/3")) << "nothing is left";
}

TEST_F(SessionConsumerBusy, LooksAtTheTimeThoughItsCallsFollowedEachOtherQuickly) {
  Consumer consumer = make();
  connect(consumer);
  deliver(0, Payloads(200, "x"));
  for (int i = 0; i < 100; ++i) consumer.acknowledge(next(consumer));
  clock.advance(25s);
  said_already();
  EXPECT_EQ(next(consumer).offset, Offset{100});
  EXPECT_THAT(said_already(), ::testing::Contains(HasSubstr("extend 30000 ")));
}

TEST_F(SessionConsumerBusy, KeepsNoMessageThatIsProcessedAtDelivery) {
  options.acknowledgement = Acknowledgement::automatic;
  Consumer consumer = make();
  connect(consumer);
  deliver(0, {"a", "b"});
  EXPECT_EQ(next_text(consumer), "a");
  clock.advance(25s);
  EXPECT_EQ(next_text(consumer), "b");
  EXPECT_THAT(said_already(), IsEmpty());
}

TEST_F(SessionConsumerBusy, AnswersWhetherAMessageIsItsOwn) {
  Consumer consumer = make();
  connect(consumer);
  deliver(3, {"a", "b", "c"});
  EXPECT_EQ(next_text(consumer), "a");
  EXPECT_EQ(consumer.acknowledge(Offset{3}), 1U);
  EXPECT_EQ(consumer.acknowledge(Offset{3}), 0U) << "it has been";
  EXPECT_EQ(consumer.acknowledge(OffsetRange{{0}, {5}}), 1U);
  EXPECT_EQ(next_text(consumer), "b");
  peer.close();
  clock.advance(25s);
  EXPECT_EQ(consumer.acknowledge(Offset{4}), 0U) << "it went to others with the connection";
  connect(consumer);
}

TEST_F(SessionConsumerBusy, ReportsItsLateAcknowledgements) {
  Consumer consumer = make();
  connect(consumer);
  deliver(0, {"a", "b"});
  EXPECT_EQ(next_text(consumer), "a");
  EXPECT_EQ(next_text(consumer), "b");
  EXPECT_EQ(consumer.acknowledge(OffsetRange{{0}, {2}}), 2U);
  EXPECT_THAT(consumer.take_late(), IsEmpty());
  peer.say(session::Late{{{{1}, {2}}}}, channel, 0);
  EXPECT_FALSE(consumer.receive(Timeout(0)).value_or_throw().has_value());
  let_come(consumer);
  EXPECT_EQ(consumer.stats().late, 1U);
  EXPECT_THAT(consumer.take_late(), ElementsAre(OffsetRange{{1}, {2}}));
  EXPECT_THAT(consumer.take_late(), IsEmpty());
}

TEST_F(SessionConsumerBusy, EndsAConnectionThatReportsLateAcknowledgementsOfAnotherChannel) {
  Consumer consumer = make();
  connect(consumer);
  peer.say(session::Late{{{{1}, {2}}}}, channel + 1, 0);
  EXPECT_TRUE(until(consumer, [&] { return consumer.stats().violations == 1; }));
}

}  // namespace
}  // namespace lightq::test
