/// Tests of the transfer of dead messages: a topic that is missing, full or too small, messages that cannot
/// be moved, and a group that changes meanwhile.
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "delivery/consumer_group_harness.hpp"
#include "endpoint/letter_world.hpp"

namespace lightq::broker {
namespace {

using protocol::BrokerType;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint64_t small_capacity_bytes = limits::ring_bytes_min;

class LetterTransferTest : public LetterWorld {
 protected:
  explicit LetterTransferTest(
      const protocol::TopicSettings& settings = {.broker_type = BrokerType::file,
                                                 .segment_bytes = limits::segment_bytes_min})
      : LetterWorld(settings) {}

  void die(int messages) {
    for (; messages > 0; --messages) group.die();
  }
  /// Runs some turns, in which everything that can happen without a rest happens.
  void run_a_while() {
    for (int turns = 0; turns < 60; ++turns) step();
  }
  [[nodiscard]] bool has_line(const std::string& part) {
    return std::ranges::any_of(sink.lines, [&](const auto& line) { return line.find(part) != line.npos; });
  }
};

TEST_F(LetterTransferTest, LettersArriveInTheirOrderAndAreFinished) {
  die(600);  // more than may be under way at once
  ASSERT_TRUE(run_to_the_end());
  std::vector<std::uint64_t> all(600);
  for (std::uint64_t offset = 0; offset < all.size(); ++offset) all[offset] = offset;
  EXPECT_EQ(letters_in_topic(), all);
  EXPECT_EQ(group.memory.finished.size(), 600U);
  EXPECT_EQ(topic->producers().connected(), 0U) << "a transfer with nothing to do has left";
}

TEST_F(LetterTransferTest, AMissingTopicIsTriedAgainAndReportedOnce) {
  has_topic = false;
  die(2);
  run_a_while();
  EXPECT_EQ(group.memory.waiting.size(), 2U);
  EXPECT_EQ(sink.errors, 1);
  EXPECT_TRUE(has_line("dead messages wait, because they cannot be moved to topic orders now"));
  has_topic = true;
  ASSERT_TRUE(run_to_the_end());
  EXPECT_THAT(letters_in_topic(), ElementsAre(0, 1));
  EXPECT_TRUE(has_line("are moved to topic orders again"));
}

TEST_F(LetterTransferTest, ABusyThreadIsTriedAgain) {
  is_busy = true;
  die(1);
  run_a_while();
  EXPECT_THAT(letters_in_topic(), IsEmpty());
  is_busy = false;
  ASSERT_TRUE(run_to_the_end());
  EXPECT_THAT(letters_in_topic(), ElementsAre(0));
}

TEST_F(LetterTransferTest, AnUnsavedGroupSendsNothing) {
  group.saves_fail = true;
  die(1);
  run_a_while();
  EXPECT_THAT(letters_in_topic(), IsEmpty());
  EXPECT_EQ(group.memory.waiting.size(), 1U);
  group.saves_fail = false;
  ASSERT_TRUE(run_to_the_end());
  EXPECT_THAT(letters_in_topic(), ElementsAre(0));
}

TEST_F(LetterTransferTest, MessagesThatAPowerCutMayTakeAreNotSent) {
  group.durable_end = 1;
  die(3);
  run_a_while();
  EXPECT_THAT(letters_in_topic(), ElementsAre(0));
  EXPECT_EQ(group.memory.under_way, 0U);
  EXPECT_EQ(sink.errors, 0);
  group.durable_end = 3;
  ASSERT_TRUE(run_to_the_end());
  EXPECT_THAT(letters_in_topic(), ElementsAre(0, 1, 2));
}

TEST_F(LetterTransferTest, AMessageThatCannotBeALetterIsParkedAndTheOthersGoOn) {
  die(5);
  group.too_large.insert(2);
  ASSERT_TRUE(run_to_the_end());
  EXPECT_THAT(letters_in_topic(), ElementsAre(0, 1, 3, 4));
  EXPECT_THAT(group.memory.parked, ElementsAre(2));
  EXPECT_TRUE(has_line("a dead message is parked"));
}

TEST_F(LetterTransferTest, ADamagedMessageIsLeftOut) {
  die(4);
  group.damaged = {0, 2};
  ASSERT_TRUE(run_to_the_end());
  EXPECT_THAT(letters_in_topic(), ElementsAre(1, 3));
  EXPECT_THAT(group.memory.finished, ElementsAre(0, 1, 2, 3));
}

TEST_F(LetterTransferTest, AnUnavailableMessageIsReadAgain) {
  die(3);
  group.unavailable = {1};
  run_a_while();
  EXPECT_THAT(letters_in_topic(), ElementsAre(0));
  group.unavailable.clear();
  ASSERT_TRUE(run_to_the_end());
  EXPECT_THAT(letters_in_topic(), ElementsAre(0, 1, 2));
}

TEST_F(LetterTransferTest, AGroupThatIsPurgedMeanwhileBeginsAnew) {
  die(3);
  for (int turns = 0; turns < 6; ++turns) step();
  group.purge();
  die(2);
  ASSERT_TRUE(run_to_the_end());
  const auto letters = letters_in_topic();
  EXPECT_EQ(std::ranges::count(letters, 3U), 1);
  EXPECT_EQ(std::ranges::count(letters, 4U), 1);
}

TEST_F(LetterTransferTest, AGroupThatWasRestoredFromAnOlderStateLosesNothing) {
  die(2);
  ASSERT_TRUE(run_to_the_end());
  group.disk = group.memory;
  die(2);
  ASSERT_TRUE(run_to_the_end());
  // The state before the last two deaths. Two other messages die now.
  const auto keeps = [] { return true; };
  const auto older = group.disk;
  crash(false, keeps, 0);
  group.memory = group.disk = older;
  group.memory.next_offset = 10;
  die(2);
  ASSERT_TRUE(run_to_the_end());
  EXPECT_THAT(letters_in_topic(), ElementsAre(0, 1, 2, 3, 10, 11));
}

TEST_F(LetterTransferTest, ATopicThatStopsIsUsedAgainAfterItsStart) {
  die(3);
  for (int turns = 0; turns < 4; ++turns) step();
  drop();
  start();
  ASSERT_TRUE(run_to_the_end());
  EXPECT_THAT(letters_in_topic(), ElementsAre(0, 1, 2));
}

class FullTopicTest : public LetterTransferTest {
 protected:
  FullTopicTest() : FullTopicTest(protocol::Overflow::block) {}
  explicit FullTopicTest(protocol::Overflow overflow)
      : LetterTransferTest(
            {.broker_type = BrokerType::queue, .ring_bytes = small_capacity_bytes, .overflow = overflow}) {}
  /// Fills the topic, whose group "slow" keeps its messages.
  void fill() {
    ASSERT_EQ(topic->open_consumer(test::asked("slow", GroupMode::group), slow_).code, ClientError::none);
    BatchBuilder batch;
    const std::string payload(1000, 'x');
    do {
      batch.clear();
      batch.add(as_byte_view(payload));
    } while (topic->publishing().publish(batch) == PublishOutcome::accepted);
  }
  void make_space() {
    topic->commands().purge_group("slow", [](const Result<std::uint64_t>& purged) { EXPECT_TRUE(purged); });
  }
  [[nodiscard]] std::size_t letters_at_end() {
    const auto all = letters_in_topic();
    return static_cast<std::size_t>(std::ranges::count(all, 1U));
  }
  void wait_for_space() {
    fill();
    die(2);
    run_a_while();
    EXPECT_EQ(group.memory.waiting.size(), 2U);
    make_space();
    ASSERT_TRUE(run_to_the_end());
    EXPECT_EQ(letters_at_end(), 1U);
    leave();
  }
  void leave() { topic->detach_consumer(slow_); }

 private:
  test::FakeConsumer slow_;
};

class RejectingTopicTest : public FullTopicTest {
 protected:
  RejectingTopicTest() : FullTopicTest(protocol::Overflow::reject) {}
};

TEST_F(FullTopicTest, LettersWaitForSpace) {
  wait_for_space();
  EXPECT_EQ(sink.errors, 0);
}

TEST_F(RejectingTopicTest, LettersAreSentAgainUntilThereIsSpace) {
  wait_for_space();
  EXPECT_TRUE(has_line("the topic is full"));
}

TEST_F(FullTopicTest, AFullTopicReceivesNothingThatTheGroupNoLongerMoves) {
  fill();
  die(2);
  run_a_while();
  EXPECT_EQ(topic->producers().connected(), 1U);
  group.purge();
  ASSERT_TRUE(run_until([this] {
    step();
    return topic->producers().connected() == 0;
  }));
  make_space();
  run_a_while();
  EXPECT_EQ(letters_at_end(), 0U);
  leave();
}

TEST_F(FullTopicTest, AMessageThatTheTopicCanNeverStoreIsParked) {
  die(3);
  group.huge.insert(1);
  ASSERT_TRUE(run_to_the_end());
  EXPECT_THAT(letters_in_topic(), ElementsAre(0, 2));
  EXPECT_THAT(group.memory.parked, ElementsAre(1));
}

class DirectTopicTest : public LetterTransferTest {
 protected:
  DirectTopicTest() : LetterTransferTest({.broker_type = BrokerType::direct}) {}
};

TEST_F(DirectTopicTest, ADirectTopicReceivesNoLetters) {
  die(1);
  run_a_while();
  EXPECT_EQ(group.memory.waiting.size(), 1U);
  EXPECT_TRUE(has_line("a direct topic keeps no messages"));
}

}  // namespace
}  // namespace lightq::broker
