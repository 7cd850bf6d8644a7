/// Tests named cursors in one mapped file: the state that the table keeps, and its errors and reports.
#include "log/saved_state/cursor_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/faulty_storage.hpp"

namespace lightq::log {
namespace {

using test::FaultyStorage;
using testing::HasSubstr;

constexpr std::uint64_t incarnation = 77;
const std::string directory = "/queue";
const std::string path = "/queue/cursors.table";

class CursorTableTest : public testing::Test {
 protected:
  /// Drops an open table without closing it, as SIGKILL would, and opens the file again.
  Result<void> open(std::uint64_t of = incarnation) {
    table.reset();
    auto opened = CursorTable::open(storage, directory, of);
    if (!opened) return opened.error();
    table = std::move(*opened);
    return {};
  }
  void make() {
    auto made = CursorTable::make(storage, directory, incarnation);
    ASSERT_TRUE(made.ok()) << made.error().text();
    table = std::move(*made);
  }
  TableCursor& create(const std::string& name, std::uint64_t committed = 0) {
    auto created = table->create(name, {committed});
    EXPECT_TRUE(created.ok()) << created.error().text();
    return **created;
  }
  TableCursor* find(const std::string& name) {
    auto found = table->find(name);
    EXPECT_TRUE(found.ok()) << found.error().text();
    return found ? *found : nullptr;
  }
  std::vector<std::byte>& bytes() { return storage.bytes_of(path); }
  void fail_next(FaultyStorage::Call which, int skip = 0) {
    storage.on_call = [which, skip](FaultyStorage::Call call, const std::string&) mutable {
      return FaultyStorage::Fault{call == which && skip-- == 0 ? EIO : 0, 0};
    };
  }

  FaultyStorage storage;
  std::unique_ptr<CursorTable> table;
};

TEST_F(CursorTableTest, DistinguishesAMissingTableFromADamagedOne) {
  const auto opened = open();
  ASSERT_FALSE(opened.ok());
  EXPECT_TRUE(is_missing(opened.error()));
  make();
  EXPECT_EQ(CursorTable::make(storage, directory, incarnation).error().code, ErrorCode::invalid_argument);
  storage.power_cut([] { return false; });
  EXPECT_TRUE(open().ok()) << "made means durable";
}

TEST_F(CursorTableTest, KeepsEveryCommitOverAKillAndItsOrderNotItsOffsetDecides) {
  make();
  TableCursor& orders = create("orders", 5);
  create("other", 1);
  EXPECT_EQ(orders.committed(), Offset{5});
  EXPECT_EQ(orders.delivered(), Offset{5});
  for (const std::uint64_t offset : {9, 10, 3, 3, 0, 8}) {
    find("orders")->commit({offset});
    find("orders")->note_delivered({offset + 2});
    EXPECT_EQ(find("orders")->committed(), Offset{offset});
    ASSERT_TRUE(open().ok());
    EXPECT_EQ(find("orders")->committed(), Offset{offset});
    EXPECT_EQ(find("orders")->delivered(), Offset{offset + 2});
    EXPECT_TRUE(table->passed_over().empty());
  }
  EXPECT_EQ(find("other")->committed(), Offset{1});
  EXPECT_EQ(find("nobody"), nullptr);
}

TEST_F(CursorTableTest, CountsCommittedMessagesAsDelivered) {
  make();
  TableCursor& cursor = create("c");
  cursor.note_delivered({4});
  cursor.commit({9});
  EXPECT_EQ(cursor.delivered(), Offset{9});
  ASSERT_TRUE(open().ok());
  EXPECT_EQ(find("c")->delivered(), Offset{9});
  bytes()[cursor_block_position(0) + cursor_delivered_position + 3] ^= std::byte{1};
  ASSERT_TRUE(open().ok());
  EXPECT_EQ(find("c")->delivered(), Offset{9});
}

TEST_F(CursorTableTest, KeepsFlushedCursorsOverAPowerCut) {
  make();
  TableCursor& cursor = create("c", 1);
  for (const std::uint64_t offset : {7, 8, 2, 5}) {
    find("c")->commit({offset});
    ASSERT_TRUE(table->flush().ok());
    find("c")->commit({1000 + offset});
    table.reset();
    storage.power_cut([] { return false; });
    ASSERT_TRUE(open().ok());
    EXPECT_EQ(find("c")->committed(), Offset{offset});
  }
  static_cast<void>(cursor);
}

// Tests that torn live copies do no harm: commits do not touch the durable copies, so a writeback between two
// commits cannot tear those.
TEST_F(CursorTableTest, ContinuesAtTheDurableCopyIfBothLiveOnesAreTorn) {
  make();
  TableCursor& cursor = create("c");
  cursor.commit({10});
  ASSERT_TRUE(table->flush().ok());
  cursor.commit({11});
  cursor.commit({12});
  table.reset();
  const std::uint64_t block = cursor_block_position(0);
  bytes()[block + 9] ^= std::byte{0x40};
  bytes()[block + cursor_copy_bytes + 9] ^= std::byte{0x40};
  ASSERT_TRUE(open().ok());
  EXPECT_EQ(find("c")->committed(), Offset{10});
  ASSERT_EQ(table->passed_over().size(), 2U);
  EXPECT_THAT(table->passed_over()[0].message, HasSubstr(path + " at position 4096"));
}

TEST_F(CursorTableTest, ReportsACursorWithoutASoundCopyAndFreesItsNameOnlyOnRequest) {
  make();
  create("lost");
  create("kept", 3);
  table.reset();
  for (const std::size_t position : {0U, 32U, 512U, 1024U}) {
    bytes()[cursor_block_position(0) + position] ^= std::byte{0xFF};
  }
  ASSERT_TRUE(open().ok());
  EXPECT_EQ(find("kept")->committed(), Offset{3});
  EXPECT_EQ(find("nobody"), nullptr);
  const auto lost = table->find("lost");
  ASSERT_FALSE(lost.ok());
  EXPECT_EQ(lost.error().code, ErrorCode::corrupt);
  EXPECT_THAT(lost.error().message, HasSubstr(path + " at position 4096: no copy of cursor 'lost'"));
  EXPECT_EQ(table->create("lost", {0}).error().code, ErrorCode::corrupt);
  ASSERT_EQ(table->damaged().size(), 1U);
  EXPECT_EQ(table->damaged()[0].name, "lost");
  EXPECT_EQ(table->list().size(), 1U);
  ASSERT_TRUE(table->remove("lost").ok());
  EXPECT_EQ(create("lost", 8).committed(), Offset{8});
  EXPECT_TRUE(table->damaged().empty());
}

TEST_F(CursorTableTest, CreatesNoCursorWhileTheNameOfADamagedOneCannotBeRead) {
  make();
  create("orders", 4);
  create("kept", 3);
  for (const bool zeroed : {false, true}) {
    table.reset();
    auto& damaged = bytes();
    const auto good = damaged;
    const auto at = static_cast<std::ptrdiff_t>(cursor_block_position(0) + cursor_identity_position);
    if (zeroed) {
      std::fill_n(damaged.begin() + at, cursor_identity_bytes, std::byte{0});
    } else {
      damaged[static_cast<std::size_t>(at) + 33] ^= std::byte{1};
    }
    ASSERT_TRUE(open().ok());
    EXPECT_EQ(find("kept")->committed(), Offset{3});
    EXPECT_EQ(table->find("orders").error().code, ErrorCode::corrupt);
    EXPECT_EQ(table->create("new", {0}).error().code, ErrorCode::corrupt);
    EXPECT_EQ(table->remove("orders").error().code, ErrorCode::invalid_argument);
    ASSERT_TRUE(table->forget_damaged().ok());
    ASSERT_TRUE(open().ok());
    EXPECT_EQ(find("orders"), nullptr);
    EXPECT_EQ(find("kept")->committed(), Offset{3});
    table.reset();
    bytes() = good;
  }
}

TEST_F(CursorTableTest, RefusesOtherLogsOtherFormatsAndFilesCutShort) {
  make();
  for (int i = 0; i < 9; ++i) create("c" + std::to_string(i));
  EXPECT_EQ(open(78).error().code, ErrorCode::corrupt);
  EXPECT_THAT(open(78).error().message, HasSubstr("belongs to another log"));
  const auto good = bytes();
  for (std::size_t i = 0; i < 4; ++i) std::swap(bytes()[i], bytes()[7 - i]);
  EXPECT_EQ(open().error().code, ErrorCode::foreign_format);
  bytes() = good;
  bytes()[8] = std::byte{2};
  EXPECT_EQ(open().error().code, ErrorCode::foreign_format);
  for (const std::size_t size : {std::size_t{0}, std::size_t{100}, std::size_t{4096}, good.size() / 2}) {
    bytes() = good;
    bytes().resize(size);
    const auto cut = open();
    EXPECT_EQ(cut.error().code, ErrorCode::corrupt) << size;
    EXPECT_THAT(cut.error().message, HasSubstr(path));
  }
}

TEST_F(CursorTableTest, TakesATruncatedBlockForDamagedNotForFree) {
  make();
  create("whole");
  create("cut");
  table.reset();
  for (const std::size_t left : {std::size_t{1}, cursor_identity_position, cursor_identity_position + 40}) {
    auto good = bytes();
    bytes().resize(cursor_block_position(1) + left);
    for (int round = 0; round < 2; ++round) {
      ASSERT_TRUE(open().ok());
      EXPECT_NE(find("whole"), nullptr);
      EXPECT_EQ(table->find("cut").error().code, ErrorCode::corrupt) << left;
    }
    table.reset();
    bytes() = good;
  }
}

TEST_F(CursorTableTest, AReusedBlockContainsNothingOfTheEarlierCursor) {
  make();
  TableCursor& first = create("first");
  for (std::uint64_t i = 0; i < 100; ++i) first.commit({i});
  ASSERT_TRUE(table->flush().ok());
  ASSERT_TRUE(table->remove("first").ok());
  EXPECT_EQ(find("first"), nullptr);
  EXPECT_EQ(table->remove("first").error().code, ErrorCode::invalid_argument);
  create("second", 2);
  table.reset();
  storage.power_cut([] { return false; });
  ASSERT_TRUE(open().ok());
  EXPECT_EQ(find("first"), nullptr);
  EXPECT_EQ(find("second")->committed(), Offset{2});
  EXPECT_EQ(storage.bytes_of(path).size(), cursor_block_position(8));
}

TEST_F(CursorTableTest, RefusesNamesThatAreTakenEmptyOrTooLong) {
  make();
  create(std::string(128, 'n'));
  create(std::string("\0\xFF", 2));
  for (const std::string& name : {std::string(), std::string(129, 'n'), std::string(128, 'n')}) {
    EXPECT_EQ(table->create(name, {0}).error().code, ErrorCode::invalid_argument);
  }
  ASSERT_TRUE(open().ok());
  EXPECT_NE(find(std::string(128, 'n')), nullptr);
  EXPECT_NE(find(std::string("\0\xFF", 2)), nullptr);
}

TEST_F(CursorTableTest, KeepsCursorsWhereTheyAreWhenTheFileGrows) {
  make();
  std::vector<TableCursor*> cursors;
  for (std::uint64_t i = 0; i < 30; ++i) cursors.push_back(&create("c" + std::to_string(i), i));
  for (std::uint64_t i = 0; i < 30; ++i) cursors[i]->commit({i + 100});
  EXPECT_EQ(table->list().size(), 30U);
  ASSERT_TRUE(open().ok());
  for (std::uint64_t i = 0; i < 30; ++i) {
    EXPECT_EQ(find("c" + std::to_string(i))->committed(), Offset{i + 100});
  }
}

TEST_F(CursorTableTest, StopsAtItsLimit) {
  make();
  table.reset();
  auto& file = bytes();
  file.resize(cursor_block_position(limits::cursors_max));
  const auto put = [&](std::uint64_t position, const auto& what) {
    std::copy(what.begin(), what.end(), file.begin() + static_cast<std::ptrdiff_t>(position));
  };
  for (std::size_t i = 0; i < limits::cursors_max; ++i) {
    const CursorIdentity identity{true, 1, std::to_string(i)};
    const auto seed = cursor_copy_seed(identity, i, incarnation);
    put(cursor_block_position(i), encode_new_cursor({1, {i}}, seed));
    put(cursor_block_position(i) + cursor_identity_position,
        encode_cursor_identity(identity, i, incarnation));
  }
  put(cursor_table_used_position, encode_cursor_table_used(limits::cursors_max, incarnation));
  ASSERT_TRUE(open().ok());
  EXPECT_EQ(table->list().size(), limits::cursors_max);
  EXPECT_EQ(find("1023")->committed(), Offset{1023});
  EXPECT_EQ(table->create("one more", {0}).error().code, ErrorCode::limit_reached);
  ASSERT_TRUE(table->remove("17").ok());
  create("one more");
}

TEST_F(CursorTableTest, BringsCursorsBackThatStandPastTheEndOfTheLog) {
  make();
  create("behind", 10).note_delivered({30});
  create("past", 21).note_delivered({40});
  create("at", 20);
  EXPECT_EQ(table->clamp({20}), std::vector<std::string>{"past"});
  ASSERT_TRUE(open().ok());
  EXPECT_EQ(find("past")->committed(), Offset{20});
  EXPECT_EQ(find("past")->delivered(), Offset{20});
  EXPECT_EQ(find("behind")->committed(), Offset{10});
  EXPECT_EQ(find("behind")->delivered(), Offset{20});
  EXPECT_TRUE(table->clamp({20}).empty());
}

TEST_F(CursorTableTest, SyncsOnlyChangesAndNothingAfterAFailedSync) {
  make();
  create("a");
  TableCursor& b = create("b");
  int syncs = 0;
  int writes = 0;
  storage.on_call = [&](FaultyStorage::Call call, const std::string&) {
    syncs += call == FaultyStorage::Call::sync ? 1 : 0;
    writes += call == FaultyStorage::Call::write ? 1 : 0;
    return FaultyStorage::Fault{};
  };
  ASSERT_TRUE(table->flush().ok());
  EXPECT_EQ(syncs + writes, 0);
  b.commit({1});
  b.commit({2});
  ASSERT_TRUE(table->flush().ok());
  EXPECT_EQ(syncs, 1);
  EXPECT_EQ(writes, 1);
  b.commit({3});
  fail_next(FaultyStorage::Call::sync);
  EXPECT_EQ(table->flush().error().code, ErrorCode::io_error);
  storage.on_call = nullptr;
  EXPECT_EQ(table->flush().error().code, ErrorCode::io_error);
  EXPECT_EQ(table->create("c", {0}).error().code, ErrorCode::io_error);
  EXPECT_EQ(table->remove("a").error().code, ErrorCode::io_error);
  b.commit({4});
  EXPECT_EQ(b.committed(), Offset{4});
  ASSERT_TRUE(open().ok());
  EXPECT_EQ(find("b")->committed(), Offset{4});
  EXPECT_TRUE(table->flush().ok());
}

TEST_F(CursorTableTest, KeepsACursorForTheNextProcessIfItsRemovalCouldNotBeSynced) {
  make();
  create("a");
  fail_next(FaultyStorage::Call::sync);
  EXPECT_FALSE(table->remove("a").ok());
  storage.on_call = nullptr;
  find("a")->commit({5});
  ASSERT_TRUE(open().ok());
  ASSERT_NE(find("a"), nullptr);
  EXPECT_EQ(find("a")->committed(), Offset{5});
}

// A process wrote a durable copy and was killed before its sync. That copy has the highest sequence but may
// not be on disk. The other copy is on disk, and must not be overwritten before the newer one is synced.
TEST_F(CursorTableTest, DoesNotTakeTheMemoryOfAKilledProcessForDurable) {
  make();
  TableCursor& cursor = create("c");
  cursor.commit({10});
  ASSERT_TRUE(table->flush().ok());
  cursor.commit({11});
  fail_next(FaultyStorage::Call::sync);
  EXPECT_FALSE(table->flush().ok());
  storage.on_call = nullptr;
  ASSERT_TRUE(open().ok());
  EXPECT_EQ(find("c")->committed(), Offset{11});
  find("c")->commit({12});
  // Fails the flush's own sync. The sync before it makes the found copies durable.
  fail_next(FaultyStorage::Call::sync, 1);
  EXPECT_FALSE(table->flush().ok());
  storage.on_call = nullptr;
  table.reset();
  storage.power_cut([] { return false; });
  const std::size_t block = cursor_block_position(0);
  for (std::size_t i = 0; i < cursor_copy_bytes;
       ++i) {  // tears both live copies, and the durable copy written last
    bytes()[block + i] = bytes()[block + cursor_copy_bytes + i] = std::byte{9};
    bytes()[block + cursor_durable_position + cursor_durable_stride + i] = std::byte{9};
  }
  ASSERT_TRUE(open().ok());
  EXPECT_EQ(find("c")->committed(), Offset{11});
}

TEST_F(CursorTableTest, ChangesNothingWhenAWriteFails) {
  make();
  create("kept", 3);
  for (int nth = 0; nth < 6; ++nth) {
    for (const std::size_t through : {0U, 5U, 40U}) {
      storage.on_call = [nth, through, n = 0](FaultyStorage::Call call, const std::string&) mutable {
        if (call != FaultyStorage::Call::write) return FaultyStorage::Fault{};
        const int now = n++;
        if (now == nth) return through == 0 ? FaultyStorage::Fault{EIO, 0} : FaultyStorage::Fault{0, through};
        return FaultyStorage::Fault{now == nth + 1 && through != 0 ? EIO : 0, 0};
      };
      const auto created = table->create("new", {1});
      storage.on_call = nullptr;
      ASSERT_TRUE(open().ok());
      EXPECT_TRUE(table->damaged().empty()) << nth << ' ' << through;
      EXPECT_EQ(find("kept")->committed(), Offset{3});
      if (!created.ok()) {
        EXPECT_EQ(find("new"), nullptr) << nth << ' ' << through;
        continue;
      }
      EXPECT_EQ(find("new")->committed(), Offset{1});
      ASSERT_TRUE(table->remove("new").ok());
    }
  }
}

}  // namespace
}  // namespace lightq::log
