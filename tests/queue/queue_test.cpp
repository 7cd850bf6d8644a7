/// Tests the embedded queue as its users see it: messages in, messages out.
#include <array>
#include <cstdlib>

#include "queue/queue_support.hpp"

namespace lightq::test {
namespace {

/// Runs each test in both ways of writing: through a mapping (no flush rule), and by pwrite.
class EitherQueue : public QueueTest, public testing::WithParamInterface<bool> {
 protected:
  EitherQueue() {
    if (GetParam()) options.flush = FlushPolicy::every_bytes(limits::MiB);
  }
  QueueOptions options;
};

INSTANTIATE_TEST_SUITE_P(Writing, EitherQueue, testing::Bool(),
                         [](const auto& param) { return param.param ? "written" : "mapped"; });

TEST_P(EitherQueue, ReturnsStringsInOrder) {
  Queue queue = open(options);
  EXPECT_TRUE(queue.is_empty().value_or_throw());
  EXPECT_FALSE(queue.dequeue().value_or_throw());
  EXPECT_EQ(Offset{0}, queue.enqueue("first").value_or_throw());
  EXPECT_EQ(Offset{1}, queue.enqueue(std::string("second")).value_or_throw());
  EXPECT_EQ(Offset{2}, queue.enqueue("").value_or_throw());
  EXPECT_FALSE(queue.is_empty().value_or_throw());
  EXPECT_EQ("first", queue.peek().value_or_throw()->text());
  EXPECT_EQ("first", queue.peek().value_or_throw()->text());
  EXPECT_EQ("first", queue.dequeue().value_or_throw()->text());
  const auto second = queue.dequeue().value_or_throw();
  EXPECT_EQ("second", second->text());
  EXPECT_EQ(Offset{1}, second->offset);
  EXPECT_EQ("", queue.dequeue().value_or_throw()->text());
  EXPECT_TRUE(queue.is_empty().value_or_throw());
  EXPECT_FALSE(queue.peek().value_or_throw());
  EXPECT_FALSE(queue.dequeue().value_or_throw());
}

TEST_P(EitherQueue, ReturnsBinaryPayloads) {
  Queue queue = open(options);
  const std::array<std::byte, 5> bytes = {std::byte{0}, std::byte{255}, std::byte{'\n'}, std::byte{0},
                                          std::byte{128}};
  queue.enqueue(ByteView(bytes)).value_or_throw();
  const auto message = queue.dequeue().value_or_throw();
  ASSERT_TRUE(message);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), message->payload.begin(), message->payload.end()));
}

TEST_P(EitherQueue, AppendsBatchesOfStringsBytesAndABuilder) {
  Queue queue = open(options);
  queue.enqueue("0").value_or_throw();
  const std::vector<std::string_view> strings = {"1", "2", "3"};
  EXPECT_EQ(Offset{1}, queue.enqueue(std::span<const std::string_view>(strings)).value_or_throw());
  const std::vector<ByteView> bytes = {as_byte_view("4"), as_byte_view("5")};
  EXPECT_EQ(Offset{4}, queue.enqueue(std::span<const ByteView>(bytes)).value_or_throw());
  queue.enqueue("6").value_or_throw();
  BatchBuilder builder;
  builder.add(as_byte_view("7"));
  builder.add(as_byte_view("8"));
  EXPECT_EQ(Offset{7}, queue.enqueue(builder).value_or_throw());
  builder.clear();
  builder.add(as_byte_view("9"));
  EXPECT_EQ(Offset{9}, queue.enqueue(builder).value_or_throw());
  EXPECT_EQ(Offset{10}, queue.next_offset());
  EXPECT_EQ(numbers(0, 10), drain(queue));
}

TEST_P(EitherQueue, RefusesEmptyAndTooLargeBatches) {
  Queue queue = open(options);
  BatchBuilder builder;
  EXPECT_EQ(ErrorCode::invalid_argument, queue.enqueue(builder).error().code);
  EXPECT_EQ(ErrorCode::invalid_argument, queue.enqueue(std::span<const ByteView>()).error().code);
  const std::vector<std::string_view> many(limits::batch_records_max + 1, "x");
  EXPECT_EQ(ErrorCode::invalid_argument, queue.enqueue(std::span<const std::string_view>(many)).error().code);
  const auto most = std::span<const std::string_view>(many).first(limits::batch_records_max);
  EXPECT_EQ(Offset{0}, queue.enqueue(most).value_or_throw());
  EXPECT_EQ(Offset{limits::batch_records_max}, queue.next_offset());
}

TEST_P(EitherQueue, RefusesMessagesAboveItsLimitInEveryCall) {
  options.message_bytes_max = 100;
  Queue queue = open(options);
  const std::string large(101, 'x');
  EXPECT_EQ(ErrorCode::too_large, queue.enqueue(large).error().code);
  const std::vector<std::string_view> strings = {"small", large};
  EXPECT_EQ(ErrorCode::too_large, queue.enqueue(std::span<const std::string_view>(strings)).error().code);
  BatchBuilder builder;
  builder.add(as_byte_view("small"));
  builder.add(as_byte_view(large));
  EXPECT_EQ(ErrorCode::too_large, queue.enqueue(builder).error().code);
  EXPECT_EQ(Offset{0}, queue.next_offset());
  builder.clear();
  for (int i = 0; i < 3; ++i) builder.add(as_byte_view(std::string_view(large).substr(1)));
  EXPECT_EQ(Offset{0}, queue.enqueue(builder).value_or_throw());
  queue.enqueue(std::string(100, 'x')).value_or_throw();
}

TEST_P(EitherQueue, ContinuesAfterItsClose) {
  {
    Queue queue = open(options);
    enqueue_numbers(queue, 0, 5);
    EXPECT_EQ("0", queue.dequeue().value_or_throw()->text());
    ASSERT_TRUE(queue.close().ok());
    EXPECT_EQ(ErrorCode::closed, queue.enqueue("late").error().code);
  }
  Queue queue = open(options);
  EXPECT_TRUE(queue.recovery().clean);
  EXPECT_EQ(0U, queue.recovery().scanned_bytes);
  enqueue_numbers(queue, 5, 10);
  for (const std::string& expected : numbers(1, 10)) {
    const auto message = queue.dequeue().value_or_throw();
    ASSERT_TRUE(message);
    EXPECT_EQ(expected, message->text());
  }
  EXPECT_TRUE(queue.is_empty().value_or_throw());
}

TEST_P(EitherQueue, ContinuesAfterItsDestructionWithoutAClose) {
  for (int round = 0; round < 5; ++round) {
    Queue queue = open(options);
    EXPECT_TRUE(queue.recovery().clean);
    EXPECT_EQ(Offset{static_cast<std::uint64_t>(round) * 10}, queue.next_offset());
    enqueue_numbers(queue, round * 10, round * 10 + 10);
    EXPECT_EQ(numbers(0, round * 10 + 10), drain(queue));
  }
}

TEST_P(EitherQueue, KeepsItsOrderInSegmentsOfAnySize) {
  for (const std::uint64_t segment_bytes :
       {4 * limits::KiB, 5 * limits::KiB + 1, 64 * limits::KiB, 4 * limits::MiB}) {
    options.segment_bytes = segment_bytes;
    std::filesystem::remove_all(directory);
    std::vector<std::string> expected;
    {
      Queue queue = open(options);
      for (std::uint64_t i = 0; i < 500; ++i) {
        expected.push_back(text_of(i * 7 % 1500, i));
        queue.enqueue(expected.back()).value_or_throw();
      }
      EXPECT_EQ(expected, drain(queue)) << segment_bytes;
      if (segment_bytes < 64 * limits::KiB) {
        EXPECT_LT(40U, queue.stats().segments);
      }
    }
    Queue queue = open(options);
    EXPECT_EQ(expected, drain(queue)) << segment_bytes;
    for (const std::string& file : files(".seg")) {
      EXPECT_LE(std::filesystem::file_size(file), segment_bytes + 2 * 4096) << file;
    }
  }
}

TEST_P(EitherQueue, BeginsASegmentAfterSoManyMessages) {
  options.segment_messages_max = 7;
  Queue queue = open(options);
  enqueue_numbers(queue, 0, 70);
  EXPECT_EQ(10U, queue.stats().segments);
  EXPECT_EQ(numbers(0, 70), drain(queue));
}

TEST_P(EitherQueue, AcceptsAMessageLargerThanASegment) {
  options.segment_bytes = 8 * limits::KiB;
  const std::string large = text_of(3 * limits::MiB + 5, 77);
  {
    Queue queue = open(options);
    enqueue_numbers(queue, 0, 10);
    EXPECT_EQ(Offset{10}, queue.enqueue(large).value_or_throw());
    enqueue_numbers(queue, 11, 1000);
    auto expected = numbers(0, 1000);
    expected[10] = large;
    EXPECT_EQ(expected, drain(queue));
    // The large message costs small ones nothing: only its own file is large.
    std::size_t large_files = 0;
    for (const std::string& file : files(".seg"))
      large_files += std::filesystem::file_size(file) > 16384 ? 1 : 0;
    EXPECT_EQ(1U, large_files);
  }
  Queue queue = open(options);
  auto reader = queue.reader(Start::at(Offset{10})).value_or_throw();
  EXPECT_EQ(large, reader.next().value_or_throw()->text());
  EXPECT_EQ("11", reader.next().value_or_throw()->text());
}

TEST_P(EitherQueue, AcceptsAMessageOf64MebibytesWithAnySegmentSize) {
  options.segment_bytes = 4 * limits::KiB;
  const bool huge = std::getenv("LIGHTQ_HUGE") != nullptr;  // then 1 GiB
  const std::string large(huge ? limits::GiB : 64 * limits::MiB, 'L');
  {
    Queue queue = open(options);
    queue.enqueue("before").value_or_throw();
    queue.enqueue(large).value_or_throw();
    queue.enqueue("after").value_or_throw();
  }
  Queue queue = open(options);
  EXPECT_EQ("before", queue.dequeue().value_or_throw()->text());
  EXPECT_TRUE(large == queue.dequeue().value_or_throw()->text());
  EXPECT_EQ("after", queue.dequeue().value_or_throw()->text());
}

TEST_P(EitherQueue, StampsMessagesWithTheirTime) {
  const auto before = std::chrono::system_clock::now() - 50ms;
  Queue queue = open(options);
  queue.enqueue("now").value_or_throw();
  const auto after = std::chrono::system_clock::now() + 50ms;
  const Timestamp time = queue.peek().value_or_throw()->time;
  using std::chrono::duration_cast;
  EXPECT_LE(duration_cast<std::chrono::microseconds>(before.time_since_epoch()).count(), time.us);
  EXPECT_GE(duration_cast<std::chrono::microseconds>(after.time_since_epoch()).count(), time.us);
}

TEST_F(QueueTest, RefusesOptionsOutOfRange) {
  const auto refused = [&](const QueueOptions& options) {
    const auto queue = Queue::open(directory, options);
    return !queue && queue.error().code == ErrorCode::invalid_argument;
  };
  EXPECT_TRUE(refused({.segment_bytes = 4095}));
  EXPECT_TRUE(refused({.segment_bytes = 4 * limits::GiB}));
  EXPECT_TRUE(refused({.message_bytes_max = 0}));
  EXPECT_TRUE(refused({.message_bytes_max = limits::GiB + 1}));
  EXPECT_TRUE(refused({.retention_time = -1ms}));
  EXPECT_TRUE(refused({.flush = FlushPolicy::every(10ms)})) << "a timer needs a thread";
  EXPECT_TRUE(files("").empty());
}

TEST_F(QueueTest, CanBeMoved) {
  Queue first = open();
  first.enqueue("0").value_or_throw();
  Queue second = std::move(first);
  second.enqueue("1").value_or_throw();
  EXPECT_EQ("0", second.dequeue().value_or_throw()->text());
  second = Queue::open(temp / "other").value_or_throw();
  EXPECT_TRUE(second.is_empty().value_or_throw());
  Queue again = open();
  EXPECT_EQ("1", again.dequeue().value_or_throw()->text());
}

}  // namespace
}  // namespace lightq::test
