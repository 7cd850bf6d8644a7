/// Kills a writing process with SIGKILL at random moments, many times. No message or commit that was
/// returned, confirmed or committed may be lost, out of order or invented. LIGHTQ_KILLS=1000 makes the test
/// run long.
#include <sys/mman.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "queue/queue_support.hpp"
#include "support/random.hpp"

namespace lightq::test {
namespace {

/// The writer's progress, in memory that both processes share.
struct Said {
  std::atomic<std::uint64_t> opened;      // set to 1 once the queue is open in this round
  std::atomic<std::uint64_t> begun;       // one past the highest offset that an append was to get
  std::atomic<std::uint64_t> returned;    // one past the last offset that an append returned
  std::atomic<std::uint64_t> durable;     // the highest durable_offset seen
  std::atomic<std::uint64_t> committing;  // the offset that the cursor is about to commit
  std::atomic<std::uint64_t> committed;   // the offset that the cursor has committed
};

class SharedSaid {
 public:
  SharedSaid()
      : said_(static_cast<Said*>(
            mmap(nullptr, sizeof(Said), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  SharedSaid(const SharedSaid&) = delete;
  SharedSaid& operator=(const SharedSaid&) = delete;
  ~SharedSaid() { munmap(said_, sizeof(Said)); }
  Said* operator->() { return said_; }

 private:
  Said* said_;
};

std::string message_at(std::uint64_t offset) {
  return text_of(10 + offset * 7919 % 700, offset);
}

struct Setting {
  const char* name;
  QueueOptions options;
};

std::vector<Setting> settings() {
  QueueOptions none;
  none.segment_bytes = 64 * limits::KiB;
  auto none_in_background = none;
  none_in_background.background = true;
  auto each = none;
  each.flush = FlushPolicy::every_append();
  auto interval = none;
  interval.flush = FlushPolicy::every(std::chrono::milliseconds(5));
  interval.background = true;
  return {{"none", none},
          {"none_in_background", none_in_background},
          {"each_append", each},
          {"interval_in_background", interval}};
}

class KilledWriter : public QueueTest, public testing::WithParamInterface<std::size_t> {
 protected:
  /// Appends single messages and batches, reads and commits, until the process is killed.
  [[noreturn]] void write_until_killed() {
    Queue& queue = *new Queue(open(options));
    QueueCursor& cursor = *new QueueCursor(queue.cursor("consumer").value_or_throw());
    said->begun = said->returned = queue.next_offset().value;
    said->opened = 1;
    BatchBuilder builder;
    for (std::uint64_t at = queue.next_offset().value;;) {
      const std::uint64_t count = at % 5 == 0 ? at % 17 + 2 : 1;
      said->begun = at + count;
      if (count == 1) {
        queue.enqueue(message_at(at)).value_or_throw();
      } else {
        builder.clear();
        for (std::uint64_t i = 0; i < count; ++i) builder.add(as_byte_view(message_at(at + i)));
        queue.enqueue(builder).value_or_throw();
      }
      at += count;
      said->returned = at;
      if (at % 1024 == 0) queue.flush().value_or_throw();
      said->durable = queue.durable_offset().value;
      for (int i = 0; i < 2; ++i) {
        if (!cursor.next().value_or_throw()) continue;
        said->committing = cursor.reader().position().value;
        cursor.commit();
        said->committed = cursor.committed().value;
      }
    }
  }

  void kill_at(std::chrono::microseconds moment) {
    said->opened = 0;
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        write_until_killed();
      } catch (const std::exception& error) {
        static_cast<void>(!::write(STDERR_FILENO, error.what(), std::string_view(error.what()).size()));
      }
      _exit(1);
    }
    // Waits until the queue is open, except in one of eight rounds, so that some kills hit the opening.
    const auto begin = std::chrono::steady_clock::now();
    const auto deadline = begin + 20s;
    while (moment.count() % 8 != 0 && said->opened == 0 && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
    const auto killed_at = std::chrono::steady_clock::now() + moment;
    while (std::chrono::steady_clock::now() < killed_at) std::this_thread::yield();
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(child, waitpid(child, &status, 0));
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself";
  }

  /// Checks that the queue has every message of an append that returned, and of the unfinished append a
  /// correct part or nothing.
  void check() {
    Queue queue = open(options);
    EXPECT_EQ(0U, queue.recovery().damaged.size());
    EXPECT_GE(64 * limits::MiB, queue.recovery().scanned_bytes);
    ASSERT_LE(said->returned, queue.next_offset().value) << "returned, and lost";
    ASSERT_LE(said->durable, queue.next_offset().value) << "durable, and lost";
    ASSERT_GE(said->begun, queue.next_offset().value) << "invented";
    {
      const Offset committed = queue.cursor("consumer").value_or_throw().committed();
      ASSERT_LE(said->committed, committed.value) << "a commit is lost";
      ASSERT_GE(said->committing, committed.value) << "a commit is invented";
      ASSERT_LE(queue.first_offset(), committed) << "dropped before it was committed";
    }
    auto reader = queue.reader().value_or_throw();
    std::uint64_t at = queue.first_offset().value;
    while (const auto message = reader.next().value_or_throw()) {
      ASSERT_EQ(at, message->offset.value);
      ASSERT_EQ(message_at(at), message->text()) << at;
      ++at;
    }
    ASSERT_EQ(queue.next_offset().value, at);
    checked_ += at - queue.first_offset().value;
  }

  QueueOptions options = settings()[GetParam()].options;
  SharedSaid said;
  std::uint64_t checked_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Settings, KilledWriter, testing::Range(std::size_t{0}, settings().size()),
                         [](const auto& param) { return settings()[param.param].name; });

TEST_P(KilledWriter, LosesNothingThatItWasGivenBack) {
  const char* given = std::getenv("LIGHTQ_KILLS");
  const std::uint64_t all = given != nullptr ? std::strtoull(given, nullptr, 10) : 60;
  const std::uint64_t kills = (all + settings().size() - 1) / settings().size();
  Random random;
  for (std::uint64_t kill = 0; kill < kills; ++kill) {
    ASSERT_NO_FATAL_FAILURE(kill_at(std::chrono::microseconds(random.below(20'000))));
    ASSERT_NO_FATAL_FAILURE(check()) << "after kill " << kill;
  }
  std::cout << kills << " kills; " << said->returned << " messages appended, " << checked_
            << " read again: 0 lost, 0 out of order, 0 invented\n";
}

}  // namespace
}  // namespace lightq::test
