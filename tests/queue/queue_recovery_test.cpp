/// Tests opening an embedded queue: after a clean close, after a kill, with damage, and with files of another
/// log.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>

#include "log/format/segment_format.hpp"
#include "queue/queue_support.hpp"
#include "support/golden_files.hpp"

namespace lightq::test {
namespace {

constexpr std::uint64_t page = 4096;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

TEST_F(QueueTest, HasOneOpener) {
  Queue queue = open();
  EXPECT_EQ(ErrorCode::in_use, Queue::open(directory).error().code);
  in_killed_process([&] { EXPECT_EQ(ErrorCode::in_use, Queue::open(directory).error().code); });
  ASSERT_TRUE(queue.close().ok());
}

TEST_F(QueueTest, ALinkInPlaceOfTheLockIsRefusedAndItsTargetStays) {
  std::filesystem::create_directories(directory);
  const std::string target = temp / "precious";
  std::ofstream(target) << "content";
  std::filesystem::create_symlink(target, directory + "/lock");
  EXPECT_EQ(ErrorCode::io_error, Queue::open(directory).error().code);
  EXPECT_EQ(std::filesystem::file_size(target), 7U);
}

TEST_F(QueueTest, ALockThatRootMakesBelongsToTheOwnerOfTheDirectory) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files to others";
  std::filesystem::create_directories(directory);
  ASSERT_EQ(::chown(directory.c_str(), 12345, 23456), 0);
  const Queue queue = open();
  struct stat facts{};
  ASSERT_EQ(::stat((directory + "/lock").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_uid, 12345U);
  EXPECT_EQ(facts.st_gid, 23456U);
}

TEST_F(QueueTest, AKilledOpenerReleasesItsLock) {
  in_killed_process([&] { static_cast<void>(new Queue(open())); });
  EXPECT_TRUE(Queue::open(directory).ok());
}

TEST_F(QueueTest, EverythingSurvivesTheProcessWithoutAnyRule) {
  in_killed_process([&] {
    Queue& queue = *new Queue(open());  // never closed
    enqueue_numbers(queue, 0, 100'000);
  });
  {
    Queue queue = open();
    EXPECT_FALSE(queue.recovery().clean);
    EXPECT_TRUE(queue.recovery().damaged.empty());
    EXPECT_GE(64 * limits::MiB, queue.recovery().scanned_bytes);
    EXPECT_EQ(numbers(0, 100'000), drain(queue));
    queue.enqueue("100000").value_or_throw();
  }
  Queue queue = open();
  EXPECT_TRUE(queue.recovery().clean);
  EXPECT_EQ(numbers(0, 100'001), drain(queue));
}

TEST_F(QueueTest, TheOpenBatchSurvivesTheProcess) {
  for (int count = 0; count < 20; ++count) {
    in_killed_process([&] {
      Queue& queue = *new Queue(open());  // never closed
      EXPECT_EQ(Offset{static_cast<std::uint64_t>(count * (count + 1) / 2)}, queue.next_offset());
      for (int i = 0; i <= count; ++i)
        queue.enqueue(text_of(static_cast<std::size_t>(i), 7)).value_or_throw();
    });
  }
  Queue queue = open();
  EXPECT_EQ(Offset{210}, queue.next_offset());
  std::size_t at = 0;
  const auto all = drain(queue);
  for (std::size_t count = 0; count < 20; ++count) {
    for (std::size_t i = 0; i <= count; ++i) ASSERT_EQ(text_of(i, 7), all[at++]);
  }
}

TEST_F(QueueTest, AKilledProcessIsScannedForAtMost64MiB) {
  QueueOptions options{.segment_bytes = limits::GiB};
  for (const FlushPolicy& policy : {FlushPolicy::none(), FlushPolicy::every_bytes(8 * limits::MiB)}) {
    std::filesystem::remove_all(directory);
    options.flush = policy;
    in_killed_process([&] {
      Queue& queue = *new Queue(open(options));  // never closed
      const std::string message(limits::MiB, 'x');
      for (int i = 0; i < 150; ++i) queue.enqueue(message).value_or_throw();
      queue.enqueue("small").value_or_throw();
    });
    Queue queue = open(options);
    EXPECT_EQ(Offset{151}, queue.next_offset());
    EXPECT_GE(64 * limits::MiB, queue.recovery().scanned_bytes);
    auto reader = queue.reader(Start::at(Offset{150})).value_or_throw();
    EXPECT_EQ("small", reader.next().value_or_throw()->text());
  }
}

TEST_F(QueueTest, AFullSegmentWithoutWritesIsSealed) {
  const QueueOptions options{.segment_bytes = 8 * limits::KiB,
                             .flush = FlushPolicy::every_bytes(limits::MiB)};
  in_killed_process([&] {
    Queue& queue = *new Queue(open(options));  // never closed
    queue.enqueue("small").value_or_throw();
  });
  {
    Queue queue = open(options);
    EXPECT_FALSE(queue.recovery().clean);
    queue.enqueue(std::string(8100, 'x')).value_or_throw();
    queue.enqueue(std::string(8100, 'x')).value_or_throw();
    ASSERT_LT(1U, queue.stats().segments);
  }
  Queue queue = open(options);
  EXPECT_TRUE(queue.recovery().clean);
  EXPECT_EQ(0U, queue.recovery().scanned_bytes);
}

TEST_F(QueueTest, RefusesFilesOfANewerVersionAndChangesNothing) {
  const auto put = [&](const std::string& golden, const std::string& name) {
    const auto bytes = newer_file(golden);
    std::ofstream(directory + "/" + name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  };
  const auto image = [&] {
    std::map<std::string, std::string> all;
    for (const std::string& file : files("")) {
      if (file.ends_with("/lock") || !std::filesystem::is_regular_file(file)) continue;
      std::ifstream in(file, std::ios::binary);
      all[file] = std::string(std::istreambuf_iterator<char>(in), {});
    }
    return all;
  };
  const std::string segment = "00000000000000000000.seg";
  for (const std::string name : {"segment-version", "segment-flags", "segment-batch-flags",
                                 "cursor-table-version", "cursor-table-flags", "cursor-table-cursor"}) {
    std::filesystem::remove_all(directory);
    std::filesystem::create_directories(directory);
    put("segment-optional", segment);
    put(name, name.starts_with("segment") ? segment : "cursors.table");
    overwrite(directory + "/" + segment, 16'000, "what a start would wipe");
    const auto before = image();
    const auto refused = Queue::open(directory);
    ASSERT_FALSE(refused.ok()) << name;
    EXPECT_EQ(ErrorCode::foreign_format, refused.error().code) << name;
    EXPECT_NE(std::string::npos, refused.error().message.find("a newer version of LightQ wrote it"));
    if (name.starts_with("segment")) {
      EXPECT_EQ(refused.error().text(), QueueView::open(directory).error().text());
    }
    EXPECT_EQ(before, image()) << name;
  }
  std::filesystem::remove(directory + "/cursors.table");
  Queue queue = open();
  EXPECT_EQ(4U, drain(queue).size()) << "what is optional is ignored";
}

TEST_F(QueueTest, RefusesAForeignVersionOrByteOrderAndNamesTheFile) {
  {
    Queue queue = open();
    enqueue_numbers(queue, 0, 10);
  }
  const std::string segment = files(".seg").at(0);
  std::string magic(8, '\0');
  std::ifstream(segment, std::ios::binary).read(magic.data(), 8);
  std::string swapped(magic.rbegin(), magic.rend());
  overwrite(segment, 0, swapped);
  auto refused = Queue::open(directory);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(ErrorCode::foreign_format, refused.error().code);
  EXPECT_NE(std::string::npos, refused.error().message.find(segment)) << refused.error().text();
  overwrite(segment, 0, magic);
  overwrite(segment, 8, std::string("\x02", 1));
  refused = Queue::open(directory);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(ErrorCode::foreign_format, refused.error().code);
  overwrite(segment, 8, std::string("\x01", 1));
  Queue queue = open();
  EXPECT_EQ(numbers(0, 10), drain(queue));
}

/// A queue with damage in one of several segments of ten messages each.
class DamagedQueue : public QueueTest {
 protected:
  DamagedQueue() {
    options.segment_messages_max = 10;
    options.flush = FlushPolicy::every_bytes(limits::MiB);
    options.drop_committed = false;
    Queue queue = open(options);
    for (std::uint64_t i = 0; i < 50; ++i) queue.enqueue(text_of(100, i)).value_or_throw();
  }
  /// Reads everything. Checks that the only error names the file, and that no wrong message is returned.
  std::vector<std::uint64_t> read_past_damage(const std::string& named) {
    Queue queue = open(options);
    auto reader = queue.reader().value_or_throw();
    std::vector<std::uint64_t> got;
    int errors = 0;
    for (int calls = 0; calls < 1000; ++calls) {
      const auto message = reader.next();
      if (!message) {
        ++errors;
        EXPECT_EQ(ErrorCode::corrupt, message.error().code) << message.error().text();
        EXPECT_NE(std::string::npos, message.error().message.find(named)) << message.error().text();
        EXPECT_NE(std::string::npos, message.error().message.find("position")) << message.error().text();
        continue;
      }
      if (!*message) break;
      EXPECT_EQ(text_of(100, (*message)->offset.value), (*message)->text());
      got.push_back((*message)->offset.value);
    }
    EXPECT_EQ(1, errors);
    queue.enqueue("after").value_or_throw();
    EXPECT_EQ("after", reader.next().value_or_throw()->text());
    return got;
  }
  static std::vector<std::uint64_t> all_but(std::uint64_t first, std::uint64_t last) {
    std::vector<std::uint64_t> offsets;
    for (std::uint64_t i = 0; i < 50; ++i) {
      if (i < first || last <= i) offsets.push_back(i);
    }
    return offsets;
  }
  QueueOptions options;
};

TEST_F(DamagedQueue, ABrokenRecordOfASealedSegmentIsReported) {
  const std::string segment = files(".seg").at(2);
  overwrite(segment, page + 64 + 20, "broken");
  EXPECT_EQ(all_but(20, 21), read_past_damage(segment));
}

TEST_F(DamagedQueue, ABrokenBatchHeaderIsReported) {
  const std::string segment = files(".seg").at(1);
  overwrite(segment, page + 2 * 168, "broken");
  EXPECT_EQ(all_but(12, 13), read_past_damage(segment));
}

TEST_F(DamagedQueue, AReaderSkipsDamageInASegmentThatWasDroppedInTheMeantime) {
  const std::string segment = files(".seg").at(1);
  overwrite(segment, page + 2 * 168, "broken");
  Queue queue = open(options);
  auto reader = queue.reader(Start::at(Offset{10})).value_or_throw();
  EXPECT_EQ(text_of(100, 10), reader.next().value_or_throw()->text());
  ASSERT_TRUE(queue.trim(Offset{30}).ok());
  ASSERT_EQ(Offset{30}, queue.first_offset());
  std::filesystem::remove(segment);  // the file would be removed sooner or later in any case
  int damages = 0;
  EXPECT_EQ(text_of(100, 49), drain(reader, &damages).back());
}

TEST_F(DamagedQueue, TheEndOfASealedSegmentIsReported) {
  const std::string segment = files(".seg").at(1);
  overwrite(segment, page + 8 * 168 + 8, std::string(2 * 168, '\0'));
  EXPECT_EQ(all_but(18, 20), read_past_damage(segment));
}

TEST_F(DamagedQueue, ABrokenSegmentHeaderIsReported) {
  const std::string segment = files(".seg").at(3);
  overwrite(segment, 20, "broken");
  EXPECT_EQ(all_but(30, 40), read_past_damage(segment));
}

TEST_F(DamagedQueue, AMissingFileIsReportedAtTheOneBefore) {
  const auto segments = files(".seg");
  std::filesystem::remove(segments.at(2));
  EXPECT_EQ(all_but(20, 30), read_past_damage(segments.at(1)));
}

TEST_F(DamagedQueue, AFileCutShortIsReported) {
  for (const std::uint64_t left : {page + 5 * 168 + 30, page, std::uint64_t{100}, std::uint64_t{0}}) {
    const std::string segment = files(".seg").at(2);
    std::filesystem::resize_file(segment, left);
    const auto got = read_past_damage(segment);
    EXPECT_EQ(left > page ? all_but(25, 30) : all_but(20, 30), got) << left;
    std::filesystem::remove_all(directory);
    Queue queue = open(options);
    for (std::uint64_t i = 0; i < 50; ++i) queue.enqueue(text_of(100, i)).value_or_throw();
  }
}

TEST_F(DamagedQueue, ARangeEndsBeforeTheDamageAndTheNextReportsIt) {
  const std::string segment = files(".seg").at(2);
  overwrite(segment, page + 64 + 20, "broken");
  Queue queue = open(options);
  auto reader = queue.reader().value_or_throw();
  EXPECT_EQ(20U, reader.range(Offset{0}, Offset{50}).value_or_throw().size());
  EXPECT_EQ(Offset{20}, reader.position());
  EXPECT_EQ(ErrorCode::corrupt, reader.range(reader.position(), Offset{50}).error().code);
  EXPECT_EQ(Offset{21}, reader.position());
  EXPECT_EQ(29U, reader.range(reader.position(), Offset{50}).value_or_throw().size());
}

TEST_F(DamagedQueue, DamageToTheCursorsIsReportedWhenTheyAreOpened) {
  {
    open(options).cursor("worker").value_or_throw().dequeue().value_or_throw();
  }
  for (const std::uint64_t sector : {0U, 32U, 512U, 1024U})
    overwrite(directory + "/cursors.table", page + sector, "broken");
  Queue queue = open(options);
  const auto cursor = queue.cursor("worker");
  ASSERT_FALSE(cursor.ok());
  EXPECT_EQ(ErrorCode::corrupt, cursor.error().code);
  EXPECT_NE(std::string::npos, cursor.error().message.find("cursors.table")) << cursor.error().text();
  EXPECT_TRUE(queue.cursor("other").ok());
}

/// Creates a sparse, sealed segment file. It has no batches, so the test fails if anything reads them.
void make_segment(const std::string& directory, const log::SegmentHeader& header,
                  const log::SegmentSeal& seal) {
  const std::string path = directory + "/" + log::segment_name(header.first_offset);
  const int fd = ::open(path.c_str(), O_CREAT | O_RDWR, 0644);
  ASSERT_GE(fd, 0) << path;
  auto first_page = log::encode_segment_header(header);
  const auto sealed = log::encode_segment_seal(seal, header);
  std::copy(sealed.begin(), sealed.end(), first_page.begin() + log::segment_seal_position);
  ASSERT_EQ(static_cast<ssize_t>(first_page.size()), ::pwrite(fd, first_page.data(), first_page.size(), 0));
  ASSERT_EQ(0, ::ftruncate(fd, static_cast<off_t>(header.file_bytes)));
  ::close(fd);
}

/// The reads and page faults of this process since its start.
struct FileWork {
  std::uint64_t reads = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t touched_pages = 0;  // of mapped files and of its memory
};

FileWork file_work() {
  FileWork work;
  std::ifstream counters("/proc/self/io");
  std::string name;
  for (std::uint64_t value = 0; counters >> name >> value;) {
    if (name == "rchar:") work.read_bytes = value;
    if (name == "syscr:") work.reads = value;
  }
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  work.touched_pages = static_cast<std::uint64_t>(usage.ru_minflt + usage.ru_majflt);
  return work;
}

TEST_F(QueueTest, OpensAHundredGigabytesWithoutLookingAtABatch) {
  constexpr std::uint64_t segments = 1600;
  constexpr std::uint64_t messages = 500'000;  // in each segment
  constexpr std::uint64_t incarnation = 42;
  std::filesystem::create_directories(directory);
  const std::uint64_t bytes = 64 * limits::MiB + page;
  for (std::uint64_t i = 0; i < segments; ++i) {
    const Offset first{i * messages};
    const log::SegmentHeader header{static_cast<std::uint32_t>(i + 1), first, incarnation, bytes};
    log::SegmentSeal seal;
    seal.end_position = bytes;
    seal.end_offset = first + messages;
    seal.newest = {1'000'000};
    ASSERT_NO_FATAL_FAILURE(make_segment(directory, header, seal));
  }
  {
    Queue queue = open();
    EXPECT_EQ(Offset{segments * messages}, queue.next_offset());
    queue.enqueue("the first real one").value_or_throw();
    ASSERT_TRUE(queue.close().ok());
  }
  const FileWork before = file_work();
  Queue queue = open();
  const FileWork after = file_work();
  const std::uint64_t reads = after.reads - before.reads;
  const std::uint64_t read_bytes = after.read_bytes - before.read_bytes;
  const std::uint64_t pages = after.touched_pages - before.touched_pages;
  std::cout << "opening " << queue.stats().stored_bytes / 1'000'000'000 << " GB in " << segments
            << " segments: " << reads << " reads of " << read_bytes << " bytes, " << pages
            << " pages touched\n";
  constexpr std::uint64_t others = 16;  // reads of cursors and of other small files
  EXPECT_GE(reads, segments) << "else they were not counted";
  EXPECT_LE(reads, segments + others);
  EXPECT_LE(read_bytes, page * (segments + others));
  if (!sanitized) {
    EXPECT_LT(pages, segments / 4) << "a look at a batch of each segment touches one page at least";
  }
  EXPECT_TRUE(queue.recovery().clean);
  EXPECT_EQ(0U, queue.recovery().scanned_bytes);
  EXPECT_LT(100'000'000'000U, queue.stats().stored_bytes);
  auto reader = queue.reader(Start::at(Offset{segments * messages})).value_or_throw();
  EXPECT_EQ("the first real one", reader.next().value_or_throw()->text());
}

}  // namespace
}  // namespace lightq::test
