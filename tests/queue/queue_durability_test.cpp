/// Tests durability in an embedded queue: flush policies, waiting for durability, a full disk.
#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "queue/queue_on_faulty_disk.hpp"

namespace lightq::test {
namespace {

TEST_F(QueueTest, WithoutARuleNothingIsDurableBeforeAFlush) {
  Queue queue = open();
  enqueue_numbers(queue, 0, 1000);
  EXPECT_EQ(Offset{0}, queue.durable_offset());
  ASSERT_TRUE(queue.flush().ok());
  EXPECT_EQ(Offset{1000}, queue.durable_offset());
  queue.enqueue("1000").value_or_throw();
  EXPECT_EQ(Offset{1000}, queue.durable_offset());
}

TEST_F(QueueTest, EachAppendIsDurableWhenItReturns) {
  Queue queue = open({.flush = FlushPolicy::every_append()});
  for (std::uint64_t i = 0; i < 20; ++i) {
    const Offset offset = queue.enqueue("x").value_or_throw();
    ASSERT_LT(offset, queue.durable_offset());
  }
  const std::vector<std::string_view> batch = {"a", "b", "c"};
  queue.enqueue(std::span<const std::string_view>(batch)).value_or_throw();
  EXPECT_EQ(Offset{23}, queue.durable_offset());
}

TEST_F(QueueTest, EveryNthMessageMakesAllBeforeItDurable) {
  for (const bool background : {false, true}) {
    std::filesystem::remove_all(directory);
    QueueOptions options{.flush = FlushPolicy::every_messages(10)};
    options.background = background;
    Queue queue = open(options);
    for (std::uint64_t i = 1; i <= 100; ++i) {
      queue.enqueue("x").value_or_throw();
      const auto due = [&] { return queue.durable_offset().value + 10 > i; };
      ASSERT_TRUE(background ? eventually(due) : due()) << i;
    }
    EXPECT_LE(Offset{100}, queue.durable_offset());
  }
}

TEST_F(QueueTest, EverySoManyBytesMakeAllBeforeThemDurable) {
  Queue queue = open({.flush = FlushPolicy::every_bytes(10'000)});
  Offset durable;
  for (std::uint64_t i = 1; i <= 100; ++i) {
    queue.enqueue(std::string(1000, 'x')).value_or_throw();
    ASSERT_GE(10U, i - queue.durable_offset().value);
    if (durable < queue.durable_offset()) {
      ASSERT_LE(9U, queue.durable_offset().value - durable.value) << "not each time";
      durable = queue.durable_offset();
    }
  }
  EXPECT_LE(Offset{90}, queue.durable_offset());
}

TEST_F(QueueTest, ATimerMakesAllMessagesDurable) {
  Queue queue = open({.flush = FlushPolicy::every(10ms), .background = true});
  for (std::uint64_t round = 1; round <= 5; ++round) {
    queue.enqueue("x").value_or_throw();
    ASSERT_TRUE(eventually([&] { return queue.durable_offset() == Offset{round}; })) << round;
  }
}

TEST_F(QueueTest, WaitDurableWaitsOrFlushes) {
  for (const FlushPolicy& policy :
       {FlushPolicy::none(), FlushPolicy::every_messages(1'000'000), FlushPolicy::every(5ms)}) {
    std::filesystem::remove_all(directory);
    Queue queue = open({.flush = policy, .background = policy.interval.count() != 0});
    enqueue_numbers(queue, 0, 10);
    EXPECT_TRUE(queue.wait_durable(Offset{10}, 10s).value_or_throw());
    EXPECT_LE(Offset{10}, queue.durable_offset());
    EXPECT_TRUE(queue.wait_durable(Offset{10}, 0ms).value_or_throw());
    EXPECT_FALSE(queue.wait_durable(Offset{11}, 5ms).value_or_throw()) << "there is no such message";
  }
}

TEST_F(QueueTest, ReportsDurableOffsetsInOrder) {
  std::vector<int> told;
  Queue queue = open();
  const auto tell = [&](int number) {
    return [&told, number](const Result<void>& result) { told.push_back(result.ok() ? number : -number); };
  };
  queue.on_durable(Offset{0}, tell(1));
  EXPECT_EQ(std::vector<int>({1}), told) << "at once if it is";
  queue.on_durable(Offset{3}, tell(3));
  queue.on_durable(Offset{2}, tell(2));
  queue.on_durable(Offset{100}, tell(100));
  auto future = queue.durable(Offset{1});
  enqueue_numbers(queue, 0, 3);
  EXPECT_EQ(std::future_status::timeout, future.wait_for(0ms));
  ASSERT_TRUE(queue.flush().ok());
  EXPECT_EQ(std::vector<int>({1, 2, 3}), told);
  ASSERT_EQ(std::future_status::ready, future.wait_for(0ms));
  EXPECT_TRUE(future.get().ok());
  enqueue_numbers(queue, 3, 5);
  queue.on_durable(Offset{5}, tell(5));
  ASSERT_TRUE(queue.close().ok());
  EXPECT_EQ(std::vector<int>({1, 2, 3, 5, -100}), told) << "what never came cannot be durable";
  queue.on_durable(Offset{100}, tell(101));
  EXPECT_EQ(-101, told.back());
}

TEST_F(QueueTest, GroupCommitMakes16WritersWaitForFewSyncs) {
  QueueOptions options{.flush = FlushPolicy::every_append()};
  options.many_writers = true;
  Queue queue = open(options);
  constexpr int writers = 16;
  constexpr int each = 50;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int writer = 0; writer < writers; ++writer) {
    threads.emplace_back([&queue, &wrong, writer] {
      for (int i = 0; i < each; ++i) {
        const auto offset = queue.enqueue(std::to_string(writer) + " " + std::to_string(i));
        if (!offset || queue.durable_offset() <= *offset) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(0, wrong);
  const auto all = drain(queue);
  ASSERT_EQ(static_cast<std::size_t>(writers * each), all.size());
  std::vector<int> next(writers, 0);
  for (const std::string& text : all) {
    const std::size_t space = text.find(' ');
    const auto writer = static_cast<std::size_t>(std::stoi(text.substr(0, space)));
    ASSERT_EQ(next[writer]++, std::stoi(text.substr(space + 1))) << "each writer's in its order";
  }
}

TEST_F(QueueTest, WritersThatWaitForRoomDoNotMixTheirMessages) {
  QueueOptions options{.segment_bytes = 4 * limits::KiB, .flush = FlushPolicy::every_bytes(limits::MiB)};
  options.many_writers = true;
  options.capacity_messages = 8;
  options.segment_messages_max = 2;
  Queue queue = open(options);
  auto cursor = queue.cursor("consumer").value_or_throw();
  constexpr int writers = 4;
  constexpr std::uint64_t each = 2000;
  std::vector<std::thread> threads;
  for (int writer = 0; writer < writers; ++writer) {
    threads.emplace_back([&queue, writer] {
      for (std::uint64_t i = 0; i < each; ++i) {
        const std::size_t bytes = 10 + i % 7 * 100;
        queue.enqueue(std::to_string(writer) + " " + text_of(bytes, i)).value_or_throw();
      }
    });
  }
  std::vector<std::uint64_t> next(writers, 0);
  int wrong = 0;
  for (std::uint64_t i = 0; i < writers * each && wrong == 0; ++i) {
    ASSERT_TRUE(cursor.wait(20s));
    const auto message = cursor.dequeue().value_or_throw();
    const auto writer = static_cast<std::size_t>(message->text()[0] - '0');
    if (writer >= writers) {
      ++wrong;
      break;
    }
    const std::uint64_t number = next[writer]++;
    if (message->text().substr(2) != text_of(10 + number % 7 * 100, number)) ++wrong;
  }
  EXPECT_EQ(0, wrong);
  for (auto& thread : threads) thread.join();
}

class QueueOnAFullDisk : public QueueOnFaultyDisk, public testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_SUITE_P(Writing, QueueOnAFullDisk, testing::Bool(),
                         [](const auto& param) { return param.param ? "written" : "mapped"; });

TEST_P(QueueOnAFullDisk, RefusesAppendsKeepsItsMessagesAndRecoversByItself) {
  QueueOptions options{.segment_bytes = 4 * limits::KiB};
  if (GetParam()) options.flush = FlushPolicy::every_bytes(limits::MiB);
  storage.disk_bytes = 100'000;
  open_engine(options);
  std::vector<std::string> expected;
  for (;;) {
    const std::string text = text_of(500, expected.size());
    const auto appended = enqueue(text);
    if (!appended) {
      EXPECT_EQ(ErrorCode::no_space, appended.error().code) << appended.error().text();
      break;
    }
    expected.push_back(text);
    ASSERT_LT(expected.size(), 1000U);
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ErrorCode::no_space, enqueue(text_of(500, 1)).error().code);
  EXPECT_LT(50U, expected.size());
  EXPECT_EQ(expected, read_all());
  storage.disk_bytes = 200'000;
  expected.emplace_back("there is room again");
  ASSERT_TRUE(enqueue(expected.back()).ok());
  EXPECT_EQ(expected, read_all());
  open_engine(options);
  EXPECT_TRUE(engine->recovery().clean);
  EXPECT_EQ(expected, read_all());
}

TEST_P(QueueOnAFullDisk, TrimmingFreesSpace) {
  QueueOptions options{.segment_bytes = 4 * limits::KiB};
  if (GetParam()) options.flush = FlushPolicy::every_bytes(limits::MiB);
  options.recycled_files_max = 0;
  storage.disk_bytes = 60'000;
  open_engine(options);
  while (enqueue(text_of(500, 1))) {
  }
  ASSERT_TRUE(engine->trim(engine->next_offset()).ok());
  EXPECT_TRUE(enqueue("there is room again").ok());
}

// The background thread names the segment, although no later append does.
TEST_F(QueueOnFaultyDisk, ASegmentGetsItsNameAlsoIfNothingMoreIsAppended) {
  QueueOptions options{.segment_bytes = 64 * limits::KiB};
  options.background = true;
  open_engine(options);
  const std::string prepared = directory + "/next.prepared";
  for (std::size_t segments = 1; segments < 4;) {
    ASSERT_TRUE(enqueue(std::string(4000, 'x')).ok());
    if (engine->stats().segments == segments) {
      ASSERT_TRUE(eventually([&] { return storage.exists(prepared); }));
      continue;
    }
    ++segments;
    const std::string path = directory + "/" + log::segment_name({engine->next_offset().value - 1});
    ASSERT_TRUE(eventually([&] { return storage.exists(path); })) << path;
  }
}

bool beats() {
  const auto pulse = queue::CoarseClock::shared();
  pulse->keep_beating();
  return pulse->beat().load() != queue::CoarseClock::still;
}

// Each trim drops one segment, and no other work follows that would remove its file.
TEST_F(QueueOnFaultyDisk, DroppedSegmentsAreRemovedWithoutAnotherOperation) {
  QueueOptions options{.segment_bytes = 4 * limits::KiB};
  options.background = true;
  open_engine(options);
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(enqueue(std::string(1000, 'x')).ok());
  for (std::uint64_t before = 3; before < 60; before += 3) {
    const std::string oldest = directory + "/" + log::segment_name(engine->first_offset());
    ASSERT_TRUE(engine->trim({before}).ok());
    if (engine->first_offset() != Offset{before}) continue;
    ASSERT_TRUE(eventually([&] { return !storage.exists(oldest); })) << oldest;
  }
  EXPECT_LT(Offset{50}, engine->first_offset());
}

// During another thread's sync the background thread can do nothing and sleeps again. The file must still be
// removed.
TEST_F(QueueOnFaultyDisk, SegmentsDroppedDuringASyncAreRemovedToo) {
  // Outlives the queue, which closes after this function.
  const auto drop_before = std::make_shared<std::atomic<std::uint64_t>>(0);
  storage.on_call = [this, drop_before](FaultyStorage::Call call, const std::string&) {
    const Offset before{call == FaultyStorage::Call::sync ? drop_before->exchange(0) : 0};
    if (before != Offset{0}) std::jthread([&] { EXPECT_TRUE(engine->trim(before).ok()); }).join();
    return FaultyStorage::Fault{};
  };
  QueueOptions options{.segment_bytes = 4 * limits::KiB, .flush = FlushPolicy::none()};
  options.background = true;
  open_engine(options);
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(enqueue(std::string(1000, 'x')).ok());
  int dropped = 0;
  for (std::uint64_t before = 4; before < 40; ++before) {
    const std::string oldest = directory + "/" + log::segment_name(engine->first_offset());
    ASSERT_TRUE(enqueue("something to sync").ok());
    *drop_before = before;
    const Result<void> flushed = engine->flush();
    const bool was_synced = drop_before->exchange(0) == 0;
    ASSERT_TRUE(flushed.ok()) << flushed.error().text();
    if (!was_synced) continue;                               // already on disk
    if (engine->first_offset() != Offset{before}) continue;  // an offset in the middle of a segment
    ASSERT_TRUE(eventually([&] { return !storage.exists(oldest); })) << oldest;
    ++dropped;
  }
  EXPECT_LT(5, dropped);
}

// In a stream of small messages the writer does not wake the background thread for a new segment. The segment
// must still get its name.
TEST_F(QueueOnFaultyDisk, ASegmentGetsItsNameAlsoIfAStreamEndsWithItsFirstMessage) {
  QueueOptions options{.segment_bytes = 256 * limits::KiB};
  options.background = true;
  open_engine(options);
  const std::string prepared = directory + "/next.prepared";
  int in_a_stream = 0;
  for (std::size_t segments = 1; segments < 20; ++segments) {
    ASSERT_TRUE(enqueue(std::string(100, 'x')).ok());
    ASSERT_TRUE(eventually([&] { return storage.exists(prepared) && beats(); }));
    while (engine->stats().segments <= segments) ASSERT_TRUE(enqueue(std::string(100, 'x')).ok());
    if (beats()) ++in_a_stream;
    const std::string path = directory + "/" + log::segment_name({engine->next_offset().value - 1});
    ASSERT_TRUE(eventually([&] { return storage.exists(path); })) << path;
  }
  EXPECT_LT(0, in_a_stream);
}

// The pulse continues for the other queues of the process.
TEST_F(QueueOnFaultyDisk, AClosedQueueIsNotCalledAnyMore) {
  QueueOptions options{.segment_bytes = 16 * limits::KiB};
  options.background = true;
  const auto pulse = queue::CoarseClock::shared();
  for (int turn = 0; turn < 50; ++turn) {
    open_engine(options);
    ASSERT_TRUE(eventually(beats));
    for (std::size_t begun = engine->stats().segments; engine->stats().segments <= begun;)
      ASSERT_TRUE(enqueue(std::string(100, 'x')).ok());
    engine.reset();
    const std::uint32_t last = pulse->beat();
    ASSERT_TRUE(eventually([&] { return beats() && pulse->beat() != last; }));
  }
}

TEST_F(QueueOnFaultyDisk, AFlushThatCannotNameASegmentFailsAndALaterOneSucceeds) {
  // Outlives the queue, which closes after this function.
  const auto error = std::make_shared<std::atomic<int>>(0);
  storage.on_call = [error](FaultyStorage::Call call, const std::string&) {
    return FaultyStorage::Fault{call == FaultyStorage::Call::rename ? error->load() : 0, 0};
  };
  QueueOptions options{.segment_bytes = 64 * limits::KiB};
  options.background = true;
  open_engine(options);
  ASSERT_TRUE(enqueue("begins the first").ok());
  ASSERT_TRUE(eventually([&] { return storage.exists(directory + "/next.prepared"); }));
  ASSERT_TRUE(engine->flush().ok());  // waits for the job that has prepared the next segment
  *error = ENOSPC;
  while (engine->stats().segments < 2) ASSERT_TRUE(enqueue(std::string(4000, 'x')).ok());
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ErrorCode::no_space, engine->flush().error().code);
  EXPECT_FALSE(engine->wait_durable(engine->next_offset(), 0ms).ok());
  *error = 0;
  EXPECT_TRUE(engine->flush().ok());
  EXPECT_EQ(engine->durable_offset(), engine->next_offset());
}

TEST_F(QueueOnFaultyDisk, AWaitingWriterIsWokenByEveryReleaseOfSpace) {
  for (const bool trims : {true, false}) {
    QueueOptions options{.segment_bytes = 4 * limits::KiB, .segment_messages_max = 2};
    options.flush = FlushPolicy::every_bytes(limits::MiB);
    options.many_writers = true;
    options.capacity_messages = 10;
    options.overflow = Overflow::block;
    options.block_timeout = 20s;
    engine.reset();
    const std::string where = directory + (trims ? "/trims" : "/removes");
    auto opened = queue::Engine::open(where, options, storage);
    ASSERT_TRUE(opened.ok()) << opened.error().text();
    engine = std::move(*opened);
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(enqueue("x").ok());
    const auto slow = engine->take_cursor("slow", Start::first()).value_or_throw();
    const auto quick = engine->take_cursor("quick", Start::first()).value_or_throw();
    for (int i = 2; i < 10; ++i) ASSERT_TRUE(enqueue("x").ok());
    quick->commit(Offset{10});
    engine->committed(*quick);
    engine->give_back(*slow);
    const auto begin = std::chrono::steady_clock::now();
    std::thread writer([&] { EXPECT_TRUE(enqueue("finds room").ok()); });
    EXPECT_TRUE(eventually([&] { return engine->room_is_wanted(); }));
    if (trims) {
      EXPECT_TRUE(engine->trim(Offset{8}).ok());
    } else {
      EXPECT_TRUE(engine->remove_cursor("slow").ok());
    }
    writer.join();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s) << trims;
    engine->give_back(*quick);
  }
}

// Each writer waits for space for its own block_timeout only. It does not wait again for each other writer of
// the same sync.
TEST_F(QueueOnFaultyDisk, WritersThatWaitForRoomDoNotWaitInTurn) {
  constexpr int writers = 16;
  QueueOptions options;
  options.flush = FlushPolicy::every_append();
  options.many_writers = true;
  options.capacity_messages = 2 * writers;
  options.overflow = Overflow::block;
  options.block_timeout = 500ms;
  open_engine(options);
  for (int i = 1; i < 2 * writers; ++i) ASSERT_TRUE(enqueue("fills it").ok());
  std::atomic<int> callers = 0;
  std::chrono::steady_clock::time_point begin;  // no writer can be refused before this time
  storage.on_call = [&](FaultyStorage::Call call, const std::string&) {
    if (call == FaultyStorage::Call::sync) {
      EXPECT_TRUE(eventually([&] { return callers == writers; }));
      for (int i = 0; i < 10'000; ++i) std::this_thread::yield();
      begin = std::chrono::steady_clock::now();
    }
    return FaultyStorage::Fault{};
  };
  std::thread filler([&] { EXPECT_TRUE(enqueue("the last that fits").ok()); });
  EXPECT_TRUE(eventually([&] { return engine->next_offset() == Offset{2 * writers}; }));
  std::vector<std::thread> threads;
  for (int writer = 0; writer < writers; ++writer) {
    threads.emplace_back([&] {
      ++callers;
      EXPECT_EQ(ErrorCode::timeout, enqueue("no room").error().code);
    });
  }
  for (auto& thread : threads) thread.join();
  filler.join();
  storage.on_call = nullptr;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s) << "in turn it would be eight";
}

TEST_F(QueueOnFaultyDisk, ACursorThatCannotBeRemovedKeepsItsMessages) {
  QueueOptions options{.segment_bytes = 4 * limits::KiB, .segment_messages_max = 10};
  options.flush = FlushPolicy::every_bytes(limits::MiB);
  open_engine(options);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(enqueue(std::to_string(i)).ok());
  auto* slow = *engine->take_cursor("slow", Start::first());
  engine->give_back(*slow);
  auto* quick = *engine->take_cursor("quick", Start::first());
  quick->commit(Offset{100});
  engine->committed(*quick);
  EXPECT_EQ(Offset{0}, engine->first_offset());
  storage.on_call = [](FaultyStorage::Call call, const std::string& path) {
    const bool fails = call == FaultyStorage::Call::write && path.find("cursors") != std::string::npos;
    return FaultyStorage::Fault{fails ? EIO : 0, 0};
  };
  EXPECT_EQ(ErrorCode::io_error, engine->remove_cursor("slow").error().code);
  storage.on_call = nullptr;
  engine->maintain();
  EXPECT_EQ(Offset{0}, engine->first_offset());
  ASSERT_TRUE(engine->remove_cursor("slow").ok());
  engine->maintain();
  EXPECT_EQ(Offset{90}, engine->first_offset());
  engine->give_back(*quick);
}

TEST_F(QueueOnFaultyDisk, ACursorThatCannotBeReadHoldsEverything) {
  QueueOptions options{.segment_bytes = 4 * limits::KiB, .segment_messages_max = 10};
  open_engine(options);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(enqueue(std::to_string(i)).ok());
  for (const char* name : {"damaged", "quick"})
    engine->give_back(**engine->take_cursor(name, Start::first()));
  engine.reset();
  // Destroys every copy of the first cursor's position.
  auto& table = storage.bytes_of(directory + "/cursors.table");
  std::fill_n(table.begin() + 4096, 1536, std::byte{0x55});
  open_engine(options);
  EXPECT_EQ(ErrorCode::corrupt, engine->take_cursor("damaged", Start::first()).error().code);
  auto* quick = *engine->take_cursor("quick", Start::first());
  quick->commit(Offset{100});
  engine->committed(*quick);
  engine->maintain();
  EXPECT_EQ(Offset{0}, engine->first_offset());
  ASSERT_TRUE(engine->remove_cursor("damaged").ok());
  engine->maintain();
  EXPECT_EQ(Offset{90}, engine->first_offset());
  engine->give_back(*quick);
}

}  // namespace
}  // namespace lightq::test
