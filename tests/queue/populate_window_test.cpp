/// Tests how far ahead of a reader pages are populated.
#include "queue/populate_window.hpp"

#include <gtest/gtest.h>

#include "queue/queue_support.hpp"
#include "support/random.hpp"

namespace lightq::test {
namespace {

using queue::PopulateWindow;
constexpr std::uint64_t KiB = 1024;
constexpr std::uint64_t MiB = 1024 * KiB;

TEST(PopulateWindow, DoesNothingForAReaderThatJumpsAbout) {
  PopulateWindow window;
  for (std::uint64_t at = 0; at < 1000; ++at) {
    window.jump();
    window.enter_segment();
    EXPECT_TRUE(window.advance(at * MiB, at * MiB + 64 * KiB, 2000 * MiB).empty());
  }
}

TEST(PopulateWindow, GrowsWithSequentialReadsAndAdvancesInLargeSteps) {
  PopulateWindow window;
  int steps = 0;
  std::uint64_t populated = 0;
  for (std::uint64_t at = 4 * KiB; at < 60 * MiB; at += 64 * KiB) {
    const auto range = window.advance(at, at + 64 * KiB, 64 * MiB);
    if (range.empty()) continue;
    ++steps;
    EXPECT_LE(range.end - range.begin, PopulateWindow::bytes_max);
    if (populated != 0) {
      EXPECT_EQ(populated, range.begin);  // without a gap and without overlap
    }
    populated = range.end;
  }
  EXPECT_LT(60 * MiB, populated);
  EXPECT_LT(steps, 80);
}

TEST(PopulateWindow, ContinuesImmediatelyInTheNextSegment) {
  PopulateWindow window;
  for (std::uint64_t at = 0; at < 4 * MiB; at += 64 * KiB) {
    static_cast<void>(window.advance(at, at + 64 * KiB, 4 * MiB));
  }
  window.enter_segment();
  const auto range = window.advance(4 * KiB, 68 * KiB, 64 * MiB);
  EXPECT_EQ(4 * KiB, range.begin);
  EXPECT_EQ(4 * KiB + MiB, range.end);
}

TEST(PopulateWindow, DoesNotPopulateSmallSegments) {
  PopulateWindow window;
  static_cast<void>(window.advance(0, 4 * MiB, 4 * MiB));
  const auto after = [&](std::uint64_t segment_end) {
    window.enter_segment();
    return window.advance(4 * KiB, 12 * KiB, segment_end);
  };
  EXPECT_TRUE(after(256 * KiB).empty());
  EXPECT_TRUE(after(4 * KiB + MiB).empty());
  EXPECT_FALSE(after(4 * KiB + MiB + 1).empty());
}

TEST(PopulateWindow, NeverReachesPastTheEndOfTheBatches) {
  Random random;
  for (int round = 0; round < 200; ++round) {
    PopulateWindow window;
    const std::uint64_t end = 4 * KiB + random.below(8 * MiB) + 1;
    for (std::uint64_t at = 4 * KiB; at < end;) {
      const std::uint64_t bytes =
          std::min(end - at, 1 + random.below(random.one_in(10) ? 3 * MiB : 70 * KiB));
      const auto range = window.advance(at, at + bytes, end);
      if (!range.empty()) {
        ASSERT_LE(at, range.begin);
        ASSERT_LE(range.end, end);
        ASSERT_LE(range.end - range.begin, PopulateWindow::bytes_max);
      }
      at += bytes;
    }
  }
}

TEST_F(QueueTest, ReadsAllInOrderThroughManyRemappedSegments) {
  QueueOptions options;
  options.segment_bytes = 3 * MiB;
  options.flush = FlushPolicy::every_bytes(16 * MiB);
  const std::string padding(1000, 'p');
  constexpr int count = 20'000;
  {
    Queue queue = open(options);
    BatchBuilder batch;
    for (int i = 0; i < count; ++i) {
      batch.add(as_byte_view(std::to_string(i) + padding));
      if (i % 50 != 49) continue;
      queue.enqueue(batch).value_or_throw();
      batch.clear();
    }
    queue.close().value_or_throw();
  }
  Queue queue = open(options);
  auto reader = queue.reader().value_or_throw();
  for (int i = 0; i < count; ++i) {
    const auto message = reader.next().value_or_throw();
    ASSERT_TRUE(message) << i;
    ASSERT_EQ(std::to_string(i) + padding, message->text());
  }
  EXPECT_FALSE(reader.next().value_or_throw());
}

}  // namespace
}  // namespace lightq::test
