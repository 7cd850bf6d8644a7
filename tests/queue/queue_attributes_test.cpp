/// Tests messages with keys, headers and times in an embedded queue, and batches that the queue does not
/// read.
#include <lightq/base/compression.hpp>

#include "log/segment_log/segment_log.hpp"
#include "log/storage/posix_storage.hpp"
#include "queue/queue_support.hpp"

namespace lightq::test {
namespace {

class QueueAttributesTest : public QueueTest {
 protected:
  static constexpr int messages = 100;
  /// Adds 100 messages in one batch. Every third one has a key. Other batches have no keys.
  static void fill(Queue& queue) {
    const Header headers[] = {{"kind", "json"}};
    BatchBuilder batch;
    for (int i = 0; i < messages; ++i) {
      const std::string key = "key " + std::to_string(i);
      const Attributes some{.key = key, .headers = headers, .time = {i + 1}};
      batch.add(as_byte_view(std::to_string(i)), i % 3 == 0 ? some : Attributes{});
    }
    queue.enqueue(batch).value_or_throw();
    queue.enqueue(std::to_string(messages)).value_or_throw();
  }
  static void expect_is(const QueuedMessage& message, int i) {
    ASSERT_EQ(std::to_string(i), message.text());
    const bool some = i % 3 == 0 && i < messages;
    ASSERT_EQ(some ? "key " + std::to_string(i) : "", message.attributes().key());
    ASSERT_EQ(some ? std::optional<std::string_view>("json") : std::nullopt,
              message.attributes().header("kind"));
    ASSERT_EQ(Timestamp{some ? i + 1 : 0}, message.attributes().time());
  }
};

TEST_F(QueueAttributesTest, SurviveEveryWayOfReading) {
  for (const bool again : {false, true}) {
    Queue queue = open();
    if (!again) fill(queue);
    QueueReader one = queue.reader(Start::first()).value_or_throw();
    for (int i = 0; i <= messages; ++i) expect_is(*one.next().value_or_throw(), i);
    QueueReader many = queue.reader(Start::at(Offset{10})).value_or_throw();
    int at = 10;
    while (at <= messages) {
      const auto batch = many.next_batch(7).value_or_throw();
      ASSERT_FALSE(batch.empty());
      for (const QueuedMessage& message : batch) expect_is(message, at++);
    }
    at = 5;
    for (const QueuedMessage& message : many.range(Offset{5}, Offset{messages + 1}).value_or_throw())
      expect_is(message, at++);
    EXPECT_EQ(messages + 1, at);
    queue.close().value_or_throw();
  }
}

TEST_F(QueueAttributesTest, CountAsBytesOfTheirMessage) {
  QueueOptions options;
  options.message_bytes_max = 100;
  Queue queue = open(options);
  const std::string key(99, 'k');
  BatchBuilder batch;
  batch.add(as_byte_view(""), {.key = key});
  EXPECT_EQ(ErrorCode::too_large, queue.enqueue(batch).error().code) << "two bytes say how long it is";
  batch.clear();
  batch.add(as_byte_view(""), {.key = std::string_view(key).substr(1)});
  EXPECT_TRUE(queue.enqueue(batch));
}

TEST_F(QueueAttributesTest, ABatchThatAMessageCouldNotBeAddedToIsRefused) {
  Queue queue = open();
  const std::string key(limits::key_bytes_max + 1, 'k');
  BatchBuilder batch;
  batch.add(as_byte_view("one"), {.key = key});
  EXPECT_EQ(ErrorCode::invalid_argument, queue.enqueue(batch).error().code) << "too long";
  batch.clear();
  batch.add(as_byte_view("one"));
  batch.add(as_byte_view("two"), {.key = "tea"});
  EXPECT_EQ(ErrorCode::invalid_argument, queue.enqueue(batch).error().code)
      << "a kind that the first has not";
  batch.clear();
  batch.add(as_byte_view("one"), {.key = "tea"});
  batch.add(as_byte_view("\xff\x03 bare"));
  EXPECT_EQ(Offset{0}, queue.enqueue(batch).value_or_throw());
  EXPECT_EQ("tea", queue.dequeue().value_or_throw()->attributes().key());
  EXPECT_EQ("\xff\x03 bare", queue.dequeue().value_or_throw()->text());
}

std::vector<std::byte> compressed(int from, int to) {
  BatchBuilder batch;
  for (int i = from; i < to; ++i) batch.add(as_byte_view("the same words " + std::to_string(i)));
  Compressor compressor;
  batch.replace_records(Codec::lz4, compressor.compress(Codec::lz4, batch.records()).value());
  const auto bytes = batch.finish();
  return {bytes.begin(), bytes.end()};
}

TEST_F(QueueAttributesTest, ACompressedBatchIsRefused) {
  Queue queue = open();
  BatchBuilder batch;
  for (int i = 0; i < 50; ++i) batch.add(as_byte_view("the same words " + std::to_string(i)));
  Compressor compressor;
  batch.replace_records(Codec::zstd, compressor.compress(Codec::zstd, batch.records()).value());
  EXPECT_EQ(ErrorCode::invalid_argument, queue.enqueue(batch).error().code);
  EXPECT_EQ(Offset{0}, queue.next_offset());
}

// Only a topic's log has compressed batches. A program that opens the log as a queue gets an error for the
// batch, and then reads the messages behind it.
TEST_F(QueueAttributesTest, ACompressedBatchOfATopicIsReportedAndSkipped) {
  {
    log::PosixStorage storage;
    log::SegmentPool pool({directory + ".pool"}, storage);
    auto log = log::SegmentLog::open({.directory = directory}, storage, pool, {}).value_or_throw();
    auto batch = compressed(0, 50);
    ASSERT_EQ(log::AppendOutcome::appended, log->append(batch, {1}).outcome);
    BatchBuilder plain;
    plain.add(as_byte_view("plain"));
    ASSERT_EQ(log::AppendOutcome::appended, log->append(plain.finish(), {2}).outcome);
    log->close().value_or_throw();
  }
  Queue queue = open();
  QueueReader reader = queue.reader(Start::first()).value_or_throw();
  const auto refused = reader.next();
  ASSERT_FALSE(refused);
  EXPECT_EQ(ErrorCode::not_supported, refused.error().code);
  EXPECT_NE(std::string::npos, refused.error().message.find("is compressed")) << refused.error().message;
  const auto next = reader.next().value_or_throw();
  ASSERT_TRUE(next);
  EXPECT_EQ(Offset{50}, next->offset);
  EXPECT_EQ("plain", next->text());
}

}  // namespace
}  // namespace lightq::test
