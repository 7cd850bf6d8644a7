/// Tests of the transfer of dead messages: a topic that is missing, full or too small, messages that cannot
/// be moved, and a group that changes meanwhile.
#include <gmock/gmock.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
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

TEST(LettersInTransit, CountLettersUntilTheirTasksAreGone) {
  std::optional<LettersInTransit> sent(std::in_place, 100);
  auto share = sent->add(99);
  EXPECT_TRUE(sent->has_room());
  const auto second = sent->add(1);
  EXPECT_FALSE(sent->has_room());
  auto copy = share;
  share.reset();
  EXPECT_EQ(sent->bytes(), 100U);
  copy.reset();
  EXPECT_EQ(sent->bytes(), 1U);
  sent.reset();  // a task may outlive the office
}

TEST_F(LetterTransferTest, LettersOnTheirWayHaveABound) {
  sent_bytes_max = 0;
  open_office();
  die(2);
  run_a_while();
  EXPECT_THAT(letters_in_topic(), IsEmpty());
  EXPECT_EQ(sink.errors, 0) << "they wait for those that are on their way";
  sent_bytes_max = 1;
  open_office();
  std::size_t most = 0;
  for (int turns = 0; turns < 60; ++turns) {
    step();
    most = std::max(most, office->sent_bytes());
  }
  EXPECT_GT(most, 0U);
  ASSERT_TRUE(run_to_the_end());
  EXPECT_EQ(office->sent_bytes(), 0U);
  EXPECT_THAT(letters_in_topic(), ElementsAre(0, 1));
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

TEST_F(LetterTransferTest, AMessageThatTheDiskIsReadingIsNoFailure) {
  die(3);
  group.pending = {{0, 3}, {1, 4}};
  ASSERT_TRUE(run_to_the_end());
  EXPECT_THAT(letters_in_topic(), ElementsAre(0, 1, 2));
  EXPECT_EQ(sink.errors, 0);
}

TEST_F(LetterTransferTest, ReadingMessagesHasABoundForEachTurn) {
  group.read_work = TurnQueue::turn_bytes / 4;
  die(20);
  ASSERT_TRUE(run_to_the_end());
  EXPECT_EQ(letters_in_topic().size(), 20U);
  EXPECT_LE(group.work_of_turn, 2 * TurnQueue::turn_bytes);
}

TEST_F(LetterTransferTest, ATopicThatStopsIsUsedAgainAfterItsStart) {
  die(3);
  for (int turns = 0; turns < 4; ++turns) step();
  drop();
  start();
  ASSERT_TRUE(run_to_the_end());
  EXPECT_THAT(letters_in_topic(), ElementsAre(0, 1, 2));
}

/// The dead-letter topic changes while messages are under way.
class TargetChangeTest : public LetterTransferTest {
 protected:
  TargetChangeTest() { EXPECT_TRUE(open_others()); }
  /// Lets messages die, and runs until the topic has letters that the group has not finished.
  void send_some(int messages) {
    die(messages);
    for (int turns = 0; turns < 2000 && letters_in_topic().empty(); ++turns) step();
    ASSERT_FALSE(letters_in_topic().empty());
    ASSERT_EQ(group.memory.waiting.size(), static_cast<std::size_t>(messages));
  }
  /// Ends the process. The group's file has the numbers that were sent. It does not have later changes.
  void kill() {
    crash(false, [] { return true; }, 0);
  }
};

TEST_F(TargetChangeTest, AnotherTopicReceivesOnlyWhatTheFormerOneDoesNotHave) {
  send_some(3);
  group.set_target(others_id);
  die(2);
  ASSERT_TRUE(run_to_the_end());
  EXPECT_THAT(letters_in_topic(), ElementsAre(0, 1, 2));
  EXPECT_THAT(letters_in(*others), ElementsAre(3, 4));
}

TEST_F(TargetChangeTest, AKillAfterTheChangeDoublesNothing) {
  send_some(3);
  group.set_target(others_id);
  kill();
  ASSERT_TRUE(run_to_the_end());
  EXPECT_THAT(letters_in_topic(), ElementsAre(0, 1, 2));
  EXPECT_THAT(letters_in(*others), IsEmpty());
}

TEST_F(TargetChangeTest, LettersThatTheFormerTopicDoesNotHaveGoToTheNewOne) {
  group.saves_fail = true;
  die(3);
  run_a_while();  // they have numbers, and nothing was sent
  ASSERT_EQ(group.memory.under_way, 3U);
  const std::uint64_t incarnation = group.memory.incarnation;
  group.saves_fail = false;
  group.set_target(others_id);
  ASSERT_TRUE(run_to_the_end());
  EXPECT_THAT(letters_in_topic(), IsEmpty());
  EXPECT_THAT(letters_in(*others), ElementsAre(0, 1, 2));
  EXPECT_NE(group.memory.incarnation, incarnation);
}

TEST_F(TargetChangeTest, WithoutATopicOnlyMessagesThatTheFormerOneDoesNotHaveAreParked) {
  send_some(3);
  die(2);
  group.set_target({});
  EXPECT_THAT(group.memory.parked, ElementsAre(3, 4));
  kill();
  ASSERT_TRUE(run_to_the_end());
  EXPECT_THAT(group.memory.finished, ElementsAre(0, 1, 2));
  EXPECT_THAT(letters_in_topic(), ElementsAre(0, 1, 2));
}

TEST_F(TargetChangeTest, MessagesThatWaitForNoTopicAreParked) {
  die(2);
  group.target = {};  // the group was restored, and does not know yet
  ASSERT_TRUE(run_to_the_end());
  EXPECT_THAT(group.memory.parked, ElementsAre(0, 1));
}

TEST_F(TargetChangeTest, MessagesAreSentAgainIfTheFormerTopicWasDeleted) {
  send_some(3);
  has_topic = false;
  group.set_target(others_id);
  kill();
  ASSERT_TRUE(run_to_the_end());
  EXPECT_THAT(letters_in(*others), ElementsAre(0, 1, 2));
}

TEST_F(TargetChangeTest, ATopicThatWasCreatedUnderTheNameReceivesNothing) {
  has_topic = false;
  has_new_topic = true;
  die(2);
  run_a_while();
  EXPECT_EQ(group.memory.waiting.size(), 2U);
  EXPECT_EQ(group.memory.under_way, 0U);
  EXPECT_THAT(group.trouble, HasSubstr("another one has its name"));
  group.set_target(others_id);
  ASSERT_TRUE(run_to_the_end());
  EXPECT_THAT(letters_in(*others), ElementsAre(0, 1));
  EXPECT_EQ(group.trouble, "");
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

TEST_F(RejectingTopicTest, AFullTopicIsReportedOnceUntilItHasSpace) {
  fill();
  die(2);
  int opened = 0;
  bool was_open = false;
  ASSERT_TRUE(run_until([&] {
    step();
    const bool is_open = topic->producers().connected() == 1;
    opened += is_open && !was_open ? 1 : 0;
    was_open = is_open;
    return opened == 2 && !is_open;
  }));
  EXPECT_THAT(group.trouble, HasSubstr("the topic is full"));
  EXPECT_EQ(sink.errors, 1);
  EXPECT_FALSE(has_line("are moved to topic orders again"));
  make_space();
  ASSERT_TRUE(run_to_the_end());
  EXPECT_TRUE(has_line("are moved to topic orders again"));
  leave();
}

TEST_F(FullTopicTest, TheReasonWhyLettersWaitForSpaceIsTold) {
  fill();
  die(2);
  ASSERT_TRUE(run_until([this] {
    step();
    return !group.trouble.empty();
  }));
  EXPECT_THAT(group.trouble, HasSubstr("the topic is full"));
  run_a_while();
  EXPECT_EQ(std::ranges::count_if(sink.lines,
                                  [](const auto& line) { return line.find("wait for space") != line.npos; }),
            1);
  make_space();
  ASSERT_TRUE(run_to_the_end());
  EXPECT_EQ(group.trouble, "");
  EXPECT_TRUE(has_line("are moved to topic orders again"));
  leave();
}

TEST_F(FullTopicTest, LettersThatWaitForSpaceHaveLimitedMemory) {
  held_bytes_max = 1000;
  open_office();
  fill();
  die(60);
  run_a_while();
  EXPECT_GT(office->held_bytes(), 0U);
  EXPECT_LE(office->held_bytes(), held_bytes_max);
  make_space();
  ASSERT_TRUE(run_to_the_end());
  EXPECT_EQ(office->held_bytes(), 0U);
  EXPECT_EQ(letters_at_end(), 1U);
  EXPECT_EQ(group.memory.finished.size(), 60U);
  leave();
}

TEST_F(FullTopicTest, WithoutMemoryLettersAreSentAgainLater) {
  held_bytes_max = 0;
  open_office();
  fill();
  die(2);
  run_a_while();
  EXPECT_TRUE(has_line("too many dead letters wait for space"));
  make_space();
  ASSERT_TRUE(run_to_the_end());
  EXPECT_EQ(letters_at_end(), 1U);
  leave();
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
