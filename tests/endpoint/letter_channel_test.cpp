/// Tests of the channel of a transfer: a target that knows more than the group, and a channel that ends.
#include <gmock/gmock.h>

#include "endpoint/letter_world.hpp"

namespace lightq::broker {
namespace {

using testing::ElementsAre;

class LetterChannelTest : public LetterWorld {
 protected:
  LetterChannelTest()
      : LetterWorld({.broker_type = protocol::BrokerType::file, .segment_bytes = limits::segment_bytes_min}) {
  }
};

/// Restores the group's file of an earlier time. Since then the topic has received letters with numbers that
/// the file does not know.
class OlderFileTest : public LetterChannelTest {
 protected:
  void restore(const ModelGroup::State& older) {
    crash(false, [] { return true; }, 0);
    group.memory = group.disk = older;
    group.memory.next_offset = 10;
  }
  /// Moves two messages, and two more that the restored file does not know. Then lets others die.
  void die_after_restore(int deaths) {
    die(2);
    ASSERT_TRUE(run_to_the_end());
    const auto older = group.memory;
    die(2);
    ASSERT_TRUE(run_to_the_end());
    restore(older);
    die(deaths);
    ASSERT_TRUE(run_to_the_end());
  }
};

TEST_F(OlderFileTest, FewerDeathsThanTheFileDoesNotKnowAreAllMoved) {
  die_after_restore(1);
  EXPECT_THAT(letters_in_topic(), ElementsAre(0, 1, 2, 3, 10));
}

TEST_F(OlderFileTest, AsManyDeathsAsTheFileDoesNotKnowAreAllMoved) {
  die_after_restore(2);
  EXPECT_THAT(letters_in_topic(), ElementsAre(0, 1, 2, 3, 10, 11));
}

TEST_F(OlderFileTest, MoreDeathsThanTheFileDoesNotKnowAreAllMoved) {
  die_after_restore(3);
  EXPECT_THAT(letters_in_topic(), ElementsAre(0, 1, 2, 3, 10, 11, 12));
}

TEST_F(OlderFileTest, OnlyMessagesThatWereUnderWayAreFinished) {
  die(2);
  ASSERT_TRUE(run_until([this] {
    step();
    return group.disk.under_way == 2;
  }));
  const auto older = group.disk;
  ASSERT_TRUE(run_to_the_end());
  die(2);
  ASSERT_TRUE(run_to_the_end());
  restore(older);
  die(2);
  ASSERT_TRUE(run_to_the_end());
  EXPECT_THAT(letters_in_topic(), ElementsAre(0, 1, 2, 3, 10, 11));
  EXPECT_THAT(group.memory.finished, ElementsAre(0, 1, 10, 11));
}

/// The topic ends the channel of the transfer while the transfer waits for something else.
class EndedChannelTest : public LetterChannelTest {
 protected:
  /// Takes the producer's id away, as another process with the same data would.
  void end_channel() {
    ASSERT_EQ(topic->producers().connected(), 1U);
    FakeProducer other(false);
    const auto opened =
        topic->publishing().open({group.memory.incarnation, 0}, other, {.user = ProducerTable::brokers_own});
    ASSERT_EQ(opened.refusal, ClientError::none);
    topic->publishing().detach(other);
    run_a_while();
  }
};

TEST_F(EndedChannelTest, WhileTheGroupSavesAnotherChannelIsOpened) {
  group.durable_end = 1;
  die(2);
  ASSERT_TRUE(run_until([this] {
    step();
    return group.memory.under_way == 1 && topic->producers().connected() == 1;
  }));
  group.durable_end = 2;
  group.saves_wait = true;
  ASSERT_TRUE(run_until([this] {
    step();
    return !group.saving.empty();
  }));
  end_channel();
  group.saves_wait = false;
  ASSERT_TRUE(run_to_the_end());
  EXPECT_THAT(letters_in_topic(), ElementsAre(0, 1));
}

TEST_F(EndedChannelTest, WhileTheTransferRestsAnotherChannelIsOpened) {
  die(2);
  group.unavailable = {1};
  ASSERT_TRUE(run_until([this] {
    step();
    return !group.trouble.empty();
  }));
  end_channel();
  group.unavailable.clear();
  ASSERT_TRUE(run_to_the_end());
  EXPECT_THAT(letters_in_topic(), ElementsAre(0, 1));
}

}  // namespace
}  // namespace lightq::broker
