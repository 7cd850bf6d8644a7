/// Tests one writer with lock-free readers on other threads while segments are begun, dropped and recycled;
/// many writers; the background thread. Made for the thread sanitizer.
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "queue/queue_support.hpp"

namespace lightq::test {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr std::uint64_t messages = 8'000;
#else
constexpr std::uint64_t messages = 40'000;
#endif

std::size_t bytes_of(std::uint64_t number) {
  return 8 + number % 37 * 5;
}

/// Reads until it has seen the last message. Checks that messages are in order and equal to those written at
/// their offsets.
class CheckingReader {
 public:
  CheckingReader(QueueReader reader, int kind) : reader_(std::move(reader)), kind_(kind) {}

  void run() {
    while (next_ < messages && wrong_.empty()) {
      if (!reader_.wait(20s)) {
        wrong_ = "slept past message " + std::to_string(next_);
      } else if (kind_ == 0) {
        one_by_one();
      } else if (kind_ == 1) {
        in_batches();
      } else if (kind_ == 2) {
        with_peeks_and_pins();
      } else {
        in_leaps();
      }
    }
  }
  [[nodiscard]] const std::string& wrong() const { return wrong_; }
  [[nodiscard]] std::uint64_t seen() const { return seen_; }

 private:
  void check(const QueuedMessage& message) {
    const std::uint64_t number = message.offset.value;
    if (number < next_ && kind_ != 3) wrong_ = "back to " + std::to_string(number);
    if (message.text() != text_of(bytes_of(number), number)) {
      wrong_ = std::to_string(number) + ": " + std::string(message.text());
    }
    next_ = std::max(next_, number + 1);
    ++seen_;
  }
  void one_by_one() {
    const auto message = reader_.next();
    if (!message) {
      wrong_ = message.error().text();
    } else if (*message) {
      check(**message);
    }
  }
  void in_batches() {
    const auto batch = reader_.next_batch(100);
    if (!batch) {
      wrong_ = batch.error().text();
      return;
    }
    for (const QueuedMessage& message : *batch) check(message);
  }
  void with_peeks_and_pins() {
    const auto message = reader_.peek();
    if (!message) wrong_ = message.error().text();
    if (!message || !*message) return;
    if (!kept_ || (*message)->offset.value % 512 == 0) {
      if (kept_) check_kept();
      kept_ = **message;
      pin_ = reader_.pin();
    }
    one_by_one();
  }
  void check_kept() {
    const std::uint64_t number = kept_->offset.value;
    if (kept_->text() != text_of(bytes_of(number), number)) wrong_ = "a pin: " + std::to_string(number);
  }
  void in_leaps() {
    one_by_one();
    if (++leaps_ % 64 != 0 || !wrong_.empty()) return;
    const std::uint64_t back = next_ < 2000 ? 0 : next_ - 2000;
    const auto found = reader_.seek(leaps_ % 128 == 0 ? Start::first() : Start::at(Offset{back}));
    if (!found) wrong_ = found.error().text();
    for (int i = 0; i < 4 && wrong_.empty(); ++i) one_by_one();
    if (!reader_.seek(Start::at(Offset{next_}))) wrong_ = "cannot seek";
  }

  QueueReader reader_;
  const int kind_;
  std::uint64_t next_ = 0;
  std::uint64_t seen_ = 0;
  std::uint64_t leaps_ = 0;
  std::optional<QueuedMessage> kept_;
  Pin pin_;
  std::string wrong_;
};

struct Setting {
  const char* name;
  QueueOptions options;
};

std::vector<Setting> settings() {
  const auto with = [](std::uint64_t segment_bytes, FlushPolicy flush, bool background) {
    QueueOptions options;
    options.segment_bytes = segment_bytes;
    options.flush = flush;
    options.background = background;
    options.mapped_bytes_max = 256 * limits::KiB;
    return options;
  };
  return {{"mapped", with(4 * limits::KiB, FlushPolicy::none(), false)},
          {"mapped_in_background", with(64 * limits::KiB, FlushPolicy::none(), true)},
          {"written", with(16 * limits::KiB, FlushPolicy::every_bytes(limits::MiB), false)},
          {"written_in_background", with(64 * limits::KiB, FlushPolicy::every(5ms), true)}};
}

class QueueThreads : public QueueTest, public testing::WithParamInterface<std::size_t> {
 protected:
  QueueOptions options = settings()[GetParam()].options;

  /// Runs `write` on this thread beside four readers.
  void read_beside(Queue& queue, const std::function<void()>& write) {
    std::vector<std::unique_ptr<CheckingReader>> readers;
    std::vector<std::thread> threads;
    for (int kind = 0; kind < 4; ++kind) {
      readers.push_back(std::make_unique<CheckingReader>(queue.reader().value_or_throw(), kind));
      threads.emplace_back([reader = readers.back().get()] { reader->run(); });
    }
    write();
    for (auto& thread : threads) thread.join();
    for (const auto& reader : readers) {
      EXPECT_EQ("", reader->wrong());
      EXPECT_LT(0U, reader->seen());
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Settings, QueueThreads, testing::Range(std::size_t{0}, settings().size()),
                         [](const auto& param) { return settings()[param.param].name; });

TEST_P(QueueThreads, ReadersSeeEachMessageAsItWasWhileSegmentsComeAndGo) {
  Queue queue = open(options);
  read_beside(queue, [&] {
    for (std::uint64_t i = 0; i < messages; ++i) {
      ASSERT_EQ(Offset{i}, queue.enqueue(text_of(bytes_of(i), i)).value_or_throw());
      if (i % 1000 == 999) {
        ASSERT_TRUE(queue.trim(Offset{i - 900}).ok());
      }
      if (i % 7000 == 6999) {
        ASSERT_TRUE(queue.flush().ok());
      }
    }
  });
  EXPECT_LT(Offset{0}, queue.first_offset());
}

TEST_P(QueueThreads, ReadersSeeBatchesAndSingleMessages) {
  Queue queue = open(options);
  read_beside(queue, [&] {
    BatchBuilder builder;
    for (std::uint64_t i = 0; i < messages;) {
      const std::uint64_t count = std::min(i % 50, messages - i);
      if (count < 2) {
        queue.enqueue(text_of(bytes_of(i), i)).value_or_throw();
        ++i;
        continue;
      }
      builder.clear();
      for (std::uint64_t k = 0; k < count; ++k) builder.add(as_byte_view(text_of(bytes_of(i + k), i + k)));
      ASSERT_EQ(Offset{i}, queue.enqueue(builder).value_or_throw());
      i += count;
    }
  });
}

TEST_P(QueueThreads, DroppingTheOldestUnderReaders) {
  options.capacity_bytes = 300'000;
  options.overflow = Overflow::drop_oldest;
  Queue queue = open(options);
  read_beside(queue, [&] {
    for (std::uint64_t i = 0; i < messages; ++i) queue.enqueue(text_of(bytes_of(i), i)).value_or_throw();
  });
  EXPECT_EQ(queue.first_offset().value, queue.stats().dropped_messages);
}

TEST_P(QueueThreads, CursorsCommitBesideTheWriterThatWaitsForThem) {
  options.capacity_bytes = 300'000;
  options.block_timeout = 60s;
  Queue queue = open(options);
  std::vector<std::thread> consumers;
  std::atomic<int> wrong = 0;
  std::vector<QueueCursor> cursors;
  for (int i = 0; i < 3; ++i) cursors.push_back(queue.cursor("cursor" + std::to_string(i)).value_or_throw());
  for (auto& cursor : cursors) {
    consumers.emplace_back([&wrong, &cursor] {
      for (std::uint64_t i = 0; i < messages; ++i) {
        if (!cursor.wait(20s)) return static_cast<void>(++wrong);
        const auto message = cursor.dequeue();
        const bool right = message && *message && (*message)->text() == text_of(bytes_of(i), i);
        if (!right) return static_cast<void>(++wrong);
      }
    });
  }
  std::thread onlooker([&] {
    while (cursors[0].committed().value < messages && wrong == 0) {
      const QueueStats stats = queue.stats();
      if (stats.next_offset < stats.first_offset || stats.cursors.size() != 3) ++wrong;
      std::this_thread::yield();
    }
  });
  for (std::uint64_t i = 0; i < messages; ++i) {
    const auto appended = queue.enqueue(text_of(bytes_of(i), i));
    ASSERT_TRUE(appended.ok()) << appended.error().text();
  }
  for (auto& consumer : consumers) consumer.join();
  onlooker.join();
  EXPECT_EQ(0, wrong);
}

TEST_P(QueueThreads, ManyWritersKeepEachTheirOrder) {
  options.many_writers = true;
  Queue queue = open(options);
  constexpr int writers = 4;
  constexpr std::uint64_t each = messages / 8;
  std::vector<std::thread> threads;
  for (int writer = 0; writer < writers; ++writer) {
    threads.emplace_back([&queue, writer] {
      for (std::uint64_t i = 0; i < each; ++i) {
        queue.enqueue(std::to_string(writer) + text_of(bytes_of(i), i)).value_or_throw();
        if (i % 5000 == 0) static_cast<void>(queue.flush());
      }
    });
  }
  std::vector<std::uint64_t> next(writers, 0);
  auto reader = queue.reader().value_or_throw();
  for (std::uint64_t i = 0; i < writers * each; ++i) {
    ASSERT_TRUE(reader.wait(20s));
    const auto message = reader.next().value_or_throw();
    ASSERT_TRUE(message);
    const auto writer = static_cast<std::size_t>(message->text().at(0) - '0');
    ASSERT_LT(writer, next.size());
    const std::uint64_t number = next[writer]++;
    ASSERT_EQ(text_of(bytes_of(number), number), message->text().substr(1));
  }
  for (auto& thread : threads) thread.join();
}

TEST_P(QueueThreads, ConfirmsComeFromAnyThread) {
  options.many_writers = true;
  Queue queue = open(options);
  std::atomic<std::uint64_t> confirmed = 0;
  std::vector<std::thread> threads;
  for (int writer = 0; writer < 4; ++writer) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const Offset offset = queue.enqueue("x").value_or_throw();
        queue.on_durable(offset + 1, [&](const Result<void>& result) { confirmed += result.ok() ? 1 : 0; });
        if (i % 50 == 0) {
          EXPECT_TRUE(queue.wait_durable(offset + 1, 20s).value_or_throw());
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  ASSERT_TRUE(queue.close().ok());
  EXPECT_EQ(800U, confirmed);
}

// If the messages of all writers that wait for one sync do not fit together, some of them may still fit.
TEST_F(QueueTest, WritersThatShareASyncAreRefusedOneByOne) {
  QueueOptions options;
  options.flush = FlushPolicy::every_append();
  options.many_writers = true;
  options.capacity_messages = 100;
  options.overflow = Overflow::reject;
  Queue queue = open(options);
  std::mutex mutex;
  std::map<Offset, std::string> accepted;
  std::atomic<int> refused = 0;
  std::vector<std::thread> threads;
  for (int writer = 0; writer < 8; ++writer) {
    threads.emplace_back([&, writer] {
      for (int i = 0; i < 50; ++i) {
        const std::string text = std::to_string(writer) + "/" + std::to_string(i);
        const Result<Offset> offset = queue.enqueue(text);
        const std::lock_guard lock(mutex);
        if (offset) {
          EXPECT_TRUE(accepted.emplace(*offset, text).second);
          EXPECT_LT(*offset, queue.durable_offset());
        } else {
          EXPECT_EQ(ErrorCode::limit_reached, offset.error().code);
          ++refused;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(100U, accepted.size());
  EXPECT_EQ(300, refused);
  QueueReader reader = queue.reader().value_or_throw();
  for (const auto& [offset, text] : accepted) {
    const auto message = reader.next().value_or_throw();
    ASSERT_TRUE(message);
    EXPECT_EQ(offset, message->offset);
    EXPECT_EQ(text, message->text());
  }
  EXPECT_FALSE(reader.next().value_or_throw());
}

// The other cursor's commits drop segments, but not the ones to which this cursor has just gone back.
TEST_F(QueueTest, ACursorThatMovesBackHoldsTheStoredMessages) {
  QueueOptions options;
  options.segment_bytes = 4 * limits::KiB;
  options.many_writers = true;
  Queue queue = open(options);
  QueueCursor back = queue.cursor("back", Start::first()).value_or_throw();
  std::atomic<bool> done = false;
  std::jthread forward([&] {
    QueueCursor ahead = queue.cursor("ahead", Start::first()).value_or_throw();
    for (std::uint64_t i = 0; i < messages / 4; ++i) {
      queue.enqueue(text_of(200, i)).value_or_throw();
      ahead.dequeue().value_or_throw();
    }
    done = true;
  });
  int times = 0;
  for (; !done; ++times) {
    if (times % 2 == 0) {
      ASSERT_TRUE(back.rewind(Start::first()).ok());
    } else {
      back.commit(queue.first_offset());
    }
    const Offset committed = back.committed();
    ASSERT_LE(queue.first_offset(), committed) << "after " << times;
    back.commit(queue.next_offset());
  }
  EXPECT_LT(0, times);
}

// Each thread that releases the lock applies the result of the last sync. This also holds for a thread that
// is about to wait for it.
TEST_F(QueueTest, WaitersForTheDiskMeetTheBackgroundThreadAtAnyMoment) {
  QueueOptions options;
  options.flush = FlushPolicy::every(1ms);
  options.background = true;
  options.many_writers = true;
  Queue queue = open(options);
  std::vector<std::thread> threads;
  for (int waiter = 0; waiter < 4; ++waiter) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        const Offset offset = queue.enqueue("x").value_or_throw();
        for (int look = 0; look < 100; ++look) {
          EXPECT_FALSE(queue.wait_durable({~std::uint64_t{0}}, 0ms).value_or_throw());
        }
        EXPECT_TRUE(queue.wait_durable(offset + 1, 20s).value_or_throw());
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace lightq::test
