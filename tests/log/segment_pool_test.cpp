/// Tests files in the pool: their mappings, their epochs, and which of them are synced.
#include "log/segment/segment_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>

#include "log/storage/posix_storage.hpp"
#include "support/faulty_storage.hpp"
#include "support/temp_dir.hpp"

namespace lightq::test {
namespace {

constexpr std::uint64_t file_bytes = 64 * limits::KiB;

class SegmentPoolTest : public ::testing::Test {
 protected:
  /// Creates a file for the pool, with a mapping if `with_mapping`. Returns a weak reference to the mapping.
  std::weak_ptr<log::WritableMapping> retire(bool with_mapping) {
    const std::string path = directory.path() + "/" + std::to_string(files_++);
    auto prepared = pool.prepare(path, file_bytes, 1, {}).value_or_throw();
    std::shared_ptr<log::WritableMapping> mapping;
    if (with_mapping) mapping = prepared.file->map_writable(file_bytes).value_or_throw();
    const std::weak_ptr<log::WritableMapping> seen = mapping;
    retired_.push_back({path, std::move(mapping)});
    return seen;
  }
  void into_the_pool() {
    for (auto& [path, mapping] : retired_) {
      ASSERT_TRUE(pool.retire({path, file_bytes, std::move(mapping)}).ok());
    }
    retired_.clear();
  }

  TempDir directory;
  log::PosixStorage storage;
  log::SegmentPool pool{{directory.path() + "/pool"}, storage};

 private:
  int files_ = 0;
  std::vector<std::pair<std::string, std::shared_ptr<log::WritableMapping>>> retired_;
};

TEST_F(SegmentPoolTest, AFileThatHasItsMappingIsTakenFirst) {
  retire(false);
  const auto mapping = retire(true);
  retire(false);
  into_the_pool();
  const auto first = pool.prepare(directory.path() + "/next", file_bytes, 1, {}).value_or_throw();
  ASSERT_NE(first.mapping, nullptr);
  EXPECT_EQ(first.mapping, mapping.lock());
  EXPECT_EQ(pool.prepare(directory.path() + "/after", file_bytes, 1, {}).value_or_throw().mapping, nullptr);
}

TEST_F(SegmentPoolTest, MappingsAreGivenUpWithoutTheirFiles) {
  const auto mapping = retire(true);
  into_the_pool();
  ASSERT_FALSE(mapping.expired());
  pool.unmap();
  EXPECT_TRUE(mapping.expired());
  EXPECT_EQ(pool.files(), 1U);
  const auto next = pool.prepare(directory.path() + "/next", file_bytes, 1, {}).value_or_throw();
  EXPECT_EQ(next.mapping, nullptr);
  EXPECT_EQ(pool.files(), 0U);
}

TEST_F(SegmentPoolTest, FilesMakeWayOnAFullDisk) {
  const auto mapping = retire(true);
  retire(false);
  into_the_pool();
  {
    log::SegmentPool later({directory.path() + "/pool"}, storage);  // its constructor finds the files
    later.free_disk();
    EXPECT_EQ(later.files(), 0U);
  }
  EXPECT_TRUE(storage.list(directory.path() + "/pool").value_or_throw().empty());
  retire(false);
  retire(false);
  into_the_pool();
  pool.free_disk();
  EXPECT_EQ(pool.files(), 0U);
  EXPECT_TRUE(mapping.expired());
  EXPECT_TRUE(storage.list(directory.path() + "/pool").value_or_throw().empty());
}

TEST_F(SegmentPoolTest, AFileThatStaysInPlaceHasNoOtherOwner) {
  retire(false);
  into_the_pool();
  const std::string path = directory.path() + "/next";
  const auto taken =
      pool.prepare(path, file_bytes, 1, {}, log::NewBytes::reserved, 0, log::RecycledFile::stays)
          .value_or_throw();
  EXPECT_EQ(log::parent_of(taken.path), directory.path() + "/pool");
  EXPECT_TRUE(storage.link_count(taken.path).ok());
  EXPECT_FALSE(storage.link_count(path).ok());
  EXPECT_EQ(pool.files(), 0U);
  const auto made =
      pool.prepare(path, file_bytes, 1, {}, log::NewBytes::reserved, 0, log::RecycledFile::stays)
          .value_or_throw();
  EXPECT_EQ(made.path, path);
  // If the process ends here, the file has no name in the log. The next process finds it in the pool and uses
  // it under a higher epoch.
  log::SegmentPool next({directory.path() + "/pool"}, storage);
  EXPECT_EQ(next.files(), 1U);
  const auto again = next.prepare(directory.path() + "/again", file_bytes, 1, {}).value_or_throw();
  EXPECT_LT(taken.header.epoch, again.header.epoch);
}

/// Tests files that a log gives to a pool, and counts syncs.
class SegmentPoolSyncTest : public ::testing::Test {
 protected:
  using Call = FaultyStorage::Call;
  static constexpr std::uint64_t ours = 1;
  static constexpr std::uint64_t another = 2;

  SegmentPoolSyncTest() {
    storage.on_call = [this](Call call, const std::string&) {
      syncs += call == Call::sync ? 1 : 0;
      directory_syncs += call == Call::sync_directory ? 1 : 0;
      return FaultyStorage::Fault{};
    };
  }
  log::SegmentHeader prepare(std::uint64_t incarnation = ours) {
    return pool.prepare("/log/next", file_bytes, incarnation, {}).value_or_throw().header;
  }
  /// Gives the file to the pool, with the header that its log knows, or with none if an earlier process began
  /// the file.
  void retire(std::optional<log::SegmentHeader> header) {
    ASSERT_TRUE(pool.retire({"/log/next", file_bytes, nullptr, header}).ok());
    syncs = 0;
  }
  /// Writes a header with this epoch, as if the file had been used so often.
  log::SegmentHeader with_epoch(log::SegmentHeader header, std::uint32_t epoch) {
    header.epoch = epoch;
    const auto page = log::encode_segment_header(header);
    std::copy(page.begin(), page.end(), storage.bytes_of("/log/next").begin());
    return header;
  }

  FaultyStorage storage;
  log::SegmentPool pool{{"/pool"}, storage};
  int syncs = 0;
  int directory_syncs = 0;
};

TEST_F(SegmentPoolSyncTest, AFileOfTheSameLogGetsTheNextEpochWithoutASync) {
  const auto first = with_epoch(prepare(), 7);
  retire(first);
  const auto second = prepare();
  EXPECT_EQ(second.epoch, 8U);
  EXPECT_EQ(syncs, 0);
}

TEST_F(SegmentPoolSyncTest, AHeaderThatWasFoundMayNotBeTheLastThatWasWritten) {
  with_epoch(prepare(), 0x50007);
  retire(std::nullopt);
  const auto second = prepare();
  EXPECT_EQ(second.epoch, 0x60000U);
  EXPECT_EQ(syncs, 1);
}

TEST_F(SegmentPoolSyncTest, UnsyncedEpochsEndBeforeTheOneAfterAFoundHeader) {
  const auto first = with_epoch(prepare(), 0x5FFFE);
  retire(first);
  const auto second = prepare();
  EXPECT_EQ(second.epoch, 0x5FFFFU);
  EXPECT_EQ(syncs, 0);
  retire(second);
  const auto third = prepare();
  EXPECT_EQ(third.epoch, 0x60000U);
  EXPECT_EQ(syncs, 1);
  retire(third);
  EXPECT_EQ(prepare().epoch, 0x60001U);
  EXPECT_EQ(syncs, 0);
}

TEST_F(SegmentPoolSyncTest, TheEpochAfterTheLastOneIsNotZero) {
  const auto first = with_epoch(prepare(), 0xFFFFFFFF);
  retire(first);
  EXPECT_EQ(prepare().epoch, 1U);
  EXPECT_EQ(syncs, 1);
}

// A client of the other log may have stored bytes that look like batches of this log.
TEST_F(SegmentPoolSyncTest, AFileOfAnotherLogIsNotRecycled) {
  for (const bool found : {false, true}) {
    const auto first = prepare(another);
    storage.bytes_of("/log/next").back() = std::byte{'x'};
    retire(found ? std::nullopt : std::optional(first));
    EXPECT_EQ(prepare(ours).incarnation, ours);
    EXPECT_EQ(storage.bytes_of("/log/next").back(), std::byte{0});
    EXPECT_EQ(pool.files(), 1U) << "it is kept for its own log";
    ASSERT_TRUE(storage.unlink("/log/next").ok());
    prepare(another);
    EXPECT_EQ(storage.bytes_of("/log/next").back(), std::byte{'x'});
    EXPECT_EQ(pool.files(), 0U);
    ASSERT_TRUE(storage.unlink("/log/next").ok());
  }
}

TEST_F(SegmentPoolSyncTest, AnotherProcessLearnsTheOwnersOfTheFiles) {
  retire(prepare(another));
  log::SegmentPool next({"/pool"}, storage);
  EXPECT_EQ(next.prepare("/log/ours", file_bytes, ours, {}).value_or_throw().header.incarnation, ours);
  EXPECT_EQ(next.files(), 1U);
  EXPECT_EQ(next.prepare("/log/its", file_bytes, another, {}).value_or_throw().header.incarnation, another);
  EXPECT_EQ(next.files(), 0U);
}

TEST_F(SegmentPoolSyncTest, AFileWithoutASoundHeaderHasNoOwner) {
  prepare();
  storage.bytes_of("/log/next")[20] ^= std::byte{1};
  storage.bytes_of("/log/next").back() = std::byte{'x'};
  retire(std::nullopt);
  prepare();
  EXPECT_EQ(storage.bytes_of("/log/next").back(), std::byte{0});
}

// The disk has too little space for both files.
TEST_F(SegmentPoolSyncTest, OnAFullDiskANewFileReplacesAnotherLogsFileInThePool) {
  const auto first = prepare(another);
  storage.bytes_of("/log/next").back() = std::byte{'x'};
  retire(first);
  storage.disk_bytes = 2 * file_bytes;
  const log::SpaceWanted wanted{.free_bytes_floor = 2 * file_bytes};
  const auto made = pool.prepare("/log/next", file_bytes, ours, wanted).value_or_throw();
  EXPECT_EQ(made.header.incarnation, ours);
  EXPECT_EQ(storage.bytes_of("/log/next").back(), std::byte{0});
  EXPECT_EQ(pool.files(), 0U);
  EXPECT_FALSE(pool.prepare("/log/more", file_bytes, ours, wanted).ok());
}

TEST_F(SegmentPoolSyncTest, AFullPoolRemovesFilesThatNoLogHasNeededForLong) {
  log::SegmentPool small{{"/pool", 1}, storage};
  const auto come = [&](std::uint64_t incarnation) {
    const auto made = small.prepare("/log/next", file_bytes, incarnation, {}).value_or_throw();
    ASSERT_TRUE(small.retire({"/log/next", file_bytes, nullptr, made.header}).ok());
  };
  const auto keeps = [&](std::uint64_t incarnation) {
    const auto made = small.prepare("/log/kept", file_bytes, incarnation, {}).value_or_throw();
    const bool kept = small.files() == 0;
    if (kept) {
      EXPECT_TRUE(small.retire({"/log/kept", file_bytes, nullptr, made.header}).ok());
    } else {
      EXPECT_TRUE(storage.unlink("/log/kept").ok());
    }
    return kept;
  };
  come(another);
  for (int i = 0; i < 100; ++i) come(ours);
  EXPECT_TRUE(keeps(another)) << "the pool is full of it";
  for (int i = 0; i < 200; ++i) come(ours);
  EXPECT_TRUE(keeps(ours));
}

TEST_F(SegmentPoolSyncTest, ManyFilesAreRetiredWithOneSyncOfTheirDirectory) {
  std::vector<log::FreeFile> files;
  for (int i = 0; i < 5; ++i) {
    const std::string path = "/log/" + std::to_string(i);
    const auto prepared = pool.prepare(path, file_bytes, ours, {}).value_or_throw();
    files.push_back({path, file_bytes, nullptr, prepared.header});
  }
  directory_syncs = 0;
  std::size_t done = 0;
  ASSERT_TRUE(pool.retire(files, done).ok());
  EXPECT_EQ(done, 5U);
  EXPECT_EQ(pool.files(), 5U);
  EXPECT_EQ(directory_syncs, 1);
}

TEST_F(SegmentPoolSyncTest, NoMoreFilesEnterThePoolThanItHasPlacesFor) {
  log::SegmentPool small{{"/pool", 2}, storage};
  std::vector<log::FreeFile> files;
  for (int i = 0; i < 5; ++i) {
    const std::string path = "/log/" + std::to_string(i);
    const auto prepared = small.prepare(path, file_bytes, ours, {}).value_or_throw();
    files.push_back({path, file_bytes, nullptr, prepared.header});
  }
  std::size_t done = 0;
  ASSERT_TRUE(small.retire(files, done).ok());
  EXPECT_EQ(done, 5U);
  EXPECT_EQ(small.files(), 2U);
  EXPECT_EQ(storage.paths().size(), 2U);
}

// Without this rule, a power cut could restore the old name of a file that is now another segment.
TEST_F(SegmentPoolSyncTest, FilesWithOldNamesThatMayReappearAreNotRecycled) {
  const auto header = prepare();
  storage.on_call = [](Call call, const std::string&) {
    return FaultyStorage::Fault{call == Call::sync_directory ? EIO : 0, 0};
  };
  std::vector<log::FreeFile> files{{"/log/next", file_bytes, nullptr, header}};
  std::size_t done = 0;
  ASSERT_TRUE(pool.retire(files, done).ok());
  EXPECT_EQ(done, 1U);
  EXPECT_EQ(pool.files(), 0U);
  EXPECT_TRUE(storage.paths().empty());
}

TEST_F(SegmentPoolSyncTest, ASmallNewFileIsWrittenWithZeros) {
  std::uint64_t most = 0;
  storage.on_call = [&](Call call, const std::string&) {
    most += call == Call::write ? 1 : 0;
    return FaultyStorage::Fault{};
  };
  const auto made = pool.prepare("/log/next", file_bytes, ours, {}, log::NewBytes::written).value_or_throw();
  EXPECT_EQ(most, 1U);
  const auto& bytes = storage.bytes_of("/log/next");
  ASSERT_EQ(bytes.size(), file_bytes);
  EXPECT_TRUE(std::all_of(bytes.begin() + log::segment_header_bytes, bytes.end(),
                          [](std::byte byte) { return byte == std::byte{0}; }));
}

}  // namespace
}  // namespace lightq::test
