/// Tests that an embedded queue keeps few descriptors open, however many segments and readers it has.
#include <sys/resource.h>

#include "queue/queue_support.hpp"

namespace lightq::test {
namespace {

constexpr int segments = 400;
constexpr rlim_t descriptors_max = 128;

/// Runs each test with and without a background thread.
class QueueDescriptors : public QueueTest, public testing::WithParamInterface<bool> {
 protected:
  QueueDescriptors() {
    options.segment_bytes = 4 * limits::KiB;
    options.background = GetParam();
  }
  /// Returns a message that fills a segment.
  static std::string message(int number) { return text_of(3000, static_cast<std::uint64_t>(number)); }
  static void enqueue(Queue& queue, int first, int last) {
    for (int i = first; i < last; ++i) queue.enqueue(message(i)).value_or_throw();
  }
  static void with_few_descriptors(const std::function<void()>& run) {
    in_killed_process([&] {
      rlimit limit{};
      ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
      limit.rlim_cur = descriptors_max;
      ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
      run();
    });
  }
  QueueOptions options;
};

INSTANTIATE_TEST_SUITE_P(Background, QueueDescriptors, testing::Bool(),
                         [](const auto& param) { return param.param ? "with" : "without"; });

TEST_P(QueueDescriptors, AreFewWithoutReadersAndSyncs) {
  with_few_descriptors([&] {
    Queue queue = open(options);
    enqueue(queue, 0, segments);
    EXPECT_LE(static_cast<std::size_t>(segments), queue.stats().segments);
  });
}

TEST_P(QueueDescriptors, AreFewWhenAKilledProcessHasSyncedNothing) {
  in_killed_process([&] {
    Queue queue = open(options);
    enqueue(queue, 0, segments);
    _exit(0);
  });
  with_few_descriptors([&] {
    Queue queue = open(options);
    enqueue(queue, segments, 2 * segments);
    int read = 0;
    for (const std::string& each : drain(queue)) EXPECT_EQ(message(read++), each);
    EXPECT_EQ(2 * segments, read);
  });
}

TEST_P(QueueDescriptors, AreFewWhenAllIsSyncedAtLast) {
  with_few_descriptors([&] {
    Queue queue = open(options);
    enqueue(queue, 0, segments);
    queue.flush().value_or_throw();
    EXPECT_EQ(queue.next_offset(), queue.stats().durable_offset);
    enqueue(queue, segments, 2 * segments);
    queue.close().value_or_throw();
  });
  Queue queue = open(options);
  EXPECT_TRUE(queue.recovery().clean);
  EXPECT_EQ(static_cast<std::size_t>(2 * segments), drain(queue).size());
}

// Each segment that a view has mapped is locked, and the lock needs a descriptor.
TEST_P(QueueDescriptors, AreFewInAViewOfAllSegments) {
  {
    Queue queue = open(options);
    enqueue(queue, 0, segments);
  }
  with_few_descriptors([&] {
    QueueView view = QueueView::open(directory).value_or_throw();
    QueueReader reader = view.reader().value_or_throw();
    int read = 0;
    for (const std::string& each : drain(reader)) EXPECT_EQ(message(read++), each);
    EXPECT_EQ(segments, read);
  });
}

}  // namespace
}  // namespace lightq::test
