/// Tests the embedded queue together with its process: resource limits, the working directory, forks.
#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <span>
#include <sstream>
#include <string_view>

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

TEST_P(QueueProcess, TakesAFileSizeLimitForAFullDisk) {
  in_killed_process([&] {
    // As in a program that does not handle the signal, which then ends the program.
    ASSERT_NE(SIG_ERR, std::signal(SIGXFSZ, SIG_DFL));
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

TEST_P(QueueProcess, DoesNotOpenIfFilesMayNotGrow) {
  in_killed_process([&] {
    ASSERT_NE(SIG_ERR, std::signal(SIGXFSZ, SIG_DFL));
    set_file_size_limit(0);
    const auto opened = Queue::open(directory, options);
    ASSERT_FALSE(opened);
    EXPECT_EQ(ErrorCode::no_space, opened.error().code) << opened.error().text();
  });
}

TEST_P(QueueProcess, DoesNotUseTheNumbersOfStandardStreams) {
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

// --- Directories ---

TEST_P(QueueProcess, KeepsItsDirectoryWhenTheProgramChangesItsOwn) {
  options.segment_bytes = 4 * limits::KiB;
  const std::string here = temp / "a";
  const std::string elsewhere = temp / "b";
  std::filesystem::create_directories(here);
  std::filesystem::create_directories(elsewhere);
  in_killed_process([&] {
    {
      Queue other = Queue::open(elsewhere + "/q", options).value_or_throw();
      for (std::uint64_t i = 0; i < 40; ++i) other.enqueue(text_of(1000, i)).value_or_throw();
    }
    std::filesystem::current_path(here);
    Queue queue = Queue::open("q", options).value_or_throw();
    QueueView view = QueueView::open("q").value_or_throw();
    for (std::uint64_t i = 0; i < 5; ++i) queue.enqueue(text_of(1000, i)).value_or_throw();
    std::filesystem::current_path(elsewhere);
    for (std::uint64_t i = 5; i < 45; ++i) queue.enqueue(text_of(1000, i)).value_or_throw();
    EXPECT_EQ(text_of(1000, 0), queue.dequeue().value_or_throw()->text());
    queue.flush().value_or_throw();
    view.refresh().value_or_throw();
    QueueReader reader = view.reader().value_or_throw();
    EXPECT_EQ(45U, drain(reader).size());
    queue.close().value_or_throw();
  });
  Queue queue = Queue::open(here + "/q", options).value_or_throw();
  std::vector<std::string> expected;
  for (std::uint64_t i = 0; i < 45; ++i) expected.push_back(text_of(1000, i));
  EXPECT_EQ(expected, drain(queue));
  EXPECT_EQ(Offset{1}, queue.cursor("default").value_or_throw().committed());
  Queue other = Queue::open(elsewhere + "/q", options).value_or_throw();
  EXPECT_EQ(40U, drain(other).size());
}

// --- Forks ---

/// Returns the content of every file below a directory, by path.
std::map<std::string, std::string> contents(const std::string& directory) {
  std::map<std::string, std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    std::ostringstream text;
    text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    found[entry.path().string()] = text.str();
  }
  return found;
}

template <typename Value>
void expect_closed(const Result<Value>& answer) {
  ASSERT_FALSE(answer);
  EXPECT_EQ(ErrorCode::closed, answer.error().code) << answer.error().text();
}

TEST_P(QueueProcess, RefusesEverythingInAChildThatDidNotOpenIt) {
  Queue queue = open(options);
  enqueue_numbers(queue, 0, 10);
  QueueCursor cursor = queue.cursor("own").value_or_throw();
  EXPECT_EQ("0", cursor.next().value_or_throw()->text());
  QueueReader reader = queue.reader().value_or_throw();
  EXPECT_EQ("0", reader.next().value_or_throw()->text());
  EXPECT_EQ("0", queue.dequeue().value_or_throw()->text());
  const auto before = contents(directory);
  in_killed_process([&] {
    expect_closed(queue.enqueue("child"));
    const std::string_view texts[] = {"a", "b"};
    expect_closed(queue.enqueue(std::span(texts)));
    BatchBuilder batch;
    batch.add(as_byte_view("c"));
    expect_closed(queue.enqueue(batch));
    expect_closed(queue.dequeue());
    expect_closed(queue.peek());
    expect_closed(queue.is_empty());
    expect_closed(queue.reader());
    expect_closed(queue.cursor("another"));
    expect_closed(queue.remove_cursor("default"));
    expect_closed(queue.flush());
    expect_closed(queue.wait_durable(Offset{10}, 10s));
    expect_closed(queue.trim(Offset{10}));
    expect_closed(queue.durable(Offset{10}).get());
    queue.maintain();
    EXPECT_EQ(0U, queue.stats().segments);
    expect_closed(reader.next());
    expect_closed(reader.peek());
    expect_closed(reader.next_batch());
    expect_closed(reader.range(Offset{0}, Offset{5}));
    expect_closed(reader.seek(Start::first()));
    EXPECT_FALSE(reader.wait(10s));
    expect_closed(cursor.next());
    expect_closed(cursor.next_batch());
    expect_closed(cursor.dequeue());
    expect_closed(cursor.rewind(Start::first()));
    cursor.commit(Offset{7});
    EXPECT_EQ(Offset{0}, cursor.committed());
    expect_closed(queue.close());
  });
  EXPECT_EQ(before, contents(directory));
  queue.enqueue("10").value_or_throw();
  EXPECT_EQ(numbers(0, 11), drain(queue));
  EXPECT_EQ("1", queue.dequeue().value_or_throw()->text());
}

TEST_P(QueueProcess, IsNotChangedIfAChildDestroysItsCopy) {
  auto queue = std::make_optional(open(options));
  enqueue_numbers(*queue, 0, 10);
  auto cursor = std::make_optional(queue->cursor("own").value_or_throw());
  auto reader = std::make_optional(queue->reader().value_or_throw());
  EXPECT_EQ(10U, drain(*reader).size());
  const Pin pin = reader->pin();
  const auto before = contents(directory);
  in_killed_process([&] {
    cursor.reset();
    reader.reset();
    queue.reset();
    EXPECT_EQ(ErrorCode::in_use, Queue::open(directory).error().code);
    Queue other = Queue::open(temp / "other").value_or_throw();  // the child may have a queue of its own
    other.enqueue("child").value_or_throw();
    EXPECT_EQ(std::vector<std::string>{"child"}, drain(other));
  });
  EXPECT_EQ(before, contents(directory));
  EXPECT_EQ(ErrorCode::in_use, Queue::open(directory).error().code);
  enqueue_numbers(*queue, 10, 20);
  EXPECT_EQ(numbers(0, 20), drain(*queue));
}

TEST_P(QueueProcess, IsOpenOnceAlsoWithoutItsLockFile) {
  auto queue = std::make_optional(open(options));
  enqueue_numbers(*queue, 0, 10);
  ASSERT_TRUE(std::filesystem::remove(std::filesystem::path(directory) / "lock"));
  EXPECT_EQ(ErrorCode::in_use, Queue::open(directory).error().code);
  in_killed_process([&] { EXPECT_EQ(ErrorCode::in_use, Queue::open(directory).error().code); });
  enqueue_numbers(*queue, 10, 20);
  queue.reset();
  EXPECT_EQ(numbers(0, 20), drain(*(queue = open(options))));
}

// A daemon starts in this way: the parent ends and leaves the directory to the child.
TEST_P(QueueProcess, CanBeOpenedByAChildThatHasDestroyedItsCopyWhenTheParentHasEnded) {
  int parent_lives[2] = {};
  int told[2] = {};
  ASSERT_EQ(0, pipe(parent_lives));
  ASSERT_EQ(0, pipe(told));
  in_killed_process([&] {
    auto queue = std::make_optional(open(options));
    enqueue_numbers(*queue, 0, 5);
    if (fork() != 0) return;
    close(parent_lives[1]);
    char end = 0;
    static_cast<void>(!read(parent_lives[0], &end, 1));  // returns once the parent has ended
    expect_closed(queue->enqueue("lost"));
    queue.reset();
    Queue own = open(options);
    enqueue_numbers(own, 5, 10);
    const bool fine = drain(own) == numbers(0, 10) && own.close() && !testing::Test::HasFailure();
    static_cast<void>(!write(told[1], fine ? "+" : "-", 1));
    _exit(0);
  });
  close(parent_lives[0]);
  close(parent_lives[1]);
  close(told[1]);
  char outcome = 0;
  EXPECT_EQ(1, read(told[0], &outcome, 1));
  EXPECT_EQ('+', outcome);
  close(told[0]);
}

TEST_F(QueueTest, AViewIsClosedInAChildToo) {
  Queue queue = open();
  enqueue_numbers(queue, 0, 10);
  queue.flush().value_or_throw();
  auto view = std::make_optional(QueueView::open(directory).value_or_throw());
  QueueReader reader = view->reader().value_or_throw();
  EXPECT_EQ("0", reader.next().value_or_throw()->text());
  in_killed_process([&] {
    expect_closed(view->refresh());
    expect_closed(view->reader());
    expect_closed(reader.next());
    EXPECT_EQ(0U, view->stats().segments);
    view.reset();
    QueueView own = QueueView::open(directory).value_or_throw();
    QueueReader all = own.reader().value_or_throw();
    EXPECT_EQ(numbers(0, 10), drain(all));
  });
  EXPECT_EQ("1", reader.next().value_or_throw()->text());
}

// Under the thread sanitizer, the child of a process with threads cannot do anything.
#ifndef __SANITIZE_THREAD__
TEST_P(QueueProcess, HasNoThreadInAChildAndReportsIt) {
  options.background = true;
  auto queue = std::make_optional(open(options));
  enqueue_numbers(*queue, 0, 1000);
  in_killed_process([&] {
    expect_closed(queue->enqueue("lost"));
    expect_closed(queue->flush());
    expect_closed(queue->wait_durable(Offset{1000}, 10s));
    queue.reset();  // must wait for no thread
  });
  enqueue_numbers(*queue, 1000, 1001);
  EXPECT_TRUE(queue->wait_durable(Offset{1001}, 60s).value_or_throw());
  EXPECT_EQ(numbers(0, 1001), drain(*queue));
}
#endif

}  // namespace
}  // namespace lightq::test
