/// Tests a defect that the explorer of delivery has found: a start took cursors for durable although their
/// sync had failed in an earlier process, and a power cut during the next save left no sound file.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "explorer/crash_cuts.hpp"
#include "log/saved_state/cursor_file.hpp"
#include "support/explorer_storage.hpp"

namespace lightq::test {
namespace {

/// Returns cursors that take several sectors.
std::vector<log::NamedCursor> cursors_at(std::uint64_t offset) {
  std::vector<log::NamedCursor> cursors;
  for (int i = 0; i < 5; ++i)
    cursors.push_back({std::string(300, static_cast<char>('a' + i)), {offset + static_cast<unsigned>(i)}});
  return cursors;
}

TEST(FailedSlotSync, APowerCutDuringTheNextSaveLeavesASoundFile) {
  ExplorerWorld world;
  ExplorerStorage disk(world);
  ExplorerStorage after(world);
  {
    log::CursorFile file(disk, "/topic");
    for (const std::uint64_t offset : {10U, 20U}) {
      ASSERT_TRUE(file.write(log::CursorFile::encode(cursors_at(offset))));
    }
    ASSERT_TRUE(file.write(log::CursorFile::encode(cursors_at(30))));
    disk.on_call = [](ExplorerStorage::Call call, const std::string&) {
      return ExplorerStorage::Fault{call == ExplorerStorage::Call::sync ? EIO : 0, 0};
    };
    EXPECT_FALSE(file.write(log::CursorFile::encode(cursors_at(40))));
    disk.on_call = nullptr;
  }
  log::CursorFile next(disk, "/topic");
  ASSERT_EQ(next.load().value_or_throw(), cursors_at(40)) << "the system shows what it has not written";
  std::uint64_t states = 0;
  disk.on_step = [&] {
    const std::vector<CutAtom> atoms = disk.atoms();
    Cut cut(atoms.size(), 0);
    do {
      ++states;
      after.become(disk, atoms, cut);
      const auto found = log::CursorFile(after, "/topic").load();
      ASSERT_TRUE(found) << found.error().text();
      const bool is_one = *found == cursors_at(30) || *found == cursors_at(40) || *found == cursors_at(50);
      ASSERT_TRUE(is_one);
    } while (next_cut(atoms, cut));
  };
  ASSERT_TRUE(next.write(log::CursorFile::encode(cursors_at(50))));
  disk.on_step = nullptr;
  EXPECT_GT(states, 20U);
  EXPECT_EQ(log::CursorFile(disk, "/topic").load().value_or_throw(), cursors_at(50));
}

}  // namespace
}  // namespace lightq::test
