/// The embedded queue and the process that it is in: its limits, its directory, its forks.
#include <fcntl.h>
#include <sys/resource.h>

#include <csignal>

#include "queue/queue_support.hpp"

namespace lightq::test {
namespace {

class QueueProcess : public QueueTest, public testing::WithParamInterface<bool> {
 protected:
  QueueProcess() {
    if (GetParam()) options.flush = FlushPolicy::every_append();
  }
  QueueOptions options{.segment_bytes = 256 * limits::KiB};
};

INSTANTIATE_TEST_SUITE_P(Writing, QueueProcess, testing::Bool(),
                         [](const auto& param) { return param.param ? "written" : "mapped"; });

void set_file_size_limit(rlim_t bytes) {
  rlimit limit{};
  ASSERT_EQ(0, getrlimit(RLIMIT_FSIZE, &limit));
  limit.rlim_cur = std::min(bytes, limit.rlim_max);
  ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &limit));
}

TEST_P(QueueProcess, TakesAFileThatMayNotGrowForAFullDisk) {
  in_killed_process([&] {
    ASSERT_NE(SIG_ERR, std::signal(SIGXFSZ, SIG_DFL));  // the program does not care: it would be ended
    set_file_size_limit(100 * limits::KiB);
    Queue queue = open(options);
    const std::string message(1000, 'x');
    std::uint64_t count = 0;
    Result<Offset> last = Offset{};
    while (count < 10'000 && (last = queue.enqueue(message))) ++count;
    ASSERT_FALSE(last);
    EXPECT_EQ(ErrorCode::no_space, last.error().code) << last.error().text();
    EXPECT_EQ(EFBIG, last.error().system_error) << last.error().text();
    set_file_size_limit(RLIM_INFINITY);
    for (int i = 0; i < 1000; ++i) queue.enqueue(message).value_or_throw();
    EXPECT_EQ(count + 1000, drain(queue).size());
  });
  EXPECT_TRUE(Queue::open(directory, options).ok());
}

TEST_P(QueueProcess, DoesNotOpenWhereNoFileMayHaveAByte) {
  in_killed_process([&] {
    ASSERT_NE(SIG_ERR, std::signal(SIGXFSZ, SIG_DFL));
    set_file_size_limit(0);
    const auto opened = Queue::open(directory, options);
    ASSERT_FALSE(opened);
    EXPECT_EQ(ErrorCode::no_space, opened.error().code) << opened.error().text();
  });
}

TEST_P(QueueProcess, LeavesTheNumbersOfStandardStreamsAlone) {
  in_killed_process([&] {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(stream);
    Queue queue = open(options);
    for (int i = 0; i < 1000; ++i) queue.enqueue("message").value_or_throw();
    queue.dequeue().value_or_throw();
    queue.flush().value_or_throw();
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
      EXPECT_EQ(-1, fcntl(stream, F_GETFD)) << stream;
  });
}

}  // namespace
}  // namespace lightq::test
