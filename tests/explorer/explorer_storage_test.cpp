/// Tests the explored disk: its content, and the disks that a power cut can leave.
#include "support/explorer_storage.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>

namespace lightq::test {
namespace {

class ExplorerStorageTest : public testing::Test {
 protected:
  ExplorerStorageTest() {
    EXPECT_TRUE(disk.make_directory("/d").ok());
    disk.settle();
    auto opened = disk.open("/d/file", log::OpenMode::create);
    file = std::move(*opened);
    EXPECT_TRUE(file->allocate(2048).ok());
    disk.settle();
  }
  void write(char fill, std::size_t bytes, std::uint64_t position) {
    const std::string text(bytes, fill);
    ASSERT_EQ(*file->write_some(as_byte_view(text), position), bytes);
  }
  /// Returns the first byte of each sector of `path` on every disk that a power cut may leave. "-" means that
  /// the file does not exist.
  std::multiset<std::string> all_cuts(const std::string& path = "/d/file") {
    std::multiset<std::string> found;
    const std::vector<CutAtom> atoms = disk.atoms();
    Cut cut(atoms.size(), 0);
    for (std::size_t at = 0;;) {
      after.become(disk, atoms, cut);
      std::string heads = after.exists(path) ? "" : "-";
      for (std::size_t i = 0; after.exists(path) && i < after.size_of(path); i += 512) {
        const char head = static_cast<char>(after.bytes_of(path)[i]);
        heads += head == 0 ? '.' : head;
      }
      found.insert(heads);
      for (at = 0; at < cut.size() && ++cut[at] == atoms[at].versions; ++at) cut[at] = 0;
      if (at == cut.size()) return found;
    }
  }

  ExplorerWorld world;
  ExplorerStorage disk{world};
  ExplorerStorage after{world};
  std::unique_ptr<log::File> file;
};

using Heads = std::multiset<std::string>;

TEST_F(ExplorerStorageTest, LeavesEverySubsetOfTheSectorsOfAWrite) {
  write('a', 1024, 512);
  EXPECT_EQ(all_cuts(), (Heads{"....", ".a..", "..a.", ".aa."}));
  ASSERT_TRUE(file->sync().ok());
  EXPECT_EQ(all_cuts(), Heads{".aa."});
}

TEST_F(ExplorerStorageTest, LeavesAnyOfTheVersionsOfASector) {
  write('a', 512, 0);
  write('b', 512, 0);
  EXPECT_EQ(all_cuts(), (Heads{"....", "a...", "b..."}));
}

TEST_F(ExplorerStorageTest, AFailedSyncLosesAllBytesThatNeedAnotherWrite) {
  write('a', 512, 0);
  write('a', 512, 512);
  disk.on_call = [](ExplorerStorage::Call, const std::string&) { return ExplorerStorage::Fault{EIO, 0}; };
  ASSERT_FALSE(file->sync().ok());
  disk.on_call = nullptr;
  write('b', 512, 512);
  ASSERT_TRUE(file->sync().ok());
  EXPECT_EQ(all_cuts(), (Heads{".b..", "ab.."}));
}

TEST_F(ExplorerStorageTest, ANameIsOnDiskOnceItsDirectoryIsSynced) {
  ASSERT_TRUE(disk.rename("/d/file", "/d/new").ok());
  EXPECT_EQ(all_cuts("/d/new"), (Heads{"-", "...."}));
  ASSERT_TRUE(disk.sync_directory("/d").ok());
  EXPECT_EQ(all_cuts("/d/new"), Heads{"...."});
}

TEST_F(ExplorerStorageTest, SyncingADirectoryDoesNotSyncItsOwnName) {
  ASSERT_TRUE(disk.make_directory("/e").ok());
  ASSERT_TRUE(disk.rename("/d/file", "/e/file").ok());
  ASSERT_TRUE(disk.sync_directory("/e").ok());
  EXPECT_EQ(all_cuts("/e/file"), (Heads{"-", "...."}));
  ASSERT_TRUE(disk.sync_directory("/").ok());
  EXPECT_EQ(all_cuts("/e/file"), Heads{"...."});
}

TEST_F(ExplorerStorageTest, StoresToAMappingMayBeLostSectorBySector) {
  std::byte* bytes = disk.stored_to("/d/file");
  bytes[0] = std::byte{'a'};
  bytes[1024] = std::byte{'b'};
  EXPECT_EQ(all_cuts(), (Heads{"....", "a...", "..b.", "a.b."}));
  ASSERT_TRUE(file->sync().ok());
  bytes[0] = std::byte{'c'};
  EXPECT_EQ(all_cuts(), (Heads{"a.b.", "c.b."}));
}

TEST_F(ExplorerStorageTest, AFileMappedForWritingLosesUnsyncedStores) {
  auto mapped = file->map_writable(1024);
  ASSERT_TRUE(mapped.ok());
  (*mapped)->data()[600] = std::byte{'x'};
  (*mapped)->data()[512] = std::byte{'a'};
  EXPECT_EQ(all_cuts(), (Heads{"....", ".a.."}));
  mapped->reset();
  ASSERT_TRUE(file->sync().ok());
  EXPECT_EQ(all_cuts(), Heads{".a.."});
}

}  // namespace
}  // namespace lightq::test
