/// Tests reading a queue beside the process that writes it, and finding positions by offset and by time.
#include "queue_support.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "log/segment_log/segment_log.hpp"
#include "log/storage/posix_storage.hpp"
#include "log/tools/repair.hpp"
#include "log/tools/snapshot.hpp"
#include "support/batches.hpp"

namespace lightq {
namespace {

using namespace std::chrono_literals;

class QueueViewTest : public test::QueueTest {
 protected:
  const QueueOptions written{.segment_bytes = 16 * limits::KiB,
                             .flush = FlushPolicy::every_bytes(limits::MiB)};
};

TEST_F(QueueViewTest, ShowsAppendedMessagesAfterARefresh) {
  Queue queue = open(written);
  test::enqueue_numbers(queue, 0, 10);
  QueueView view = QueueView::open(directory).value_or_throw();
  QueueReader reader = view.reader().value_or_throw();
  EXPECT_EQ(test::numbers(0, 10), test::drain(reader));
  test::enqueue_numbers(queue, 10, 3000);
  EXPECT_TRUE(test::drain(reader).empty());
  ASSERT_TRUE(view.refresh().ok());
  EXPECT_EQ(test::numbers(10, 3000), test::drain(reader));
  EXPECT_EQ(Offset{3000}, view.stats().next_offset);
  EXPECT_LT(1U, view.stats().segments);
}

TEST_F(QueueViewTest, ChangesNothingOnDisk) {
  {
    Queue queue = open(written);
    test::enqueue_numbers(queue, 0, 2000);
  }
  const auto image = [&] {
    std::string all;
    for (const std::string& file : files("")) {
      if (!std::filesystem::is_regular_file(file)) continue;
      std::ifstream in(file, std::ios::binary);
      all += file + std::string(std::istreambuf_iterator<char>(in), {});
    }
    return all;
  };
  const std::string before = image();
  QueueView view = QueueView::open(directory).value_or_throw();
  QueueReader reader = view.reader(Start::at(Offset{1500})).value_or_throw();
  EXPECT_EQ(500U, test::drain(reader).size());
  EXPECT_EQ(before, image());
}

TEST_F(QueueViewTest, AViewOfAnEmptyQueueIsEmpty) {
  QueueView view = QueueView::open(directory).value_or_throw();
  QueueReader reader = view.reader().value_or_throw();
  EXPECT_FALSE(reader.next().value_or_throw());
}

TEST_F(QueueViewTest, RefusesAForeignFileAndReportsDamageByPosition) {
  {
    Queue queue = open(written);
    test::enqueue_numbers(queue, 0, 2000);
  }
  test::overwrite(files(".seg").front(), 4096 + 64 + 4, "!");
  QueueView view = QueueView::open(directory).value_or_throw();
  QueueReader reader = view.reader().value_or_throw();
  const auto first = reader.next();
  ASSERT_FALSE(first.ok());
  EXPECT_EQ(ErrorCode::corrupt, first.error().code);
  EXPECT_NE(std::string::npos, first.error().message.find("position 4096"));
  EXPECT_EQ("1", reader.next().value_or_throw()->text());
  test::overwrite(files(".seg").back(), 8, std::string("\x09", 1));
  EXPECT_EQ(ErrorCode::foreign_format, QueueView::open(directory).error().code);
}

// The files of two queues have the same names, so a file of one can take the place of the other's.
TEST_F(QueueViewTest, AFileOfAnotherQueueIsDamageToAViewAsToTheQueue) {
  const std::string other = temp / "other";
  {
    Queue queue = open(written);
    test::enqueue_numbers(queue, 10'000, 12'000);
    Queue stranger = Queue::open(other, written).value_or_throw();
    test::enqueue_numbers(stranger, 20'000, 22'000);
  }
  const auto mine = files(".seg");
  ASSERT_GT(mine.size(), 3U);
  const std::string name = std::filesystem::path(mine[1]).filename();
  std::filesystem::copy_file(other + "/" + name, mine[1], std::filesystem::copy_options::overwrite_existing);
  QueueView view = QueueView::open(directory).value_or_throw();
  QueueReader reader = view.reader().value_or_throw();
  int damages = 0;
  const auto shown = test::drain(reader, &damages);
  EXPECT_EQ(damages, 1);
  for (const std::string& text : shown) EXPECT_EQ(text.front(), '1') << text;
  Queue queue = open(written);
  ASSERT_EQ(queue.recovery().damaged.size(), 1U);
  QueueReader own = queue.reader().value_or_throw();
  EXPECT_EQ(test::drain(own, &damages), shown);
  EXPECT_EQ(damages, 2);
}

TEST_F(QueueViewTest, AQueueThatReplacedTheViewedOneIsNotShown) {
  {
    Queue queue = open(written);
    test::enqueue_numbers(queue, 0, 2000);
  }
  QueueView view = QueueView::open(directory).value_or_throw();
  std::filesystem::remove_all(directory);
  const auto gone = view.refresh();
  ASSERT_FALSE(gone.ok());
  EXPECT_TRUE(log::is_missing(gone.error())) << gone.error().text();
  {
    Queue queue = open(written);
    test::enqueue_numbers(queue, 0, 3000);
  }
  EXPECT_EQ(ErrorCode::corrupt, view.refresh().error().code);
  EXPECT_TRUE(QueueView::open(directory).ok());
}

TEST_F(QueueViewTest, AFileThatWasCutShortIsDamageAndTheOthersAreShown) {
  {
    Queue queue = open(written);
    test::enqueue_numbers(queue, 0, 2000);
  }
  const auto whole = files(".seg");
  const std::string kept = temp / "kept";
  for (const std::size_t index : {std::size_t{0}, std::size_t{1}, whole.size() - 1}) {
    for (const std::uintmax_t bytes : {0, 1, 8, 63}) {
      std::filesystem::copy_file(whole[index], kept, std::filesystem::copy_options::overwrite_existing);
      std::filesystem::resize_file(whole[index], bytes);
      auto view = QueueView::open(directory);
      ASSERT_TRUE(view.ok()) << view.error().text();
      QueueReader reader = view->reader().value_or_throw();
      int damages = 0;
      const auto shown = test::drain(reader, &damages);
      EXPECT_EQ(damages, index + 1 == whole.size() ? 0 : 1) << index << " of " << bytes << " bytes";
      EXPECT_GT(shown.size(), 1000U);
      EXPECT_LT(shown.size(), 2000U);
      std::filesystem::copy_file(kept, whole[index], std::filesystem::copy_options::overwrite_existing);
    }
  }
}

// A segment that a view has mapped must not be recycled while the view shows it, whichever process the view
// is in.
TEST_F(QueueViewTest, KeepsItsMessagesFromBeingRecycled) {
  QueueOptions options = written;
  options.recycled_files_max = 64;
  Queue queue = open(options);
  test::enqueue_numbers(queue, 0, 4000);
  QueueView view = QueueView::open(directory).value_or_throw();
  QueueReader reader = view.reader().value_or_throw();
  const QueuedMessages shown = reader.next_batch().value_or_throw();
  const std::string first(shown.front().text());
  const std::string_view seen = shown.front().text();
  ASSERT_TRUE(queue.trim(queue.next_offset()).ok());
  for (int i = 4000; i < 12'000; ++i) {
    queue.enqueue(std::to_string(i)).value_or_throw();
    if (i % 500 == 0) {
      ASSERT_TRUE(queue.trim(queue.next_offset()).ok());
    }
  }
  EXPECT_EQ(first, seen);
  EXPECT_EQ("0", first);
}

// Everything that the view's reader knew was dropped, so no known segment leads to the next one.
TEST_F(QueueViewTest, ContinuesWhenAllKnownMessagesHaveBeenDropped) {
  QueueOptions options = written;
  options.segment_bytes = 4 * limits::KiB;
  Queue queue = open(options);
  test::enqueue_numbers(queue, 0, 10);
  QueueView view = QueueView::open(directory).value_or_throw();
  QueueReader reader = view.reader().value_or_throw();
  EXPECT_EQ(test::numbers(0, 10), test::drain(reader));
  int next = 10;
  for (int times = 0; times < 3; ++times) {
    test::enqueue_numbers(queue, next, next + 1000);
    next += 1000;
    ASSERT_TRUE(queue.trim(queue.next_offset()).ok());
    test::enqueue_numbers(queue, next, next + 10);
    ASSERT_TRUE(view.refresh().ok());
    EXPECT_EQ(queue.first_offset(), view.stats().first_offset);
    const auto rest = test::drain(reader);
    EXPECT_EQ(test::numbers(static_cast<int>(queue.first_offset().value), next + 10), rest);
    next += 10;
  }
}

TEST_F(QueueViewTest, FollowsAWriterThatDropsAndRecycles) {
  QueueOptions options = written;
  options.segment_bytes = 4 * limits::KiB;
  Queue queue = open(options);
  QueueView view = QueueView::open(directory).value_or_throw();
  QueueReader reader = view.reader().value_or_throw();
  std::atomic<bool> done = false;
  std::jthread writer([&] {
    for (int i = 0; i < 20'000; ++i) {
      queue.enqueue(std::to_string(i)).value_or_throw();
      if (i % 100 == 0 && i > 1000) queue.trim({static_cast<std::uint64_t>(i - 1000)}).value_or_throw();
    }
    done = true;
  });
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  Offset next;
  while (next < Offset{20'000} && std::chrono::steady_clock::now() < deadline) {
    const bool last = done;
    ASSERT_TRUE(view.refresh().ok());
    for (;;) {
      const auto message = reader.next();
      // Messages that were dropped since the refresh are gone; no other message may be.
      if (!message) {
        EXPECT_NE(ErrorCode::corrupt, message.error().code) << message.error().text();
        break;
      }
      if (!*message) break;
      ASSERT_LE(next, (*message)->offset);
      ASSERT_EQ(std::to_string((*message)->offset.value), (*message)->text());
      next = (*message)->offset + 1;
    }
    if (last && next < Offset{20'000} && reader.position() == queue.next_offset()) break;
  }
  EXPECT_EQ(Offset{20'000}, next);
}

TEST_F(QueueViewTest, SeeksByOffsetThroughTheIndexAndWithoutIt) {
  {
    Queue queue = open({.segment_bytes = 4 * limits::MiB, .flush = FlushPolicy::every_bytes(limits::MiB)});
    for (std::uint64_t i = 0; i < 40'000; ++i) queue.enqueue(test::text_of(300, i)).value_or_throw();
  }
  ASSERT_FALSE(files(".idx").empty());
  for (const bool damaged : {false, true}) {
    Queue queue = open({.segment_bytes = 4 * limits::MiB});
    if (damaged) {
      for (const std::string& file : files(".idx")) test::overwrite(file, 70, "????????");
    }
    QueueReader reader = queue.reader().value_or_throw();
    for (const std::uint64_t wanted : {39'999UL, 0UL, 20'000UL, 5UL, 33'333UL, 12'345UL}) {
      ASSERT_TRUE(reader.seek(Start::at(Offset{wanted})).ok());
      const auto message = reader.next().value_or_throw();
      ASSERT_TRUE(message);
      EXPECT_EQ(Offset{wanted}, message->offset);
      EXPECT_EQ(test::text_of(300, wanted), message->text());
    }
  }
}

// The queue knows whether an index was ever written for a segment, and removes it with the segment.
TEST_F(QueueViewTest, SegmentsThatGoTakeTheirIndexesWithThem) {
  for (const bool synced : {true, false}) {
    Queue queue = open({.segment_bytes = 16 * limits::KiB,
                        .flush = synced ? FlushPolicy::every_bytes(4 * limits::KiB) : FlushPolicy::none()});
    const int first = synced ? 0 : 5001;
    test::enqueue_numbers(queue, first, first + 5000);
    queue.flush().value_or_throw();  // if this is the first sync, all segments are full
    ASSERT_FALSE(files(".idx").empty());
    ASSERT_TRUE(queue.trim(queue.next_offset()).ok());
    test::enqueue_numbers(queue, first + 5000, first + 5001);
    queue.close().value_or_throw();
    const auto segments = files(".seg");
    for (const std::string& index : files(".idx")) {
      const std::string segment = index.substr(0, index.size() - 4) + ".seg";
      EXPECT_EQ(1, std::count(segments.begin(), segments.end(), segment)) << index;
    }
  }
}

// A copy of a queue is a queue with the same cursors at their committed positions.
TEST_F(QueueViewTest, ASnapshotAndARepairKeepNamedCursors) {
  Queue queue = open(written);
  test::enqueue_numbers(queue, 0, 3000);
  QueueCursor cursor = queue.cursor("billing").value_or_throw();
  for (int i = 0; i < 1234; ++i) cursor.next().value_or_throw();
  cursor.commit();
  log::PosixStorage storage;
  ASSERT_TRUE(log::snapshot_log(directory, temp / "backup", storage).ok());
  ASSERT_TRUE(log::repair_to(directory, temp / "repaired", {}, storage).ok());
  for (const std::string& copy : {temp / "backup", temp / "repaired"}) {
    Queue other = Queue::open(copy).value_or_throw();
    QueueCursor there = other.cursor("billing", Start::next()).value_or_throw();
    EXPECT_EQ(Offset{1234}, there.committed()) << copy;
    EXPECT_EQ("1234", there.next().value_or_throw()->text()) << copy;
    EXPECT_EQ(Offset{3000}, other.next_offset()) << copy;
  }
}

TEST_F(QueueViewTest, SeeksByTime) {
  Queue queue = open({.segment_bytes = 16 * limits::KiB, .flush = FlushPolicy::every_bytes(limits::MiB)});
  std::vector<Timestamp> times;
  QueueReader follower = queue.reader().value_or_throw();
  const auto deadline = std::chrono::steady_clock::now() + 300ms;
  while (std::chrono::steady_clock::now() < deadline || times.size() < 1000) {
    queue.enqueue(test::text_of(200, times.size())).value_or_throw();
    times.push_back(follower.next().value_or_throw()->time);
  }
  ASSERT_LT(times.front(), times.back());
  for (std::size_t i = 0; i < times.size(); i += 97) {
    const auto first = std::lower_bound(times.begin(), times.end(), times[i]) - times.begin();
    const QueueReader reader = queue.reader(Start::at(times[i])).value_or_throw();
    EXPECT_EQ(static_cast<std::uint64_t>(first), reader.position().value);
  }
  EXPECT_EQ(queue.next_offset(),
            queue.reader(Start::at(Timestamp{times.back().us + 1})).value_or_throw().position());
  EXPECT_EQ(Offset{0}, queue.reader(Start::at(Timestamp{0})).value_or_throw().position());
}

// The segments have one message each, or many. The clock goes forward and back while they are written.
TEST_F(QueueViewTest, SeeksByTimeAfterTheClockWasSetBack) {
  constexpr std::int64_t hour_us = 3'600'000'000;
  const std::int64_t now_us = 1'700'000'000'000'000;
  const std::vector<std::int64_t> times = {
      now_us,     now_us - hour_us,     now_us + 1,      now_us + 2 * hour_us,
      now_us + 2, now_us - 2 * hour_us, now_us + hour_us};
  for (const std::size_t bytes : {100U, 3900U}) {
    log::PosixStorage storage;
    const std::string place = directory + std::to_string(bytes);
    log::SegmentPool pool({place + "/pool"}, storage);
    auto log =
        log::SegmentLog::open(
            {.directory = place, .segment_bytes = log::segment_file_bytes_min, .first_segment_bytes = 4096},
            storage, pool, {now_us})
            .value_or_throw();
    for (const std::int64_t time : times) {
      auto batch = test::make_batch_of(bytes);
      ASSERT_EQ(log->append(batch, {time}).outcome, log::AppendOutcome::appended);
    }
    ASSERT_TRUE(log->close().ok());
    log.reset();
    QueueView view = QueueView::open(place).value_or_throw();
    Queue queue = Queue::open(place, {.segment_bytes = log::segment_file_bytes_min}).value_or_throw();
    for (const std::int64_t asked : times) {
      for (const std::int64_t from : {asked, asked + 1}) {
        const auto first =
            std::find_if(times.begin(), times.end(), [&](std::int64_t t) { return from <= t; });
        const Offset expected{static_cast<std::uint64_t>(first - times.begin())};
        EXPECT_EQ(expected, queue.reader(Start::at(Timestamp{from})).value_or_throw().position());
        EXPECT_EQ(expected, view.reader(Start::at(Timestamp{from})).value_or_throw().position());
      }
    }
  }
}

}  // namespace
}  // namespace lightq
