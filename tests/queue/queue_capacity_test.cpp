/// Tests the limits of the embedded queue: capacity, retention, memory, and the recycling of files.
#include <set>
#include <thread>

#include "queue/queue_support.hpp"

namespace lightq::test {
namespace {

QueueOptions small_segments() {
  return {.segment_bytes = 4 * limits::KiB, .flush = FlushPolicy::every_bytes(limits::MiB)};
}

/// Runs each test in both ways of writing.
class QueueBounds : public QueueTest, public testing::WithParamInterface<bool> {
 protected:
  QueueBounds() {
    options.segment_bytes = 4 * limits::KiB;
    if (GetParam()) options.flush = FlushPolicy::every_bytes(limits::MiB);
  }
  QueueOptions options;
};

INSTANTIATE_TEST_SUITE_P(Writing, QueueBounds, testing::Bool(),
                         [](const auto& param) { return param.param ? "written" : "mapped"; });

TEST_P(QueueBounds, RejectsMessagesBeyondItsCount) {
  options.capacity_messages = 100;
  options.segment_messages_max = 10;
  options.overflow = Overflow::reject;
  Queue queue = open(options);
  queue.dequeue().value_or_throw();
  enqueue_numbers(queue, 0, 100);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ErrorCode::limit_reached, queue.enqueue("more").error().code);
  EXPECT_EQ(Offset{100}, queue.next_offset());
  EXPECT_EQ(numbers(0, 100), drain(queue));
  // Space becomes free in whole segments.
  for (int i = 0; i < 11; ++i) queue.dequeue().value_or_throw();
  enqueue_numbers(queue, 100, 110);
  EXPECT_EQ(ErrorCode::limit_reached, queue.enqueue("more").error().code);
  EXPECT_EQ(numbers(10, 110), drain(queue));
}

TEST_P(QueueBounds, RejectsMessagesBeyondItsBytes) {
  options.capacity_bytes = 40'000;
  options.overflow = Overflow::reject;
  Queue queue = open(options);
  queue.dequeue().value_or_throw();
  std::uint64_t count = 0;
  while (queue.enqueue(text_of(500, count))) ++count;
  EXPECT_LT(60U, count);
  EXPECT_GE(80U, count);
  EXPECT_GE(options.capacity_bytes, queue.stats().stored_bytes);
  EXPECT_EQ(ErrorCode::limit_reached, queue.enqueue(text_of(500, count)).error().code);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto message = queue.dequeue().value_or_throw();
    ASSERT_TRUE(message);
    ASSERT_EQ(text_of(500, i), message->text());
  }
  EXPECT_EQ(Offset{count}, queue.enqueue("again").value_or_throw());
  EXPECT_EQ("again", queue.dequeue().value_or_throw()->text());
}

TEST_P(QueueBounds, DropsTheOldestAndCountsThem) {
  options.capacity_messages = 100;
  options.segment_messages_max = 10;
  options.overflow = Overflow::drop_oldest;
  Queue queue = open(options);
  queue.dequeue().value_or_throw();
  enqueue_numbers(queue, 0, 1000);
  EXPECT_EQ(Offset{1000}, queue.next_offset());
  const std::uint64_t first = queue.first_offset().value;
  EXPECT_LE(900U, first);
  EXPECT_GE(910U, first);
  EXPECT_EQ(first, queue.stats().dropped_messages);
  EXPECT_EQ(numbers(static_cast<int>(first), 1000), drain(queue));
  EXPECT_EQ(std::to_string(first), queue.dequeue().value_or_throw()->text());
}

TEST_P(QueueBounds, BlocksUntilAConsumerFreesSpace) {
  options.capacity_messages = 50;
  options.segment_messages_max = 10;
  options.block_timeout = 20s;
  Queue queue = open(options);
  auto cursor = queue.cursor("consumer").value_or_throw();
  constexpr int count = 20'000;
  std::thread consumer([&] {
    for (int i = 0; i < count; ++i) {
      if (!cursor.wait(20s)) break;
      EXPECT_EQ(std::to_string(i), cursor.dequeue().value_or_throw()->text());
    }
  });
  for (int i = 0; i < count; ++i) {
    const auto appended = queue.enqueue(std::to_string(i));
    ASSERT_TRUE(appended.ok()) << appended.error().text();
    ASSERT_GE(50U, queue.next_offset().value - queue.first_offset().value);
  }
  consumer.join();
  EXPECT_EQ(Offset{count}, cursor.committed());
}

TEST_P(QueueBounds, BlockingEndsWithATimeout) {
  options.capacity_messages = 5;
  options.block_timeout = 20ms;
  Queue queue = open(options);
  queue.dequeue().value_or_throw();
  enqueue_numbers(queue, 0, 5);
  EXPECT_EQ(ErrorCode::timeout, queue.enqueue("more").error().code);
  EXPECT_EQ(Offset{5}, queue.next_offset());
  for (int i = 0; i < 5; ++i) queue.dequeue().value_or_throw();
  EXPECT_EQ(Offset{5}, queue.enqueue("5").value_or_throw());
  EXPECT_EQ("5", queue.dequeue().value_or_throw()->text());
}

TEST_P(QueueBounds, MessagesThatEveryCursorHasCommittedAreDropped) {
  options.segment_messages_max = 10;
  Queue queue = open(options);
  auto first = queue.cursor("first").value_or_throw();
  auto second = queue.cursor("second").value_or_throw();
  enqueue_numbers(queue, 0, 100);
  for (int i = 0; i < 75; ++i) first.dequeue().value_or_throw();
  EXPECT_EQ(Offset{0}, queue.first_offset()) << "the second one has read nothing";
  for (int i = 0; i < 35; ++i) second.dequeue().value_or_throw();
  EXPECT_EQ(Offset{30}, queue.first_offset());
  ASSERT_TRUE(second.rewind(Start::next()).ok());
  queue.maintain();
  EXPECT_EQ(Offset{70}, queue.first_offset());
}

TEST_P(QueueBounds, RetentionKeepsSoManyMessages) {
  options.segment_messages_max = 10;
  options.retention_messages = 35;
  Queue queue = open(options);
  enqueue_numbers(queue, 0, 1000);
  queue.maintain();
  const std::uint64_t kept = 1000 - queue.first_offset().value;
  EXPECT_LE(35U, kept);
  EXPECT_GE(60U, kept);
  EXPECT_EQ(numbers(static_cast<int>(1000 - kept), 1000), drain(queue));
}

TEST_P(QueueBounds, RetentionKeepsSoManyBytes) {
  options.retention_bytes = 20'000;
  Queue queue = open(options);
  for (std::uint64_t i = 0; i < 400; ++i) queue.enqueue(text_of(500, i)).value_or_throw();
  queue.maintain();
  EXPECT_LE(400 - 41 - 8, queue.first_offset().value);
  EXPECT_GE(400 - 20'000 / 600, queue.first_offset().value);
}

TEST_P(QueueBounds, RetentionNeverPassesACursorUnlessItMay) {
  options.segment_messages_max = 10;
  options.retention_messages = 20;
  Queue queue = open(options);
  {
    auto cursor = queue.cursor("slow").value_or_throw();
    enqueue_numbers(queue, 0, 200);
    queue.maintain();
    EXPECT_EQ(Offset{0}, queue.first_offset());
    for (int i = 0; i < 50; ++i) cursor.dequeue().value_or_throw();
    queue.maintain();
    EXPECT_EQ(Offset{50}, queue.first_offset());
  }
  queue = Queue::open(temp / "other").value_or_throw();
  options.retain_uncommitted = false;
  queue = open(options);
  auto cursor = queue.cursor("slow").value_or_throw();
  EXPECT_EQ(Offset{50}, cursor.committed());
  queue.maintain();
  EXPECT_LE(Offset{170}, queue.first_offset());
  EXPECT_EQ(queue.first_offset(), cursor.next().value_or_throw()->offset);
}

TEST_P(QueueBounds, RetentionByAge) {
  options.segment_messages_max = 10;
  options.retention_time = 30ms;
  Queue queue = open(options);
  enqueue_numbers(queue, 0, 95);
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (queue.first_offset() < Offset{90} && std::chrono::steady_clock::now() < deadline) queue.maintain();
  EXPECT_LE(Offset{90}, queue.first_offset());
  EXPECT_EQ("95", std::to_string(queue.enqueue("95").value_or_throw().value));
}

TEST_P(QueueBounds, RetentionForEverKeepsAll) {
  options.segment_messages_max = 10;
  options.retention_time = std::chrono::milliseconds::max();
  Queue queue = open(options);
  enqueue_numbers(queue, 0, 95);
  queue.maintain();
  EXPECT_EQ(Offset{0}, queue.first_offset());
  EXPECT_EQ(numbers(0, 95), drain(queue));
}

TEST_P(QueueBounds, RetentionByAgeInTheBackground) {
  options.segment_messages_max = 10;
  options.retention_time = 30ms;
  options.background = true;
  Queue queue = open(options);
  enqueue_numbers(queue, 0, 95);
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (queue.first_offset() < Offset{90} && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_LE(Offset{90}, queue.first_offset());
}

TEST_P(QueueBounds, AQueueThatHasAgedAwayIsEmpty) {
  options.flush = FlushPolicy::every_append();
  options.retention_time = 20ms;
  options.retain_uncommitted = false;
  Queue queue = open(options);
  EXPECT_TRUE(queue.is_empty().value_or_throw());
  enqueue_numbers(queue, 0, 10);
  EXPECT_FALSE(queue.is_empty().value_or_throw());
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (queue.first_offset() < Offset{10} && std::chrono::steady_clock::now() < deadline) queue.maintain();
  EXPECT_EQ(Offset{10}, queue.first_offset());
  EXPECT_TRUE(queue.is_empty().value_or_throw());
  EXPECT_FALSE(queue.dequeue().value_or_throw());
  queue.enqueue("10").value_or_throw();
  EXPECT_EQ("10", queue.dequeue().value_or_throw()->text());
}

std::uint32_t epoch_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::uint32_t epoch = 0;
  file.seekg(12);
  file.read(reinterpret_cast<char*>(&epoch), sizeof epoch);
  return epoch;
}

// A recycled file has the epoch after its last one, so the test recognizes it by two successive epochs. A new
// file has a random epoch.
TEST_P(QueueBounds, TrimmedFilesAreUsedAgain) {
  Queue queue = open(options);
  std::set<std::uint32_t> epochs;
  std::size_t used_again = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    queue.enqueue(text_of(1000, i)).value_or_throw();
    const std::uint32_t epoch = epoch_of(files(".seg").back());
    if (epochs.insert(epoch).second) used_again += epochs.contains(epoch - 1) ? 1 : 0;
    ASSERT_TRUE(queue.trim(queue.next_offset()).ok());
  }
  EXPECT_LE(40U, epochs.size());
  EXPECT_LE(epochs.size() - 8, used_again);
  EXPECT_GE(options.recycled_files_max, files(".free", "/pool").size());
}

TEST_P(QueueBounds, FilesThatWereDequeuedAreUsedAgain) {
  Queue queue = open(options);
  for (std::uint64_t i = 0; i < 40; ++i) queue.enqueue(text_of(1000, i)).value_or_throw();
  for (std::uint64_t i = 0; i < 40; ++i) queue.dequeue().value_or_throw();
  queue.maintain();
  EXPECT_EQ(options.recycled_files_max, files(".free", "/pool").size());
}

TEST_P(QueueBounds, FilesOfAnUnneededSizeMakePlaceInThePool) {
  options.segment_bytes = 4 * limits::MiB;
  options.recycled_files_max = 1;
  Queue queue = open(options);
  const std::string message(200'000, 'x');
  for (int i = 0; i < 200; ++i) {
    queue.enqueue(message).value_or_throw();
    ASSERT_TRUE(queue.trim(queue.next_offset()).ok());
  }
  std::size_t large = 0;
  for (const std::string& file : files(".free", "/pool")) {
    large += std::filesystem::file_size(file) == options.segment_bytes + 4096 ? 1 : 0;
  }
  EXPECT_LE(1U, large);
}

TEST_P(QueueBounds, ClosingRemovesDroppedFiles) {
  {
    Queue queue = open(options);
    for (std::uint64_t i = 0; i < 40; ++i) queue.enqueue(text_of(1000, i)).value_or_throw();
  }
  ASSERT_LE(10U, files(".seg").size());
  {
    Queue queue = open(options);  // only consumes, so it must drop segments without an append
    for (std::uint64_t i = 0; i < 40; ++i) queue.dequeue().value_or_throw();
  }
  EXPECT_GE(2U, files(".seg").size());
}

std::uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t total = 0;
  std::uint64_t resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

// The allowance is the cap, the current segment, the next one, and 16 MiB for everything that is not mapped.
TEST_P(QueueBounds, MemoryStaysUnderTheCapWhile1GigabytePassesThrough) {
  options.segment_bytes = 4 * limits::MiB;
  options.mapped_bytes_max = 16 * limits::MiB;
  [[maybe_unused]] constexpr std::uint64_t constant = (4 + 4 + 16) * limits::MiB;
  Queue queue = open(options);
  auto reader = queue.reader().value_or_throw();
  const std::string message(limits::MiB, 'x');
  [[maybe_unused]] const std::uint64_t before = resident_bytes();
  std::uint64_t mapped = 0;
  std::uint64_t resident = 0;
  for (int i = 0; i < 1000; ++i) {
    queue.enqueue(message).value_or_throw();
    const auto read = reader.next().value_or_throw();
    ASSERT_TRUE(read);
    ASSERT_EQ('x', read->text().back());
    mapped = std::max(mapped, queue.stats().mapped_bytes);
    resident = std::max(resident, resident_bytes());
    if (i >= 50) {
      ASSERT_TRUE(queue.trim(Offset{static_cast<std::uint64_t>(i) - 50}).ok());
    }
  }
  EXPECT_LE(mapped, options.mapped_bytes_max);
// The sanitizer keeps several bytes of its own for each byte that is accessed.
#if !defined(__SANITIZE_THREAD__)
  EXPECT_LE(resident, before + options.mapped_bytes_max + constant);
#endif
}

// Files of the first segments are smaller than the full size, so they are never used again. If the queue kept
// their mappings, these would use up the cap for ever, and each later segment would be mapped and unmapped
// anew.
TEST_F(QueueTest, WriteWindowsOfTheFirstSmallerSegmentsAreNotKept) {
  QueueOptions options;
  options.flush = FlushPolicy::none();
  options.segment_bytes = 8 * limits::MiB;
  options.mapped_bytes_max = 256 * limits::MiB;
  Queue queue = open(options);
  const std::string message(limits::MiB / 2, 'x');
  for (int i = 0; i < 100; ++i) {
    queue.enqueue(message).value_or_throw();
    ASSERT_TRUE(queue.dequeue().value_or_throw());
  }
  constexpr std::uint64_t full_size = 8 * limits::MiB + 4096;
  EXPECT_GT(queue.stats().mapped_bytes, 0U);
  EXPECT_EQ(queue.stats().mapped_bytes % full_size, 0U) << queue.stats().mapped_bytes;
}

TEST_P(QueueBounds, ReadingOldSegmentsStaysUnderTheCapToo) {
  options.segment_bytes = 4 * limits::MiB;
  options.mapped_bytes_max = 16 * limits::MiB;
  Queue queue = open(options);
  const std::string message(limits::MiB, 'x');
  for (int i = 0; i < 100; ++i) queue.enqueue(message).value_or_throw();
  const std::uint64_t before = resident_bytes();
  auto reader = queue.reader().value_or_throw();
  auto second = queue.reader(Start::at(Offset{50})).value_or_throw();
  while (const auto read = reader.next().value_or_throw()) {
    ASSERT_EQ('x', read->text().back());
    second.next().value_or_throw();
    ASSERT_LE(queue.stats().mapped_bytes, options.mapped_bytes_max);
    ASSERT_LE(resident_bytes(), before + options.mapped_bytes_max + 24 * limits::MiB);
  }
}

TEST_F(QueueTest, KeepsTheFloorOfTheDiskFree) {
  QueueOptions options = small_segments();
  options.disk_free_floor_bytes = ~std::uint64_t{0} >> 1;
  Queue queue = open(options);
  EXPECT_EQ(ErrorCode::no_space, queue.enqueue("0").error().code);
  EXPECT_EQ(Offset{0}, queue.next_offset());
}

}  // namespace
}  // namespace lightq::test
