/// Tests of the credit that adapts to the program's work: how many messages a consumer requests ahead.
#include <lightq/impl/session_credit.hpp>
#include <lightq/impl/session_prefetch.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <lightq/consumer.hpp>

#include "session_consumer_fixture.hpp"

namespace lightq::test {
namespace {

using namespace std::chrono_literals;

constexpr SessionTime prefetch_start{1h};

class SessionPrefetchTest : public ::testing::Test {
 protected:
  /// The program works on a batch of `messages`, for `time` altogether.
  void work(std::uint64_t messages, std::chrono::nanoseconds time) {
    prefetch.delivered(messages, at);
    at += time;
    prefetch.finished(at);
  }
  void grow_to_the_most() {
    while (prefetch.messages() < SessionPrefetch::most) work(prefetch.messages(), 0ns);
  }

  SessionPrefetch prefetch{100ms};
  SessionTime at = prefetch_start;
};

TEST_F(SessionPrefetchTest, BeginsWithSixteenAndAtMostDoublesWhileTheyAreWorkedOff) {
  std::vector<std::uint64_t> numbers{prefetch.messages()};
  while (numbers.back() < SessionPrefetch::most && numbers.size() < 20) {
    work(numbers.back(), 1us);
    numbers.push_back(prefetch.messages());
  }
  EXPECT_EQ(numbers, (std::vector<std::uint64_t>{16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 10'000}));
  work(10'000, 1us);
  EXPECT_EQ(prefetch.messages(), 10'000U);
}

TEST_F(SessionPrefetchTest, GrowsByTheNumberOfMessagesThatAreDone) {
  work(1, 1us);
  EXPECT_EQ(prefetch.messages(), 17U);
  work(5, 1us);
  EXPECT_EQ(prefetch.messages(), 22U);
}

TEST_F(SessionPrefetchTest, IsAsManyMessagesAsTheProgramProcessesInTheTime) {
  work(1, 1s);
  for (int round = 0; round < 8; ++round) work(prefetch.messages(), 1ms * prefetch.messages());
  EXPECT_EQ(prefetch.messages(), 100U);
  for (int round = 0; round < 5; ++round) work(prefetch.messages(), 2ms * prefetch.messages());
  EXPECT_EQ(prefetch.messages(), 50U);
  for (int round = 0; round < 5; ++round) work(prefetch.messages(), 500us * prefetch.messages());
  EXPECT_EQ(prefetch.messages(), 200U);
}

TEST_F(SessionPrefetchTest, FallsAfterTheFirstMessageOfASlowProgram) {
  prefetch.delivered(16, at);
  prefetch.look(15, at + 500us);
  EXPECT_EQ(prefetch.messages(), 4U) << "2 ms";
}

TEST_F(SessionPrefetchTest, IsAnEighthOfTheWorkSoFarUntilThatIsTheTime) {
  work(16, 160ms);
  EXPECT_EQ(prefetch.messages(), 2U);
  work(2, 20ms);
  EXPECT_EQ(prefetch.messages(), 2U);
  work(30, 300ms);
  EXPECT_EQ(prefetch.messages(), 6U);
  for (int round = 0; round < 20; ++round) work(10, 100ms);
  EXPECT_EQ(prefetch.messages(), 10U);
}

TEST_F(SessionPrefetchTest, FallsToOneAfterASingleMessageThatTakesAllTheTime) {
  grow_to_the_most();
  prefetch.delivered(2, at);
  prefetch.look(1, at + 100ms);
  EXPECT_EQ(prefetch.messages(), 1U);
  prefetch.finished(at + 10s);
  EXPECT_EQ(prefetch.messages(), 1U) << "never 0";
}

TEST_F(SessionPrefetchTest, GrowsAgainWhenTheProgramIsQuickAgain) {
  grow_to_the_most();
  work(1, 1s);
  EXPECT_EQ(prefetch.messages(), 1U);
  work(1, 1us);
  EXPECT_EQ(prefetch.messages(), 2U);
  work(2, 1us);
  EXPECT_EQ(prefetch.messages(), 4U);
}

TEST_F(SessionPrefetchTest, IsNotChangedByAPauseAmongManyShortMessages) {
  grow_to_the_most();
  for (int round = 0; round < 20; ++round) work(10'000, 50ms);
  EXPECT_EQ(prefetch.messages(), 10'000U);
  work(1'000, 20ms);
  EXPECT_EQ(prefetch.messages(), 10'000U);
}

TEST_F(SessionPrefetchTest, CountsNoWaitingAsWork) {
  work(1, 1us);
  at += 1h;
  prefetch.finished(at);  // the program asks, and nothing comes
  at += 1h;
  work(1, 1us);
  EXPECT_EQ(prefetch.messages(), 18U);
}

TEST_F(SessionPrefetchTest, MeasuresInsideABatchAfterASixteenthOfTheTime) {
  prefetch.delivered(16, at);
  prefetch.look(15, at + 100us);
  EXPECT_EQ(prefetch.messages(), 17U) << "the first one";
  prefetch.look(12, at + 6ms);
  EXPECT_EQ(prefetch.messages(), 17U) << "too early";
  prefetch.look(7, at + 8100us);
  EXPECT_EQ(prefetch.messages(), 3U) << "8 more were done, 1 ms each";
  prefetch.look(7, at + 40ms);
  EXPECT_EQ(prefetch.messages(), 3U) << "the program still works on one";
  prefetch.look(6, at + 109ms);
  EXPECT_EQ(prefetch.messages(), 1U) << "it took 100 ms";
}

TEST_F(SessionPrefetchTest, MeasuresNothingInADroppedBatch) {
  prefetch.delivered(16, at);
  prefetch.dropped();
  prefetch.finished(at + 1h);
  EXPECT_EQ(prefetch.messages(), 16U);
  EXPECT_EQ(prefetch.waiting(), 0U);
}

TEST_F(SessionPrefetchTest, DoesNotCountTheMessageThatTheProgramTakesNext) {
  EXPECT_EQ(prefetch.waiting(), 0U);
  prefetch.delivered(3, at);
  EXPECT_EQ(prefetch.waiting(), 2U);
  prefetch.look(2, at);
  EXPECT_EQ(prefetch.waiting(), 1U);
  prefetch.look(0, at);
  EXPECT_EQ(prefetch.waiting(), 0U);
}

TEST_F(SessionPrefetchTest, DoesNotCountMessagesThatTheBrokerHasTakenBack) {
  prefetch.delivered(10, at);
  prefetch.look(9, at + 100us);
  EXPECT_EQ(prefetch.messages(), 17U);
  prefetch.dropped(8);
  EXPECT_EQ(prefetch.waiting(), 0U);
  prefetch.look(1, at + 20ms);
  EXPECT_EQ(prefetch.messages(), 17U) << "it has done nothing since";
}

class AdaptiveCreditTest : public ::testing::Test {
 protected:
  SessionCredit credit{{10'000, 1000}, SessionPrefetch(100ms)};
  SessionAmount back;
};

TEST_F(AdaptiveCreditTest, GivesSixteenMessagesAndAllBytesAtFirst) {
  EXPECT_EQ(credit.begin(back), (SessionAmount{16, 1000}));
  EXPECT_EQ(back, (SessionAmount{9984, 0}));
  EXPECT_FALSE(credit.is_due(back));
  EXPECT_FALSE(credit.is_much(back));
}

TEST_F(AdaptiveCreditTest, GivesCreditForMessagesThatTheProgramHasBegun) {
  credit.begin(back);
  EXPECT_TRUE(credit.use({10, 100}));
  credit.prefetch()->delivered(10, prefetch_start);
  credit.prefetch()->look(9, prefetch_start);
  EXPECT_EQ(credit.give(back), (SessionAmount{3, 0})) << "of 17; 6 at the broker, 8 behind the next";
  credit.prefetch()->look(5, prefetch_start);
  EXPECT_TRUE(credit.is_much(back)) << "a quarter of 16";
  EXPECT_EQ(credit.give(back), (SessionAmount{4, 0}));
  EXPECT_FALSE(credit.is_due(back));
  back += {5, 50};
  EXPECT_EQ(credit.give(back), (SessionAmount{0, 50})) << "bytes go back as they are settled";
}

TEST_F(AdaptiveCreditTest, GivesNoneUntilFewEnoughWait) {
  credit.begin(back);
  EXPECT_TRUE(credit.use({12, 0}));
  credit.prefetch()->delivered(12, prefetch_start);
  credit.prefetch()->look(11, prefetch_start + 500us);
  EXPECT_EQ(credit.prefetch_messages(), 4U);
  back.messages += 1;
  EXPECT_FALSE(credit.is_due(back));
  EXPECT_TRUE(credit.use({4, 0}));
  credit.prefetch()->finished(prefetch_start + 6ms);
  credit.prefetch()->delivered(4, prefetch_start + 6ms);
  EXPECT_EQ(credit.give(back), (SessionAmount{1, 0}));
}

TEST_F(AdaptiveCreditTest, NeverExceedsTheMaximum) {
  credit.begin(back);
  for (int round = 0; round < 12; ++round) {
    credit.prefetch()->delivered(10'000, prefetch_start);
    credit.prefetch()->finished(prefetch_start);
  }
  EXPECT_EQ(credit.prefetch_messages(), 10'000U);
  EXPECT_EQ(credit.give(back), (SessionAmount{9984, 0}));
  EXPECT_TRUE(credit.use({10'000, 1}));
  EXPECT_FALSE(credit.is_due(back)) << "all are with the program";
}

/// A consumer with default credit, and a clock that stands still.
class SessionConsumerPrefetch : public SessionConsumerTest {
 protected:
  SessionConsumerPrefetch() {
    options.prefetch_messages.reset();
    options.clock = [time = time_] { return *time; };
  }
  void pass(std::chrono::nanoseconds time) { *time_ += time; }
  /// Delivers `count` messages after those that were delivered before.
  void deliver_more(std::uint64_t count) {
    deliver(delivered_, Payloads(count, "x"));
    delivered_ += count;
  }
  /// Returns how many messages of credit the consumer has given since the last call.
  std::uint64_t given(Consumer& consumer) {
    std::uint64_t messages = 0;
    for (int step = 0; step < 50; ++step) {
      (void)consumer.poll();
      peer.read();
      while (const auto frame = peer.next())
        if (frame->header.op == session::Op::credit) messages += frame->as<session::Credit>().messages;
    }
    return messages;
  }
  /// The program works on `count` messages, one by one.
  void work(Consumer& consumer, std::uint64_t count, std::chrono::nanoseconds each) {
    for (; count > 0; --count) {
      const Delivered message = next(consumer);
      pass(each);
      consumer.acknowledge(message);
    }
  }

 private:
  std::shared_ptr<SessionTime> time_ = std::make_shared<SessionTime>(prefetch_start);
  std::uint64_t delivered_ = 0;
};

TEST_F(SessionConsumerPrefetch, GrowsWithAProgramThatOnlyCounts) {
  Consumer consumer = make();
  const session::ConsumeOpen open = connect(consumer);
  EXPECT_EQ(open.credit_messages, 16U);
  EXPECT_EQ(open.credit_bytes, 1 * limits::MiB);
  std::uint64_t credit = open.credit_messages;
  int rounds = 0;
  while (consumer.stats().prefetch_messages < 10'000) {
    ASSERT_LT(++rounds, 12);
    deliver_more(credit);
    work(consumer, credit, 0ns);
    EXPECT_TRUE(has_nothing(consumer));
    credit = given(consumer);
    EXPECT_EQ(credit, consumer.stats().prefetch_messages);
  }
  EXPECT_EQ(rounds, 10);
}

TEST_F(SessionConsumerPrefetch, GrowsWithAProgramThatTakesWholeBatches) {
  Consumer consumer = make();
  std::uint64_t credit = connect(consumer).credit_messages;
  for (int round = 0; round < 10; ++round) {
    deliver_more(credit);
    for (std::uint64_t taken = 0; taken < credit;) {
      peer.write();
      const auto batch = consumer.receive_batch(Timeout(0)).value_or_throw();
      if (!batch) continue;
      taken += batch->size();
      consumer.acknowledge(*batch);
    }
    EXPECT_TRUE(has_nothing(consumer));
    credit = given(consumer);
  }
  EXPECT_EQ(credit, 10'000U);
}

TEST_F(SessionConsumerPrefetch, GivesASlowProgramOneMoreOnlyWhenItHasBegunTheLast) {
  Consumer consumer = make();
  EXPECT_EQ(connect(consumer).credit_messages, 16U);
  deliver_more(16);
  work(consumer, 15, 150ms);
  EXPECT_EQ(given(consumer), 1U) << "15 are done, so the program takes the last one next";
  deliver_more(1);
  work(consumer, 1, 150ms);
  EXPECT_EQ(given(consumer), 0U) << "one waits";
  next(consumer);
  EXPECT_EQ(given(consumer), 1U) << "it is requested while the program works";
}

TEST_F(SessionConsumerPrefetch, FallsWhileAProgramWorksOnABatchThatItTookAtOnce) {
  Consumer consumer = make();
  connect(consumer);
  deliver_more(16);
  peer.write();
  for (int step = 0; step < 50 && !consumer.is_ready(); ++step) poll(consumer);
  const auto batch = consumer.receive_batch(Timeout(0)).value_or_throw();
  ASSERT_TRUE(batch && batch->size() == 16);
  given(consumer);
  pass(1ms);
  consumer.acknowledge(Offset{0});
  poll(consumer);
  EXPECT_EQ(consumer.stats().prefetch_messages, 2U);
  EXPECT_EQ(given(consumer), 0U);
}

TEST_F(SessionConsumerPrefetch, LetsAProgramGatherTenThousandMessages) {
  Consumer consumer = make();
  std::uint64_t credit = connect(consumer).credit_messages;
  std::uint64_t gathered = 0;
  while (credit > 0) {
    deliver_more(credit);
    for (std::uint64_t i = 0; i < credit; ++i) next(consumer);
    gathered += credit;
    EXPECT_TRUE(has_nothing(consumer));
    credit = given(consumer);
  }
  EXPECT_EQ(gathered, 10'000U);
  EXPECT_EQ(consumer.unacknowledged(), 10'000U);
  EXPECT_EQ(consumer.acknowledge_before(Offset{10'000}), 10'000U);
  EXPECT_EQ(given(consumer), 10'000U);
}

TEST_F(SessionConsumerPrefetch, DependsOnTheOption) {
  options.prefetch_time = 1ms;
  Consumer consumer = make();
  connect(consumer);
  deliver_more(16);
  work(consumer, 1, 100us);
  EXPECT_EQ(consumer.stats().prefetch_messages, 10U);
  options.prefetch_time = 0ms;
  EXPECT_EQ(options.check().error().code, ErrorCode::invalid_argument);
  options.prefetch_time = 1h + 1ms;
  EXPECT_EQ(options.check().error().code, ErrorCode::invalid_argument);
}

TEST_F(SessionConsumerPrefetch, RemainsOverANewConnection) {
  Consumer consumer = make();
  connect(consumer);
  deliver_more(16);
  work(consumer, 16, 500us);
  EXPECT_TRUE(has_nothing(consumer));
  EXPECT_EQ(consumer.stats().prefetch_messages, 4U);
  peer.close();
  poll(consumer);
  pass(1s);
  EXPECT_EQ(connect(consumer).credit_messages, 4U);
}

TEST_F(SessionConsumerPrefetch, DoesNotChangeAFixedCredit) {
  options.prefetch_messages = 10'000;
  Consumer consumer = make();
  EXPECT_EQ(connect(consumer).credit_messages, 10'000U);
  deliver_more(20);
  work(consumer, 10, 1s);
  EXPECT_EQ(given(consumer), 10U) << "each acknowledged message gives its credit back";
  EXPECT_EQ(consumer.stats().prefetch_messages, 10'000U);
}

TEST_F(SessionConsumerPrefetch, IsFixedForConsumersThatTakeNothingFromOthers) {
  options.mode = ConsumeMode::own;
  Consumer own = make();
  EXPECT_EQ(connect(own).credit_messages, 10'000U);
  options.mode = ConsumeMode::group;
  options.acknowledgement = Acknowledgement::automatic;
  Consumer automatic = make();
  EXPECT_EQ(connect(automatic).credit_messages, 10'000U);
}

}  // namespace
}  // namespace lightq::test
