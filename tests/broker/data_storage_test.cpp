/// Tests of writes below a data directory that is moved away: broker/data_storage, broker/held_directory.
#include "broker/data_storage.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "log/segment_log/segment_log.hpp"
#include "log/storage/posix_storage.hpp"
#include "support/batches.hpp"
#include "support/temp_dir.hpp"

namespace lightq::broker {
namespace {

using lightq::test::TempDir;
using ::testing::HasSubstr;

class DataStorageTest : public ::testing::Test {
 protected:
  DataStorageTest() { std::filesystem::create_directories(path_ / "topics"); }
  /// Moves the directory and waits until `held_` has noticed, which it does only some time after its last
  /// check.
  void move(const std::filesystem::path& from, const std::filesystem::path& to) const {
    std::filesystem::rename(from, to);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    const bool expected = to == path_;
    while (held_->is_in_place() != expected && std::chrono::steady_clock::now() < until) {
    }
  }
  template <typename Value>
  static void expect_refused(const Result<Value>& answer) {
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.error().code, ErrorCode::no_space);
    EXPECT_THAT(answer.error().text(), HasSubstr("back at its path"));
  }

  const TempDir temp_;
  const std::filesystem::path path_ = temp_ / "data";
  const std::filesystem::path moved_ = temp_ / "moved";
  std::unique_ptr<const HeldDirectory> held_ = HeldDirectory::open(make(path_)).value_or_throw();
  log::PosixStorage files_;
  DataStorage storage_{files_, *held_};

 private:
  static const std::filesystem::path& make(const std::filesystem::path& path) {
    std::filesystem::create_directories(path);
    return path;
  }
};

TEST_F(DataStorageTest, WritesNothingWhileTheDirectoryIsNotInItsPlace) {
  const std::string topic = path_ / "topics/1";
  ASSERT_TRUE(storage_.make_directory(topic).ok());
  ASSERT_TRUE(storage_.make_directory(topic).ok()) << "it is there";
  auto file = storage_.open(topic + "/f", log::OpenMode::create).value_or_throw();
  ASSERT_TRUE(file->write_some(as_byte_view("a"), 0).ok());
  move(path_, moved_);
  for (const bool empty : {false, true}) {
    if (empty) std::filesystem::create_directories(path_);
    expect_refused(held_->check());
    expect_refused(file->write_some(as_byte_view("b"), 1));
    expect_refused(file->write_synced(as_byte_view("b"), 1));
    expect_refused(file->allocate(4096));
    expect_refused(storage_.open(topic + "/g", log::OpenMode::create));
    expect_refused(storage_.open(topic + "/f", log::OpenMode::read_write));
    expect_refused(storage_.make_directory(path_ / "topics"));
    expect_refused(storage_.rename(topic + "/f", topic + "/g"));
    expect_refused(storage_.link(topic + "/f", topic + "/g"));
    expect_refused(storage_.unlink(topic + "/f"));
    expect_refused(storage_.remove_directory(topic));
    EXPECT_TRUE(file->sync().ok()) << "what was written is where it was";
    EXPECT_TRUE(storage_.sync_directory(topic).ok());
    EXPECT_EQ(std::filesystem::exists(path_), empty);
  }
  EXPECT_TRUE(std::filesystem::is_empty(path_));
  std::filesystem::remove(path_);
  move(moved_, path_);
  EXPECT_TRUE(file->write_some(as_byte_view("b"), 1).ok());
  EXPECT_TRUE(storage_.open(topic + "/g", log::OpenMode::create).ok());
}

TEST_F(DataStorageTest, CreatesNoDirectoryAboveAMissingOne) {
  EXPECT_FALSE(storage_.make_directory(path_ / "lost/1").ok());
  EXPECT_FALSE(std::filesystem::exists(path_ / "lost"));
}

TEST_F(DataStorageTest, DetectsAReplacedDirectory) {
  move(path_, moved_);
  std::filesystem::copy(moved_, path_, std::filesystem::copy_options::recursive);
  EXPECT_FALSE(held_->is_in_place());
}

TEST_F(DataStorageTest, ALogContinuesWhenItsDirectoryIsBack) {
  log::SegmentPool pool({.directory = path_ / "pool"}, storage_);
  log::SegmentLogOptions options;
  options.directory = path_ / "topics/1";
  options.segment_bytes = 64 * limits::KiB;
  options.first_segment_bytes = 16 * limits::KiB;
  const auto append = [](log::Log& to) {
    BatchBuilder batch;
    batch.add(as_byte_view(std::string(1000, 'x')));
    return to.append(batch.finish(), Timestamp{1'000'000}).outcome;
  };
  auto log = log::SegmentLog::open(options, storage_, pool, Timestamp{1'000'000}).value_or_throw();
  for (int i = 0; i < 30; ++i) ASSERT_EQ(append(*log), log::AppendOutcome::appended);
  move(path_, moved_);
  for (int i = 0; i < 30; ++i) EXPECT_EQ(append(*log), log::AppendOutcome::no_space);
  EXPECT_TRUE(log->flush().ok());
  EXPECT_EQ(log->durable_offset(), Offset{30});
  EXPECT_FALSE(std::filesystem::exists(path_));
  move(moved_, path_);
  for (int i = 0; i < 30; ++i) EXPECT_EQ(append(*log), log::AppendOutcome::appended);
  EXPECT_TRUE(log->close().ok());
  log.reset();
  const auto again = log::SegmentLog::open(options, storage_, pool, Timestamp{1'000'000}).value_or_throw();
  EXPECT_EQ(again->next_offset(), Offset{60});
}

// Otherwise groups would skip messages that are sound.
TEST_F(DataStorageTest, NoMessageCountsAsDamagedWhileTheDirectoryIsNotInItsPlace) {
  log::SegmentPool pool({.directory = path_ / "pool"}, storage_);
  log::SegmentLogOptions options;
  options.directory = path_ / "topics/1";
  options.segment_bytes = 64 * limits::KiB;
  options.first_segment_bytes = 16 * limits::KiB;
  auto log = log::SegmentLog::open(options, storage_, pool, Timestamp{1'000'000}).value_or_throw();
  for (int i = 0; i < 30; ++i) {
    BatchBuilder batch;
    batch.add(as_byte_view(std::string(1000, 'x')));
    ASSERT_EQ(log->append(batch.finish(), Timestamp{1'000'000}).outcome, log::AppendOutcome::appended);
  }
  ASSERT_TRUE(log->flush().ok());
  ASSERT_GT(log->segments().size(), 1U);
  log.reset();
  log = log::SegmentLog::open(options, storage_, pool, Timestamp{1'000'000}).value_or_throw();
  move(path_, moved_);
  for (const bool empty : {false, true}) {
    if (empty) std::filesystem::create_directories(path_);
    for (const std::uint64_t offset : {0, 29}) {
      log::ReadPosition place{{offset}};
      EXPECT_EQ(log->read(place).outcome, log::ReadOutcome::unavailable) << offset;
    }
  }
  std::filesystem::remove(path_);
  move(moved_, path_);
  for (const std::uint64_t offset : {0, 29}) {
    log::ReadPosition place{{offset}};
    EXPECT_EQ(log->read(place).outcome, log::ReadOutcome::batch) << offset;
  }
}

}  // namespace
}  // namespace lightq::broker
