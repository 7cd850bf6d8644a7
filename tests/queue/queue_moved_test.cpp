/// Tests that nothing is created at the old path when the directory of an open queue is moved.
#include <chrono>
#include <filesystem>
#include <thread>

#include "queue/queue_support.hpp"

namespace lightq::test {
namespace {

/// Runs each test in both ways of writing: a sync with each append, or mapped files.
class MovedQueue : public QueueTest, public testing::WithParamInterface<bool> {
 protected:
  MovedQueue() {
    options.segment_bytes = 64 * limits::KiB;
    if (GetParam()) options.flush = FlushPolicy::every_append();
  }
  /// Appends `count` messages and returns how many succeeded. Each other append must report that the
  /// directory is missing.
  std::uint64_t enqueue(Queue& queue, int count) {
    std::uint64_t taken = 0;
    for (int i = 0; i < count; ++i) {
      const auto enqueued = queue.enqueue(std::string(1000, 'x'));
      if (enqueued) {
        ++taken;
      } else {
        EXPECT_EQ(enqueued.error().code, ErrorCode::no_space) << enqueued.error().text();
      }
    }
    return taken;
  }
  void move_away() { std::filesystem::rename(directory, away); }
  void move_back() { std::filesystem::rename(away, directory); }

  QueueOptions options;
  const std::string away = directory + ".away";
};

INSTANTIATE_TEST_SUITE_P(Writing, MovedQueue, testing::Bool(),
                         [](const auto& param) { return param.param ? "synced" : "mapped"; });

TEST_P(MovedQueue, DoesNotRecreateItsDirectoryAndContinuesWhenItIsBack) {
  options.retention_messages = 300;
  Queue queue = open(options);
  std::uint64_t taken = enqueue(queue, 1000);
  EXPECT_EQ(taken, 1000U);
  move_away();
  static_cast<void>(queue.trim(Offset{900}));  // so that a segment is recycled
  const std::uint64_t in_place = enqueue(queue, 1000);
  EXPECT_LT(in_place, 200U) << "no more than the segments had room for that were there";
  EXPECT_FALSE(std::filesystem::exists(directory));
  move_back();
  // Some operations are tried again after a second.
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (!queue.enqueue("first").ok() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  taken += in_place + 1 + enqueue(queue, 500);
  EXPECT_EQ(taken, 1000 + in_place + 1 + 500);
  EXPECT_TRUE(queue.flush().ok());
  EXPECT_TRUE(queue.close().ok());
  {
    const Queue ended = std::move(queue);
  }  // releases the directory
  EXPECT_GE(open().next_offset(), Offset{taken}) << "what was confirmed is there";
}

TEST_P(MovedQueue, MakesNoCursorInThePlaceOfItsDirectory) {
  Queue queue = open(options);
  EXPECT_EQ(enqueue(queue, 10), 10U);
  move_away();
  EXPECT_EQ(queue.cursor("worker").error().code, ErrorCode::no_space);
  EXPECT_FALSE(std::filesystem::exists(directory));
  std::filesystem::create_directory(directory);
  EXPECT_EQ(queue.cursor("worker").error().code, ErrorCode::no_space) << "that is another directory";
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  std::filesystem::remove(directory);
  move_back();
  EXPECT_TRUE(queue.cursor("worker").ok());
}

}  // namespace
}  // namespace lightq::test
