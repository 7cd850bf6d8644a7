/// Cursors on disk: two files in turn, and what a torn write leaves.
#include "log/cursor_file.hpp"

#include <gtest/gtest.h>

#include "support/faulty_storage.hpp"

namespace lightq::log {
namespace {

using test::FaultyStorage;

using Cursors = std::vector<NamedCursor>;
const Cursors first = {{"default", {7}}, {"billing", {~std::uint64_t{0}}}};
const Cursors second = {{"default", {8}}};
const Cursors third = {{"default", {9}}, {"", {1}}, {std::string(65535, 'n'), {2}}};

class CursorFileTest : public testing::Test {
 protected:
  Result<void> write(const Cursors& cursors) { return file.write(CursorFile::encode(cursors)); }
  Result<Cursors> load() { return CursorFile(storage, "/topics/1").load(); }

  FaultyStorage storage;
  CursorFile file{storage, "/topics/1"};
};

TEST_F(CursorFileTest, IsEmptyBeforeTheFirstWrite) {
  EXPECT_EQ(*load(), Cursors{});
  EXPECT_TRUE(storage.paths().empty());
}

TEST_F(CursorFileTest, LoadsWhatWasWrittenLast) {
  for (const auto& cursors : {first, second, third, second, Cursors{}}) {
    ASSERT_TRUE(write(cursors).ok());
    EXPECT_EQ(*load(), cursors);
  }
  EXPECT_EQ(storage.paths().size(), 2U);
}

TEST_F(CursorFileTest, GoesOnInTurnAfterARestart) {
  ASSERT_TRUE(write(first).ok());
  CursorFile again(storage, "/topics/1");
  ASSERT_TRUE(again.write(CursorFile::encode(second)).ok());
  EXPECT_EQ(*load(), second);
  storage.bytes_of("/topics/1/cursors.1")[40] ^= std::byte{1};
  EXPECT_EQ(*load(), first);
}

TEST_F(CursorFileTest, FallsBackWhicheverByteOfTheNewestIsDamaged) {
  ASSERT_TRUE(write(first).ok());
  ASSERT_TRUE(write(second).ok());
  const auto good = storage.bytes_of("/topics/1/cursors.1");
  for (std::size_t at = 0; at < good.size(); ++at) {
    storage.bytes_of("/topics/1/cursors.1")[at] ^= std::byte{0x20};
    CursorFile damaged(storage, "/topics/1");
    const auto loaded = damaged.load();
    ASSERT_TRUE(loaded.ok()) << at;
    EXPECT_EQ(*loaded, first) << at;
    ASSERT_TRUE(damaged.passed_over().has_value());
    EXPECT_NE(damaged.passed_over()->message.find("cursors.1"), std::string::npos);
    storage.bytes_of("/topics/1/cursors.1") = good;
  }
  for (std::size_t size = 0; size < good.size(); ++size) {
    storage.bytes_of("/topics/1/cursors.1").resize(size);
    EXPECT_EQ(*load(), first) << size;
    storage.bytes_of("/topics/1/cursors.1") = good;
  }
}

TEST_F(CursorFileTest, SaysSoWhenNothingSoundIsLeft) {
  ASSERT_TRUE(write(first).ok());
  storage.bytes_of("/topics/1/cursors.0").back() ^= std::byte{1};
  EXPECT_EQ(load().error().code, ErrorCode::corrupt);
  storage.bytes_of("/topics/1/cursors.0")[8] = std::byte{9};
  EXPECT_EQ(load().error().code, ErrorCode::foreign_format);
  EXPECT_TRUE(write(second).ok());
  EXPECT_EQ(*load(), second);
}

// Two failures in a row must not eat both files: the second goes where the first went.
TEST_F(CursorFileTest, KeepsTheLastGoodOneOverAnyNumberOfFailedWrites) {
  ASSERT_TRUE(write(first).ok());
  ASSERT_TRUE(write(second).ok());
  for (int round = 0; round < 3; ++round) {
    storage.on_call = [n = 0](FaultyStorage::Call call, const std::string&) mutable {
      if (call != FaultyStorage::Call::write) return FaultyStorage::Fault{};
      return ++n == 1 ? FaultyStorage::Fault{0, 20} : FaultyStorage::Fault{ENOSPC, 0};
    };
    EXPECT_EQ(write(third).error().code, ErrorCode::no_space);
    storage.on_call = nullptr;
    EXPECT_EQ(*load(), second);
  }
  ASSERT_TRUE(write(third).ok());
  EXPECT_EQ(*load(), third);
}

TEST_F(CursorFileTest, SurvivesAPowerCutOnceWritten) {
  for (const auto& cursors : {first, second, third}) {
    ASSERT_TRUE(write(cursors).ok());
    storage.power_cut([] { return false; });
    EXPECT_EQ(*load(), cursors);
  }
}

}  // namespace
}  // namespace lightq::log
