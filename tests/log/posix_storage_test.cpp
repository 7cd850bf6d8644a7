/// Tests the real file system, and a durable log on it.
#include "log/storage/posix_storage.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <filesystem>

#include "log/carried/carried_log.hpp"
#include "log/segment_log/segment_log.hpp"
#include "log/tools/repair.hpp"
#include "support/batches.hpp"
#include "support/log_fixture.hpp"
#include "support/temp_dir.hpp"

namespace lightq::log {
namespace {

TEST(PosixStorage, WritesReadsMapsAndListsFiles) {
  const test::TempDir dir;
  PosixStorage storage;
  ASSERT_TRUE(storage.make_directory(dir / "a/b").ok());
  auto file = storage.open(dir / "a/b/f", OpenMode::create);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->allocate(8192).ok());
  EXPECT_EQ(*(*file)->size_bytes(), 8192U);
  auto mapping = (*file)->map(8192);
  ASSERT_TRUE(mapping.ok());
  ASSERT_TRUE(write_all(**file, as_byte_view("hello"), 100).ok());
  EXPECT_EQ(as_text({(*mapping)->data() + 100, 5}), "hello");
  std::vector<std::byte> back(10);
  EXPECT_EQ(*read_all(**file, back, 8187), 5U);
  ASSERT_TRUE((*file)->sync().ok());
  ASSERT_TRUE(storage.rename(dir / "a/b/f", dir / "a/b/g").ok());
  ASSERT_TRUE(storage.sync_directory(dir / "a/b").ok());
  EXPECT_EQ(*storage.list(dir / "a/b"), std::vector<std::string>{"g"});
  ASSERT_TRUE(storage.unlink(dir / "a/b/g").ok());
  EXPECT_TRUE(storage.remove_directory(dir / "a/b").ok());
}

TEST(PosixStorage, CreatesNoFileThroughALinkAndDoesNotWaitForAFifo) {
  const test::TempDir dir;
  PosixStorage storage;
  ASSERT_TRUE(write_all(**storage.open(dir / "victim", OpenMode::create), as_byte_view("content"), 0).ok());
  std::filesystem::create_symlink("victim", dir / "link");
  EXPECT_FALSE(storage.open(dir / "link", OpenMode::create).ok());
  EXPECT_EQ(std::filesystem::file_size(dir / "victim"), 7U);
  ASSERT_EQ(::mkfifo((dir / "fifo").c_str(), 0600), 0);
  EXPECT_TRUE(may_exist(dir / "fifo", storage));  // returns
}

/// Returns the number of descriptors that this process has open.
std::ptrdiff_t descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

TEST(PosixStorage, AFileWithAReleasedDescriptorStillExists) {
  const test::TempDir dir;
  PosixStorage storage;
  auto file = storage.open(dir / "f", OpenMode::create).value_or_throw();
  ASSERT_TRUE(file->allocate(8192).ok());
  auto mapping = file->map_writable(8192).value_or_throw();
  mapping->data()[0] = std::byte{'a'};
  ASSERT_TRUE(storage.rename(dir / "f", dir / "g").ok());
  const auto open = descriptors();
  ASSERT_TRUE(file->release_descriptor(dir / "g"));
  EXPECT_EQ(open - 1, descriptors());
  EXPECT_TRUE(file->release_descriptor(dir / "g"));
  mapping->data()[1] = std::byte{'b'};
  ASSERT_TRUE(write_all(*file, as_byte_view("c"), 2).ok());
  ASSERT_TRUE(file->write_synced(as_byte_view("d"), 3).ok());
  ASSERT_TRUE(file->sync().ok());
  std::vector<std::byte> back(4);
  ASSERT_EQ(4U, *read_all(*file, back, 0));
  EXPECT_EQ("abcd", as_text(back));
  EXPECT_EQ(8192U, *file->size_bytes());
  EXPECT_TRUE(file->map(8192).ok());
  EXPECT_EQ(open - 1, descriptors());
}

TEST(PosixStorage, AReleasedFileIsNotMistakenForAnotherOfItsName) {
  const test::TempDir dir;
  PosixStorage storage;
  auto file = storage.open(dir / "f", OpenMode::create).value_or_throw();
  ASSERT_TRUE(file->allocate(8192).ok());
  ASSERT_TRUE(file->release_descriptor(dir / "f"));
  ASSERT_TRUE(storage.rename(dir / "f", dir / "g").ok());
  const auto other = storage.open(dir / "f", OpenMode::create).value_or_throw();
  EXPECT_FALSE(write_all(*file, as_byte_view("x"), 0).ok());
  EXPECT_FALSE(file->size_bytes().ok());
  EXPECT_TRUE(file->sync().ok());  // the written bytes, although the file has another name now
  EXPECT_EQ(0U, *other->size_bytes());
}

TEST(PosixStorage, AFileOpenedForReadingKeepsItsDescriptor) {
  const test::TempDir dir;
  PosixStorage storage;
  ASSERT_TRUE(storage.open(dir / "f", OpenMode::create).ok());
  const auto file = storage.open(dir / "f", OpenMode::read_only).value_or_throw();
  EXPECT_FALSE(file->release_descriptor(dir / "f"));
  EXPECT_EQ(0U, *file->size_bytes());
}

TEST(PosixStorage, PopulatesAnyRange) {
  const test::TempDir dir;
  PosixStorage storage;
  auto file = storage.open(dir / "f", OpenMode::create);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->allocate(40'000).ok());
  ASSERT_TRUE(write_all(**file, as_byte_view("hello"), 39'995).ok());
  auto mapping = (*file)->map(40'000);
  ASSERT_TRUE(mapping.ok());
  for (const auto& [begin, end] : {std::pair<std::size_t, std::size_t>{0, 40'000},
                                   {5000, 5001},
                                   {39'999, 1U << 30},
                                   {1U << 30, 1U << 31},
                                   {100, 50},
                                   {0, 0}}) {
    (*mapping)->populate(begin, end);
  }
  EXPECT_EQ("hello", as_text({(*mapping)->data() + 39'995, 5}));
  auto empty = storage.open(dir / "empty", OpenMode::create);
  ASSERT_TRUE(empty.ok());
  (*(*empty)->map(0))->populate(0, 4096);
}

TEST(PosixStorage, MapsNothingOfAnEmptyFile) {
  const test::TempDir dir;
  PosixStorage storage;
  auto file = storage.open(dir / "f", OpenMode::create);
  ASSERT_TRUE(file.ok());
  const auto mapping = (*file)->map(0);
  ASSERT_TRUE(mapping.ok()) << mapping.error().text();
  EXPECT_EQ((*mapping)->size(), 0U);
}

TEST(PosixStorage, StoresToAWritableMappingAreVisibleEverywhere) {
  const test::TempDir dir;
  PosixStorage storage;
  auto file = storage.open(dir / "f", OpenMode::create);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->allocate(4096).ok());
  auto writable = (*file)->map_writable(4096);
  ASSERT_TRUE(writable.ok()) << writable.error().text();
  EXPECT_EQ((*writable)->size(), 4096U);
  ASSERT_TRUE((*file)->allocate(8192).ok());
  auto grown = (*file)->map_writable(8192);
  ASSERT_TRUE(grown.ok());
  (*writable)->data()[100] = std::byte{7};
  EXPECT_EQ((*grown)->data()[100], std::byte{7});
  ASSERT_TRUE((*file)->sync().ok());
  file->reset();
  (*grown)->data()[5000] = std::byte{8};
  auto again = storage.open(dir / "f", OpenMode::read_only);
  std::vector<std::byte> back(8192);
  EXPECT_EQ(*read_all(**again, back, 0), 8192U);
  EXPECT_EQ(back[100], std::byte{7});
  EXPECT_EQ(back[5000], std::byte{8});
  EXPECT_FALSE((*again)->map_writable(4096).ok());
}

TEST(FaultyStorage, ForgetsStoresInAMappingThatWereNeitherSyncedNorWrittenBack) {
  test::FaultyStorage storage;
  {
    auto file = storage.open("/a/f", OpenMode::create);
    ASSERT_TRUE((*file)->allocate(2048).ok());
    ASSERT_TRUE(storage.sync_directory("/a").ok());
    auto mapping = (*file)->map_writable(2048);
    ASSERT_TRUE(mapping.ok());
    (*mapping)->data()[0] = std::byte{1};
    ASSERT_TRUE((*file)->sync().ok());
    (*mapping)->data()[0] = std::byte{2};
    (*mapping)->data()[512] = std::byte{3};
    storage.write_back([first = true]() mutable { return !std::exchange(first, false); });
    (*mapping)->data()[512] = std::byte{4};
    (*mapping)->data()[1024] = std::byte{5};
    ASSERT_TRUE((*file)->allocate(4096).ok());
    EXPECT_EQ((*mapping)->data()[0], std::byte{2});
  }
  storage.power_cut([] { return false; });
  const auto& bytes = storage.bytes_of("/a/f");
  EXPECT_EQ(bytes[0], std::byte{1});
  EXPECT_EQ(bytes[512], std::byte{3});
  EXPECT_EQ(bytes[1024], std::byte{0});
}

TEST(PosixStorage, GivesAFileASecondNameAndCountsBoth) {
  const test::TempDir dir;
  PosixStorage storage;
  ASSERT_TRUE(storage.open(dir / "a", OpenMode::create).ok());
  EXPECT_EQ(*storage.link_count(dir / "a"), 1U);
  ASSERT_TRUE(storage.link(dir / "a", dir / "b").ok());
  EXPECT_EQ(*storage.link_count(dir / "b"), 2U);
  EXPECT_FALSE(storage.link(dir / "a", dir / "b").ok());
  ASSERT_TRUE(storage.unlink(dir / "a").ok());
  EXPECT_EQ(*storage.link_count(dir / "b"), 1U);
  EXPECT_TRUE(is_missing(storage.link_count(dir / "a").error()));
}

// A topic that was repaired can be deleted like any other.
TEST(PosixStorage, HoldsALogThatIsRepairedInPlaceAndThenRemoved) {
  const test::TempDir dir;
  PosixStorage storage;
  SegmentPool pool({dir / "pool"}, storage);
  SegmentLogOptions options;
  options.directory = dir / "log";
  const auto open = [&] { return std::move(SegmentLog::open(options, storage, pool, {}).value()); };
  auto batch = test::make_batch({"a", "b"});
  {
    auto log = open();
    for (int i = 0; i < 3; ++i) ASSERT_EQ(log->append(batch, {}).outcome, AppendOutcome::appended);
  }
  auto file = storage.open(dir / "log/" + segment_name({0}), OpenMode::read_write);
  ASSERT_TRUE(write_all(**file, as_byte_view("?"), segment_header_bytes + 70).ok());
  const auto repaired = repair_in_place(dir / "log", {}, storage);
  ASSERT_TRUE(repaired.ok()) << repaired.error().text();
  EXPECT_EQ(repaired->messages, 4U);
  auto log = open();
  EXPECT_TRUE(log->recovery().clean()) << log->recovery().text();
  EXPECT_EQ(log->first_offset(), Offset{2});
  EXPECT_TRUE(log->destroy().ok());
  EXPECT_FALSE(std::filesystem::exists(dir / "log"));
}

// An end of the broker may have left them there empty, and a repair of the schedule its damaged files.
TEST(PosixStorage, ALogIsRemovedWithTheDirectoriesInIt) {
  const test::TempDir dir;
  PosixStorage storage;
  SegmentPool pool({dir / "pool"}, storage);
  SegmentLogOptions options;
  options.directory = dir / "log";
  auto log = std::move(SegmentLog::open(options, storage, pool, {}).value());
  auto batch = test::make_batch({"a"});
  ASSERT_EQ(log->append(batch, {}).outcome, AppendOutcome::appended);
  ASSERT_TRUE(storage.make_directory(dir / "log/carried"));
  ASSERT_TRUE(storage.make_directory(dir / "log/delayed/damaged-1"));
  ASSERT_TRUE(storage.open(dir / "log/delayed/damaged-1/file", OpenMode::create));
  const auto carried = CarriedLog::open(options, 0, {}, storage, pool, {});
  ASSERT_TRUE(carried.ok());
  EXPECT_TRUE((*carried)->destroy().ok());
  EXPECT_FALSE(std::filesystem::exists(dir / "log/carried"));
  ASSERT_TRUE(storage.make_directory(dir / "log/carried"));
  EXPECT_TRUE(log->destroy().ok());
  EXPECT_FALSE(std::filesystem::exists(dir / "log"));
}

TEST(PosixStorage, ReportsMissingFiles) {
  const test::TempDir dir;
  PosixStorage storage;
  const auto file = storage.open(dir / "none", OpenMode::read_only);
  ASSERT_FALSE(file.ok());
  EXPECT_TRUE(is_missing(file.error()));
  EXPECT_NE(file.error().message.find("none"), std::string::npos);
  const auto names = storage.list(dir / "none");
  ASSERT_FALSE(names.ok());
  EXPECT_TRUE(is_missing(names.error()));
  EXPECT_TRUE(list_if_there(dir / "none", storage)->empty());
  EXPECT_GT(*storage.free_bytes(dir / "none/below"), 0U);
  EXPECT_FALSE(storage.sync_directory(dir / "none").ok());
}

TEST(PosixStorage, DistinguishesAFullDiskFromOtherErrors) {
  const test::TempDir dir;
  PosixStorage storage;
  auto file = storage.open(dir / "f", OpenMode::create);
  ASSERT_TRUE(file.ok());
  EXPECT_FALSE((*file)->allocate(std::uint64_t{1} << 62).ok());
  auto full = storage.open("/dev/full", OpenMode::read_write);
  ASSERT_TRUE(full.ok()) << full.error().text();
  EXPECT_EQ((*full)->write_some(as_byte_view("x"), 0).error().code, ErrorCode::no_space);
}

TEST(PosixStorage, CarriesADurableLogOverReopening) {
  const test::TempDir dir;
  PosixStorage storage;
  SegmentPool pool({dir / "pool"}, storage);
  SegmentLogOptions options{dir / "topics/1"};
  options.segment_bytes = 256 * limits::KiB;
  options.retention_bytes = 500'000;
  Timestamp now{1};
  std::uint64_t appended = 0;
  for (int round = 0; round < 5; ++round) {
    auto log = SegmentLog::open(options, storage, pool, now);
    ASSERT_TRUE(log.ok()) << log.error().text();
    EXPECT_TRUE((*log)->recovery().clean()) << (*log)->recovery().text();
    ASSERT_EQ((*log)->next_offset().value, appended);
    for (int i = 0; i < 100; ++i, ++appended) {
      auto batch = test::make_batch({std::to_string(appended) + std::string(20'000, 'd')});
      ASSERT_EQ((*log)->append(batch, now).outcome, AppendOutcome::appended);
      now.us += 10'000;
      (*log)->maintain(now);
      if (const auto job = (*log)->take_disk_job(now)) {
        job->run();
        job->finish();
      }
    }
    const auto messages = test::read_everything(**log, (*log)->first_offset());
    ASSERT_EQ(messages.size(), distance((*log)->first_offset(), (*log)->next_offset()));
    for (const auto& message : messages) {
      ASSERT_TRUE(message.payload.starts_with(std::to_string(message.offset.value) + "d"));
    }
  }
  EXPECT_TRUE(pool.files() > 0 || std::filesystem::exists(dir / "topics/1/next.prepared"));
}

TEST(Storage, IgnoresTrailingSlashesOfADirectory) {
  EXPECT_EQ(parent_of("a/b/c"), "a/b");
  EXPECT_EQ(parent_of("a/b/c/"), "a/b");
  EXPECT_EQ(parent_of("/a//"), "/");
  EXPECT_EQ(parent_of("a/"), ".");
  EXPECT_EQ(parent_of("/"), "/");
}

}  // namespace
}  // namespace lightq::log
