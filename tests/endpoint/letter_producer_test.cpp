/// Tests of the producer through which a topic receives letters: long letters among others, a direct topic,
/// and lack of memory.
#include <gmock/gmock.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "delivery/consumer_group_harness.hpp"
#include "endpoint/topic_runtime_harness.hpp"
#include "support/no_memory.hpp"
#include "topic/dead/letter_producer.hpp"

namespace lightq::broker {
namespace {

using protocol::BrokerType;
using testing::HasSubstr;

class LetterProducerTest : public TopicRuntimeTest {
 protected:
  explicit LetterProducerTest(BrokerType type = BrokerType::file)
      : TopicRuntimeTest({.broker_type = type, .ring_bytes = limits::ring_bytes_min}) {}
  ~LetterProducerTest() override { producer.reset(); }

  /// Opens the producer, and waits until it may take letters.
  void open_producer() {
    LetterProducer::Reports reports{.settled = [this](std::uint64_t expected) { settled = expected; },
                                    .refused =
                                        [this](std::uint64_t number, const Error& reason) {
                                          refused = number;
                                          why = reason.message;
                                        },
                                    .ended =
                                        [this](const Error& reason) {
                                          is_ended = true;
                                          why = reason.message;
                                        }};
    producer = std::make_unique<LetterProducer>(*topic, 77, room, std::move(reports));
    producer->open();
    ASSERT_TRUE(run_until([this] { return settled.has_value(); }));
    settled.reset();
  }
  static NumberedLetter letter_of(std::uint64_t number, std::size_t bytes) {
    const std::string payload(bytes, 'x');
    const DeathAccount death{.topic = "source", .group = "group", .incarnation = 7, .offset = {number}};
    return {number, DeadLetter::of(AttributesView(), as_byte_view(payload), death).value_or_throw()};
  }

  LetterRoom room{4 * limits::MiB};
  std::unique_ptr<LetterProducer> producer;
  std::optional<std::uint64_t> settled;
  std::optional<std::uint64_t> refused;
  bool is_ended = false;
  std::string why;
};

TEST_F(LetterProducerTest, ALongLetterIsRefusedAlsoBesideOthers) {
  set_message_bytes_max(2000);
  open_producer();
  std::vector<NumberedLetter> letters;
  letters.push_back(letter_of(1, 10));
  letters.push_back(letter_of(2, 3000));
  letters.push_back(letter_of(3, 10));
  producer->take(std::move(letters));
  ASSERT_TRUE(run_until([this] { return refused.has_value() || settled.has_value(); }));
  EXPECT_EQ(refused, 2U);
  EXPECT_THAT(why, HasSubstr("message_bytes_max"));
  EXPECT_EQ(topic->store().next_offset().value, 1U);
}

TEST_F(LetterProducerTest, WithoutMemoryForALetterItEnds) {
  if (!test::NoMemory::is_possible) GTEST_SKIP() << "sanitizers need address space without end";
  set_message_bytes_max(64 * limits::MiB);
  open_producer();
  std::vector<NumberedLetter> letters;
  letters.push_back(letter_of(1, 32 * limits::MiB));
  {
    const test::NoMemory none;
    producer->take(std::move(letters));
  }
  EXPECT_TRUE(is_ended);
  EXPECT_THAT(why, HasSubstr("not enough memory"));
  EXPECT_EQ(topic->store().next_offset().value, 0U);
}

class QueueInletTest : public LetterProducerTest {
 protected:
  QueueInletTest() : LetterProducerTest(BrokerType::queue) {}
};

TEST_F(QueueInletTest, LettersOfMoreThanTheTopicHoldsAreNotRefused) {
  open_producer();
  std::vector<NumberedLetter> letters;
  for (std::uint64_t number = 1; number <= 10; ++number) letters.push_back(letter_of(number, 20'000));
  producer->take(std::move(letters));
  ASSERT_TRUE(run_until([this] { return is_ended || settled.has_value(); }));
  EXPECT_EQ(settled, 11U);
  EXPECT_EQ(topic->stats().refused, 0U);
}

TEST_F(QueueInletTest, ConsumersGetTheLettersThatFoundSpaceWhileOthersWaitForIt) {
  open_producer();
  test::FakeConsumer consumer;
  ASSERT_EQ(topic->open_consumer(test::asked("workers", GroupMode::group), consumer).code, ClientError::none);
  for (int i = 0; i < 5; ++i) turn(std::chrono::milliseconds(1));
  std::vector<NumberedLetter> letters;
  for (std::uint64_t number = 1; number <= 10; ++number) letters.push_back(letter_of(number, 20'000));
  producer->take(std::move(letters));
  EXPECT_TRUE(run_until([&] { return !consumer.frames.empty(); }));
  EXPECT_FALSE(settled.has_value());
  topic->detach_consumer(consumer);
}

class DirectInletTest : public LetterProducerTest {
 protected:
  DirectInletTest() : LetterProducerTest(BrokerType::direct) {}
};

TEST_F(DirectInletTest, WithoutAConsumerADirectTopicTakesNoLetters) {
  open_producer();
  std::vector<NumberedLetter> letters;
  letters.push_back(letter_of(1, 10));
  producer->take(std::move(letters));
  ASSERT_TRUE(run_until([this] { return is_ended || settled.has_value(); }));
  EXPECT_TRUE(is_ended);
  EXPECT_THAT(why, HasSubstr("nobody is connected"));
  EXPECT_EQ(topic->store().next_offset().value, 0U);
}

TEST_F(DirectInletTest, WithAConsumerADirectTopicTakesLetters) {
  open_producer();
  test::FakeConsumer consumer;
  ASSERT_EQ(topic->open_consumer(test::asked("workers", GroupMode::group), consumer).code, ClientError::none);
  std::vector<NumberedLetter> letters;
  letters.push_back(letter_of(1, 10));
  producer->take(std::move(letters));
  ASSERT_TRUE(run_until([this] { return is_ended || settled.has_value(); }));
  EXPECT_EQ(settled, 2U);
  topic->detach_consumer(consumer);
}

}  // namespace
}  // namespace lightq::broker
