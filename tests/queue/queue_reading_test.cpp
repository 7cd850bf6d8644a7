/// Tests the readers of the embedded queue: batches, ranges, pins, positions, waiting.
#include <atomic>
#include <optional>
#include <thread>

#include "queue/queue_support.hpp"

namespace lightq::test {
namespace {

template <typename Messages>
std::vector<std::string> texts(const Messages& messages) {
  std::vector<std::string> all;
  for (const QueuedMessage& message : messages) all.emplace_back(message.text());
  return all;
}

TEST_F(QueueTest, ReadsAWholeBatchWithoutCopying) {
  Queue queue = open();
  const std::vector<std::string_view> strings = {"0", "1", "2", "3", "4"};
  queue.enqueue(std::span<const std::string_view>(strings)).value_or_throw();
  auto reader = queue.reader().value_or_throw();
  EXPECT_EQ(numbers(0, 2), texts(reader.next_batch(2).value_or_throw()));
  EXPECT_EQ(Offset{2}, reader.position());
  EXPECT_EQ("2", reader.next().value_or_throw()->text());
  const auto rest = reader.next_batch().value_or_throw();
  EXPECT_EQ(numbers(3, 5), texts(rest));
  // The payloads lie one record after the other, as in the file.
  const ByteView first = rest.front().payload;
  EXPECT_EQ(first.data() + first.size() + sizeof(std::uint32_t), (*++rest.begin()).payload.data());
  EXPECT_TRUE(reader.next_batch().value_or_throw().empty());
  EXPECT_TRUE(reader.next_batch(0).value_or_throw().empty());
}

TEST_F(QueueTest, ReadsTheOpenBatchWhileItGrows) {
  Queue queue = open();
  auto reader = queue.reader().value_or_throw();
  for (int i = 0; i < 20'000; ++i) {
    queue.enqueue(std::to_string(i)).value_or_throw();
    const auto message = reader.next().value_or_throw();
    ASSERT_TRUE(message) << i;
    ASSERT_EQ(std::to_string(i), message->text());
    ASSERT_FALSE(reader.next().value_or_throw());
    if (i % 997 == 0) {
      ASSERT_TRUE(queue.flush().ok());
    }
  }
}

TEST_F(QueueTest, PeekingDoesNotMoveOn) {
  Queue queue = open();
  enqueue_numbers(queue, 0, 3);
  auto reader = queue.reader().value_or_throw();
  EXPECT_EQ("0", reader.peek().value_or_throw()->text());
  EXPECT_EQ(Offset{0}, reader.position());
  EXPECT_EQ("0", reader.next().value_or_throw()->text());
  EXPECT_EQ("1", reader.peek().value_or_throw()->text());
  EXPECT_EQ(numbers(1, 3), texts(reader.next_batch().value_or_throw()));
}

TEST_F(QueueTest, ReadsARangeOverManySegments) {
  Queue queue = open({.segment_bytes = 4 * limits::KiB});
  enqueue_numbers(queue, 0, 5000, "message ");
  ASSERT_LT(10U, queue.stats().segments);
  auto reader = queue.reader().value_or_throw();
  EXPECT_EQ(numbers(100, 4900, "message "), texts(reader.range(Offset{100}, Offset{4900}).value_or_throw()));
  EXPECT_EQ(Offset{4900}, reader.position());
  EXPECT_EQ("message 4900", reader.next().value_or_throw()->text());
  EXPECT_TRUE(reader.range(Offset{7}, Offset{7}).value_or_throw().empty());
  EXPECT_EQ(numbers(4990, 5000, "message "),
            texts(reader.range(Offset{4990}, Offset{6000}).value_or_throw()));
  EXPECT_EQ(Offset{5000}, reader.position());
}

TEST_F(QueueTest, ARangeBeforeTheOldestMessageSkipsNothing) {
  Queue queue = open({.segment_bytes = 4 * limits::KiB, .segment_messages_max = 10});
  enqueue_numbers(queue, 0, 40);
  ASSERT_TRUE(queue.trim(Offset{20}).ok());
  auto reader = queue.reader().value_or_throw();
  EXPECT_TRUE(reader.range(Offset{5}, Offset{15}).value_or_throw().empty());
  EXPECT_EQ("20", reader.next().value_or_throw()->text());
  EXPECT_EQ(numbers(20, 25), texts(reader.range(Offset{5}, Offset{25}).value_or_throw()));
  EXPECT_EQ("25", reader.next().value_or_throw()->text());
}

TEST_F(QueueTest, ARangePastTheEndLeavesTheReaderAtTheEnd) {
  Queue queue = open();
  enqueue_numbers(queue, 0, 3);
  auto reader = queue.reader().value_or_throw();
  EXPECT_TRUE(reader.range(Offset{100}, Offset{200}).value_or_throw().empty());
  EXPECT_EQ(Offset{3}, reader.position());
  queue.enqueue("3").value_or_throw();
  EXPECT_EQ("3", reader.next().value_or_throw()->text());
}

TEST_F(QueueTest, PinsStayValidDuringRandomOperations) {
  std::optional<Queue> queue = open({.segment_bytes = 4 * limits::KiB, .drop_committed = false});
  std::vector<std::string> expected;
  for (std::uint64_t i = 0; i < 40; ++i) {
    expected.push_back(text_of(1000, i));
    queue->enqueue(expected.back()).value_or_throw();
  }
  std::vector<QueuedMessage> messages;
  std::vector<Pin> pins;
  auto reader = std::optional(queue->reader().value_or_throw());
  while (const auto message = reader->next().value_or_throw()) {
    messages.push_back(*message);
    pins.push_back(reader->pin());
  }
  reader.reset();
  ASSERT_TRUE(queue->trim(queue->next_offset()).ok());
  // Trimmed files are recycled by these appends, unless a pin forbids it.
  for (std::uint64_t i = 0; i < 200; ++i) {
    queue->enqueue(text_of(1000, 1000 + i)).value_or_throw();
    ASSERT_TRUE(queue->trim(queue->next_offset()).ok());
  }
  queue.reset();
  for (std::size_t i = 0; i < messages.size(); ++i) ASSERT_EQ(expected[i], messages[i].text()) << i;
}

TEST_F(QueueTest, APinOfARangeKeepsAllOfIt) {
  std::optional<Queue> queue = open({.segment_bytes = 4 * limits::KiB});
  std::vector<std::string> expected;
  for (std::uint64_t i = 0; i < 40; ++i) {
    expected.push_back(text_of(1000, i));
    queue->enqueue(expected.back()).value_or_throw();
  }
  std::vector<QueuedMessage> messages;
  Pin pin;
  {
    auto reader = queue->reader().value_or_throw();
    const auto range = reader.range(Offset{0}, Offset{40}).value_or_throw();
    messages.assign(range.begin(), range.end());
    pin = reader.pin();
    EXPECT_FALSE(reader.next().value_or_throw());
  }
  ASSERT_TRUE(queue->trim(queue->next_offset()).ok());
  for (std::uint64_t i = 0; i < 200; ++i) {
    queue->enqueue(text_of(1000, 1000 + i)).value_or_throw();
    ASSERT_TRUE(queue->trim(queue->next_offset()).ok());
  }
  queue.reset();
  ASSERT_EQ(40U, messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) ASSERT_EQ(expected[i], messages[i].text()) << i;
}

TEST_F(QueueTest, AReaderInADroppedSegmentReadsOn) {
  Queue queue = open({.segment_bytes = 4 * limits::KiB});
  for (std::uint64_t i = 0; i < 40; ++i) queue.enqueue(text_of(1000, i)).value_or_throw();
  auto reader = queue.reader().value_or_throw();
  EXPECT_EQ(text_of(1000, 0), reader.next().value_or_throw()->text());
  ASSERT_TRUE(queue.trim(queue.next_offset()).ok());
  EXPECT_EQ(text_of(1000, 1), reader.next().value_or_throw()->text());
  // The reader continues with the oldest kept message.
  std::uint64_t last = 1;
  while (const auto message = reader.next().value_or_throw()) {
    EXPECT_LT(last, message->offset.value);
    EXPECT_EQ(text_of(1000, message->offset.value), message->text());
    last = message->offset.value;
  }
  EXPECT_EQ(39U, last);
}

TEST_F(QueueTest, SeeksToFirstNextAndAnyOffset) {
  Queue queue = open({.segment_bytes = 4 * limits::KiB});
  enqueue_numbers(queue, 0, 3000);
  auto reader = queue.reader(Start::next()).value_or_throw();
  EXPECT_FALSE(reader.next().value_or_throw());
  queue.enqueue("3000").value_or_throw();
  EXPECT_EQ("3000", reader.next().value_or_throw()->text());
  for (const std::uint64_t offset : {2999U, 0U, 1U, 1500U, 1499U}) {
    ASSERT_TRUE(reader.seek(Start::at(Offset{offset})).ok());
    EXPECT_EQ(Offset{offset}, reader.position());
    EXPECT_EQ(std::to_string(offset), reader.next().value_or_throw()->text());
  }
  ASSERT_TRUE(reader.seek(Start::at(Offset{9'999'999})).ok());
  EXPECT_EQ(Offset{3001}, reader.position());
  ASSERT_TRUE(queue.trim(Offset{1000}).ok());
  const Offset oldest = queue.first_offset();
  ASSERT_LT(Offset{0}, oldest);
  ASSERT_TRUE(reader.seek(Start::first()).ok());
  EXPECT_EQ(oldest, reader.position());
  ASSERT_TRUE(reader.seek(Start::at(Offset{0})).ok());
  EXPECT_EQ(oldest, reader.next().value_or_throw()->offset);
  EXPECT_EQ(ErrorCode::invalid_argument, reader.seek(Start::copy_of("nobody")).error().code);
}

TEST_F(QueueTest, SeeksToATime) {
  const auto check = [](Queue& queue, const std::vector<Timestamp>& times) {
    auto reader = queue.reader().value_or_throw();
    for (std::size_t i = 0; i < times.size(); ++i) {
      // The expected message is the first one with this time or a later one.
      const auto first =
          std::find_if(times.begin(), times.end(), [&](Timestamp time) { return times[i] <= time; });
      ASSERT_TRUE(reader.seek(Start::at(times[i])).ok());
      ASSERT_EQ(static_cast<std::uint64_t>(first - times.begin()), reader.position().value) << i;
    }
    ASSERT_TRUE(reader.seek(Start::at(Timestamp{0})).ok());
    EXPECT_EQ(Offset{0}, reader.position());
    ASSERT_TRUE(reader.seek(Start::at(Timestamp{times.back().us + 1})).ok());
    EXPECT_EQ(queue.next_offset(), reader.position());
  };
  const QueueOptions options{.segment_bytes = 4 * limits::KiB};
  std::vector<Timestamp> times;
  {
    Queue queue = open(options);
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin < 60ms) {
      queue.enqueue(text_of(100, 1)).value_or_throw();
      if (queue.next_offset().value % 16 == 0) {
        ASSERT_TRUE(queue.flush().ok());
      }
    }
    auto reader = queue.reader().value_or_throw();
    while (const auto message = reader.next().value_or_throw()) times.push_back(message->time);
    ASSERT_LT(times.front(), times.back());
    check(queue, times);
  }
  Queue queue = open(options);
  check(queue, times);
}

TEST_F(QueueTest, WaitReturnsImmediatelyIfThereIsAMessage) {
  Queue queue = open();
  auto reader = queue.reader().value_or_throw();
  EXPECT_FALSE(reader.wait(0ms));
  EXPECT_FALSE(reader.wait(1ms));
  queue.enqueue("0").value_or_throw();
  EXPECT_TRUE(reader.wait(0ms));
  EXPECT_EQ("0", reader.next().value_or_throw()->text());
  EXPECT_FALSE(reader.wait(0ms));
}

/// One thread enqueues on request and another one waits for the message, many times.
void ping_pong(Queue& queue, int rounds) {
  std::atomic<int> received = 0;
  std::atomic<bool> failed = false;
  std::thread consumer([&] {
    auto reader = queue.reader().value_or_throw();
    for (int i = 0; i < rounds; ++i) {
      if (!reader.wait(10s) || reader.next().value_or_throw()->text() != std::to_string(i)) {
        failed = true;
        received.store(rounds + 1);
        received.notify_all();
        return;
      }
      received.store(i + 1);
      received.notify_all();
    }
  });
  for (int i = 0; i < rounds && !failed; ++i) {
    queue.enqueue(std::to_string(i)).value_or_throw();
    while (received.load() <= i && !failed) received.wait(i);
  }
  consumer.join();
  EXPECT_FALSE(failed) << "a reader slept past a message";
}

TEST_F(QueueTest, WaitsForeverOnRequest) {
  Queue queue = open();
  auto reader = queue.reader().value_or_throw();
  std::atomic<bool> waits = false;
  std::thread writer([&] {
    waits.wait(false);
    queue.enqueue("0").value_or_throw();
  });
  waits = true;
  waits.notify_one();
  EXPECT_TRUE(reader.wait(std::chrono::milliseconds::max()));
  writer.join();
  EXPECT_TRUE(queue.flush().ok());
  EXPECT_TRUE(queue.wait_durable(Offset{1}, std::chrono::milliseconds::max()).value_or_throw());
}

TEST_F(QueueTest, AWaitingReaderIsWokenByEachMessage) {
  Queue queue = open();
  ping_pong(queue, 20'000);
}

TEST_F(QueueTest, AWaitingReaderIsWokenByEachWrittenBatch) {
  Queue queue = open({.flush = FlushPolicy::every_bytes(limits::MiB)});
  ping_pong(queue, 5'000);
}

}  // namespace
}  // namespace lightq::test
