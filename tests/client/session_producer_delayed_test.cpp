/// Tests of a session producer of delayed messages with a correct broker, and with an older one.
#include <lightq/producer.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "session_fixture.hpp"

namespace lightq::test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DelayedProducerTest : public SessionProducerTest {
 protected:
  DelayedProducerTest() {
    options.delayed = true;
    opened.target = session::ProduceTarget::schedule;
  }
  Producer make_delayed() {
    Producer producer = make();
    producer.on_report([this](const SendReport& report) {
      for (std::uint64_t message = report.begin; message < report.end; ++message)
        numbers.push_back(report.number ? std::optional(*report.number + message - report.begin)
                                        : std::nullopt);
    });
    return producer;
  }
  /// Returns the due times of a batch; empty if it has none.
  static std::vector<std::int64_t> dues_of(const TakenBatch& batch) {
    const BatchView view = BatchView::trusted(batch.bytes.data());
    std::vector<std::int64_t> dues;
    if (!view.kinds().has(AttributeKinds::dues)) return dues;
    for (auto record = view.records(); !record.done(); record.next())
      dues.push_back(record.attributes().due());
    return dues;
  }
  void confirm_at(std::uint64_t received, std::uint64_t flushed, std::uint64_t next) {
    peer.say(session::Confirm{received, flushed, next}, channel, 0);
  }

  std::vector<std::optional<std::uint64_t>> numbers;
};

TEST_F(DelayedProducerTest, OpensTheSchedule) {
  Producer producer = make();
  EXPECT_EQ(connect(producer).target, session::ProduceTarget::schedule);
  EXPECT_EQ(producer.opened()->target, session::ProduceTarget::schedule);
}

TEST_F(DelayedProducerTest, GivesEachMessageADueTime) {
  Producer producer = make();
  connect(producer);
  ASSERT_TRUE(producer.send("at once").ok());
  ASSERT_TRUE(producer.send("in ten minutes", {.delay = 10min}).ok());
  const TakenBatch first = next_batch(producer);
  EXPECT_THAT(first.payloads, ElementsAre("at once"));
  EXPECT_THAT(dues_of(first), ElementsAre(0));
  EXPECT_THAT(dues_of(next_batch(producer)), ElementsAre(-600'000'000));
  ASSERT_TRUE(producer.send("then", {.key = "k", .deliver_at = {1'000'000}, .id = "order 7"}).ok());
  ASSERT_TRUE(
      producer.send_in_place(4, [](std::span<std::byte> to) { std::ranges::fill(to, std::byte{'x'}); }).ok());
  confirm(1);
  const TakenBatch both = next_batch(producer);
  EXPECT_THAT(both.payloads, ElementsAre("then", "xxxx"));
  EXPECT_THAT(dues_of(both), ElementsAre(1'000'000, 0));
  EXPECT_EQ(BatchView::trusted(both.bytes.data()).records().attributes().id(), "order 7");
}

TEST_F(DelayedProducerTest, RefusesADueTimeTooFarAhead) {
  Producer producer = make();
  connect(producer);
  const auto refused = [&](const Attributes& attributes) {
    const auto sent = producer.send("m", attributes);
    return sent ? ErrorCode::internal : sent.error().code;
  };
  const std::int64_t now = std::chrono::duration_cast<std::chrono::microseconds>(
                               std::chrono::system_clock::now().time_since_epoch())
                               .count();
  EXPECT_EQ(refused({.deliver_at = {now + limits::delay_us_max + 60'000'000}}), ErrorCode::invalid_argument);
  EXPECT_EQ(refused({.delay = std::chrono::microseconds(limits::delay_us_max + 1)}),
            ErrorCode::invalid_argument);
  EXPECT_EQ(refused({.delay = -1us}), ErrorCode::invalid_argument);
  EXPECT_EQ(refused({.delay = 1s, .id = std::string_view("\0", 1)}), ErrorCode::internal)
      << "any bytes are an id";
  EXPECT_EQ(producer.unconfirmed(), 1U);
}

TEST_F(DelayedProducerTest, ReportsTheNumbersOfItsMessages) {
  opened.expected = 5;
  Producer producer = make_delayed();
  connect(producer);
  for (const char* text : {"a", "b", "c", "d"}) ASSERT_TRUE(producer.send(text).ok());
  next_batch(producer);
  next_batch(producer);
  confirm_at(6, 0, 101);  // another producer has stored 101 to 109 meanwhile
  confirm_at(7, 0, 111);
  next_batch(producer);
  confirm_at(9, 0, 120);
  EXPECT_TRUE(until(producer, [&] { return producer.confirmed() == 4; }));
  EXPECT_THAT(numbers, ElementsAre(100, 110, 118, 119));
}

TEST_F(DelayedProducerTest, LearnsNumbersBeforeTheMessagesAreFlushed) {
  opened.level = ConfirmLevel::flushed;
  Producer producer = make_delayed();
  connect(producer);
  ASSERT_TRUE(producer.send("a").ok());
  ASSERT_TRUE(producer.send("b").ok());
  next_batch(producer);
  next_batch(producer);
  confirm_at(1, 0, 8);
  confirm_at(2, 0, 20);
  EXPECT_TRUE(is_quiet(producer));
  EXPECT_EQ(producer.confirmed(), 0U);
  confirm_at(2, 2, 20);
  EXPECT_TRUE(until(producer, [&] { return producer.confirmed() == 2; }));
  EXPECT_THAT(numbers, ElementsAre(7, 19));
}

TEST_F(DelayedProducerTest, DoesNotGuessTheNumbersOfAnEarlierChannel) {
  opened.level = ConfirmLevel::flushed;
  Producer producer = make_delayed();
  connect(producer);
  ASSERT_TRUE(producer.send("a").ok());
  next_batch(producer);
  peer.close();
  clock.advance(Timeout(10'000));
  opened.expected = 1;  // the broker has the message, and its confirm was lost
  opened.next_offset = 50;
  connect(producer);
  confirm_at(1, 1, 50);
  EXPECT_TRUE(until(producer, [&] { return producer.confirmed() == 1; }));
  EXPECT_THAT(numbers, ElementsAre(std::nullopt));
}

TEST_F(DelayedProducerTest, FailsIfTheBrokerKnowsNoSchedules) {
  Producer producer = make();
  greet(producer);
  const auto frame = next_frame(producer);
  peer.say(session::ErrorAnswer{session::Code::invalid_frame, "reserved bytes must be zero"}, 0,
           frame.header.request);
  EXPECT_TRUE(until(producer, [&] { return producer.state() == SessionState::failed; }));
  EXPECT_EQ(producer.last_error().code, ErrorCode::not_supported);
  EXPECT_THAT(producer.last_error().message, HasSubstr("does not know delayed messages"));
}

TEST_F(DelayedProducerTest, DoesNotSendToAChannelOfTheLog) {
  opened.target = session::ProduceTarget::log;
  Producer producer = make();
  ASSERT_TRUE(producer.send("a").ok());
  greet(producer);
  peer.say(opened, channel, next_frame(producer).header.request);
  EXPECT_TRUE(until(producer, [&] { return producer.stats().violations == 1; }));
}

TEST_F(SessionProducerTest, ADelayNeedsAProducerOfDelayedMessages) {
  Producer producer = make();
  connect(producer);
  const auto sent = producer.send("m", {.delay = 1s});
  ASSERT_FALSE(sent.ok());
  EXPECT_EQ(sent.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(sent.error().message, HasSubstr("ProducerOptions::delayed"));
  EXPECT_EQ(producer.send("m", {.deliver_at = {1}}).error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace lightq::test
