/// Tests of a session producer whose program writes messages directly into the send buffer.
#include <lightq/producer.hpp>

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>

#include "session_fixture.hpp"

namespace lightq::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Payloads = std::vector<std::string>;

TEST_F(SessionProducerTest, WritesAMessageDirectlyIntoTheSendBuffer) {
  options.eager_batches = 0;
  Producer producer = make();
  connect(producer);
  const auto writes = [](const std::string& text) {
    return [text](std::span<std::byte> to) { std::memcpy(to.data(), text.data(), text.size()); };
  };
  EXPECT_EQ(*producer.send("before"), 0U);
  EXPECT_EQ(*producer.send_in_place(5, writes("first")), 1U);
  EXPECT_EQ(*producer.send_in_place(0, [](std::span<std::byte> to) { EXPECT_TRUE(to.empty()); }), 2U);
  std::vector<Fate> told_last;
  EXPECT_EQ(*producer.send_in_place(4, writes("last"), {},
                                    [&](Fate fate, const Error*) { told_last.push_back(fate); }),
            3U);
  const auto sent = producer.send_in_place(5, writes("keyed"), {.key = "tea"});  // begins another batch
  EXPECT_EQ(*sent, 4U);
  EXPECT_EQ(next_batch(producer).payloads, (Payloads{"before", "first", "", "last"}));
  EXPECT_THAT(told_last, IsEmpty());
  confirm(4);
  EXPECT_TRUE(until(producer, [&] { return producer.confirmed() == 4; }));
  EXPECT_THAT(told_last, ElementsAre(Fate::confirmed));
}

TEST_F(SessionProducerTest, AcceptsNoMessageIfItsWriterThrows) {
  options.eager_batches = 0;
  Producer producer = make();
  connect(producer);
  const auto fail = [](std::span<std::byte>) { throw std::runtime_error("cannot be written"); };
  EXPECT_THROW(static_cast<void>(producer.send_in_place(10, fail)), std::runtime_error);
  ASSERT_TRUE(producer.send("a").ok());
  EXPECT_THROW(static_cast<void>(producer.send_in_place(10, fail)), std::runtime_error);
  int called = 0;
  EXPECT_THROW(static_cast<void>(producer.send_in_place(10, fail, {}, [&](Fate, const Error*) { ++called; })),
               std::runtime_error);
  EXPECT_EQ(*producer.send("b"), 1U);
  EXPECT_EQ(producer.stats().sent, 2U);
  EXPECT_FALSE(producer.flush(Timeout(0)).ok()) << "not confirmed yet";
  EXPECT_EQ(next_batch(producer).payloads, (Payloads{"a", "b"}));
  confirm(2);
  EXPECT_TRUE(producer.flush(Timeout(5000)).ok());
  EXPECT_EQ(called, 0);
}

TEST_F(SessionProducerTest, RefusesLengthsThatNoMessageCanHaveBeforeAnythingIsWritten) {
  Producer producer = make();
  connect(producer);
  const auto never = [](std::span<std::byte>) { FAIL(); };
  ASSERT_TRUE(producer.send("before").ok());
  // With a record's own bytes added, the last of these lengths wrap around.
  for (const std::size_t bytes : {std::size_t{limits::message_bytes_max_max} + 1, std::size_t{UINT32_MAX},
                                  SIZE_MAX / 2, SIZE_MAX - 4, SIZE_MAX - 3, SIZE_MAX - 1, SIZE_MAX}) {
    EXPECT_EQ(producer.send_in_place(bytes, never).error().code, ErrorCode::too_large) << bytes;
    EXPECT_EQ(producer.send_in_place(bytes, never, {.key = "tea"}).error().code, ErrorCode::too_large)
        << bytes;
  }
  ASSERT_TRUE(producer.send("behind").ok());
  EXPECT_EQ(next_batch(producer).payloads, Payloads{"before"});
  EXPECT_EQ(next_batch(producer).payloads, Payloads{"behind"});
}

TEST_F(SessionProducerTest, RefusesHeadersOfTheBrokerBeforeAnythingIsSent) {
  Producer producer = make();
  connect(producer);
  const std::vector<Header> reserved = {{"trace", "1"}, {"lightq-dead-cause", "expired"}};
  const std::vector<Header> harmless = {{"lightq-dea", "1"}, {"x-lightq-dead-cause", "lightq-dead-"}};
  ASSERT_TRUE(producer.send("before").ok());
  const auto refused = producer.send("letter", {.headers = reserved});
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(refused.error().text(),
              ::testing::HasSubstr("only the broker sets headers that begin with lightq-dead-"));
  const auto never = [](std::span<std::byte>) { FAIL(); };
  EXPECT_EQ(producer.send_in_place(1, never, {.headers = reserved}).error().code,
            ErrorCode::invalid_argument);
  ASSERT_TRUE(producer.send("behind", {.headers = harmless}).ok()) << "the producer goes on";
  EXPECT_EQ(next_batch(producer).payloads, Payloads{"before"});
  EXPECT_EQ(next_batch(producer).payloads, Payloads{"behind"});
}

TEST_F(SessionProducerTest, ReportsAFailureToAFlushAfterAWriterThatTriedToFlush) {
  options.retry_refused = false;
  Producer producer = make();
  connect(producer);
  ASSERT_TRUE(producer.send("refused").ok());
  EXPECT_EQ(next_batch(producer).payloads, Payloads{"refused"});
  peer.say(session::Refuse{0, 1, 0, session::Code::limit_reached, "the topic is full"}, channel, 0);
  EXPECT_TRUE(until(producer, [&] { return producer.stats().refused == 1; }));
  const auto flushes = [&](std::span<std::byte>) {
    EXPECT_EQ(producer.flush(Timeout(0)).error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(producer.wait_settled(0, Timeout(0)).error().code, ErrorCode::invalid_argument);
  };
  ASSERT_TRUE(producer.send_in_place(1, flushes).ok());
  EXPECT_THAT(producer.flush(Timeout(0)).error().text(), ::testing::HasSubstr("the topic is full"));
}

TEST_F(SessionProducerTest, CannotBeUsedByTheWriterOfAMessage) {
  options.batch_bytes = 4096;
  Producer producer = make();
  connect(producer);
  const std::string text(1500, 'x');
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(producer.send(text).ok());
  int refused = 0;
  const auto misuse = [&](std::span<std::byte> to) {
    const auto expect_refused = [&](ErrorCode code) { refused += code == ErrorCode::invalid_argument; };
    expect_refused(producer.send("small").error().code);
    expect_refused(producer.send(text).error().code);
    expect_refused(producer.send_in_place(1, [](std::span<std::byte>) { FAIL(); }).error().code);
    expect_refused(producer.send(text, {.key = "tea"}).error().code);
    expect_refused(producer.flush(Timeout(10)).error().code);
    expect_refused(producer.poll(Timeout(10)).error().code);
    expect_refused(producer.wait_open(Timeout(10)).error().code);
    expect_refused(producer.close(Timeout(10)).error().code);
    std::fill(to.begin(), to.end(), std::byte{'y'});
  };
  EXPECT_EQ(*producer.send_in_place(100, misuse), 2U);
  EXPECT_EQ(*producer.send_in_place(100, misuse, {.key = "coffee"}), 3U);
  EXPECT_EQ(refused, 16);
  EXPECT_EQ(*producer.send("behind"), 4U);
  EXPECT_FALSE(producer.flush(Timeout(0)).ok());
  Payloads came;
  while (came.size() < 5) {
    const TakenBatch batch = next_batch(producer);
    came.insert(came.end(), batch.payloads.begin(), batch.payloads.end());
    confirm(came.size());
  }
  EXPECT_EQ(came, (Payloads{text, text, std::string(100, 'y'), std::string(100, 'y'), "behind"}));
}

}  // namespace
}  // namespace lightq::test
