/// Tests cursor files: two files that are written in turn, and the state after a torn write.
#include "log/saved_state/cursor_file.hpp"

#include <gtest/gtest.h>

#include <lightq/base/crc32c.hpp>

#include "log/offsets/offset_model.hpp"
#include "support/faulty_storage.hpp"

namespace lightq::log {
namespace {

using test::FaultyStorage;

using Cursors = std::vector<NamedCursor>;
const Cursors first = {{"default", {7}}, {"billing", {~std::uint64_t{0}}}};
const Cursors second = {{"default", {8}}};
const Cursors with_ranges = {
    {"group:a", {4}, unfinished_between({4}, {{{5}, {6}}, {{8}, {20}}})},
    {"default", {9}},
    {"own:b", {0}, unfinished_between({0}, {{{~std::uint64_t{0} - 1}, {~std::uint64_t{0}}}})}};
const Cursors third = {{"default", {9}}, {"", {1}}, {std::string(65535, 'n'), {2}}};

class CursorFileTest : public testing::Test {
 protected:
  Result<void> write(const Cursors& cursors) { return file.write(CursorFile::encode(cursors)); }
  /// Damages each part of the newer file, cursors.1, and checks that loading then returns the older cursors.
  void falls_back_to(const Cursors& older);
  Result<Cursors> load() { return CursorFile(storage, "/topics/1").load(); }

  FaultyStorage storage;
  CursorFile file{storage, "/topics/1"};
};

TEST_F(CursorFileTest, IsEmptyBeforeTheFirstWrite) {
  EXPECT_EQ(*load(), Cursors{});
  EXPECT_TRUE(storage.paths().empty());
}

TEST_F(CursorFileTest, LoadsTheNewestWrittenState) {
  for (const auto& cursors : {first, second, with_ranges, third, with_ranges, second, Cursors{}}) {
    ASSERT_TRUE(write(cursors).ok());
    EXPECT_EQ(*load(), cursors);
  }
  EXPECT_EQ(storage.paths().size(), 2U);
}

TEST_F(CursorFileTest, ContinuesItsAlternationAfterARestart) {
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
  falls_back_to(first);
  ASSERT_TRUE(write(with_ranges).ok());
  ASSERT_TRUE(write(with_ranges).ok());
  falls_back_to(with_ranges);
}

// Tests that a file of one version is never decoded as the other version.
TEST_F(CursorFileTest, ChecksTheVersionToo) {
  ASSERT_TRUE(write(with_ranges).ok());
  ASSERT_TRUE(write(first).ok());
  for (const int slot : {0, 1}) {
    auto& version = storage.bytes_of("/topics/1/cursors." + std::to_string(slot)).at(8);
    ASSERT_EQ(version, std::byte(slot == 0 ? 3 : 1));
    version ^= std::byte{2};
    EXPECT_EQ(*load(), slot == 0 ? first : with_ranges);
    version ^= std::byte{2};
  }
}

// Versions that wrote ranges kept only the lowest 4,096.
TEST_F(CursorFileTest, WritesAnyNumberOfRanges) {
  std::vector<OffsetRange> ranges;
  for (std::uint64_t i = 1; i <= limits::acknowledged_ranges_max + 10; ++i)
    ranges.push_back({{2 * i}, {2 * i + 1}});
  const Cursors cursors = {{"group:a", {0}, unfinished_between({0}, ranges)},
                           {"group:b", {1}, unfinished_between({1}, {{{2}, {3}}})}};
  ASSERT_TRUE(write(cursors).ok());
  EXPECT_EQ(*load(), cursors);
}

/// Returns a cursor file of version 2 with a valid checksum. Its only cursor has the offset, range count and
/// ranges of the arguments.
std::vector<std::byte> file_of(std::uint64_t offset, std::uint16_t count,
                               const std::vector<OffsetRange>& ranges) {
  std::vector<std::byte> bytes(32 + 12 + 1 + 16 * ranges.size());
  store_little_endian(bytes.data(), std::uint64_t{0x0A1A0A0D5255434C});
  store_little_endian(bytes.data() + 8, std::uint32_t{2});
  store_little_endian(bytes.data() + 16, std::uint64_t{1});
  store_little_endian(bytes.data() + 24, static_cast<std::uint32_t>(bytes.size()));
  store_little_endian(bytes.data() + 28, std::uint32_t{1});
  store_little_endian(bytes.data() + 32, offset);
  store_little_endian(bytes.data() + 40, std::uint16_t{1});
  store_little_endian(bytes.data() + 42, count);
  bytes[44] = std::byte{'a'};
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    store_little_endian(bytes.data() + 45 + 16 * i, ranges[i].begin.value);
    store_little_endian(bytes.data() + 53 + 16 * i, ranges[i].end.value);
  }
  const ByteView view(bytes);
  store_little_endian(bytes.data() + 12, crc32c(view.subspan(16), crc32c(view.subspan(8, 4))));
  return bytes;
}

TEST_F(CursorFileTest, RefusesImpossibleRangesWithAValidChecksum) {
  ASSERT_TRUE(write(first).ok());
  auto& bytes = storage.bytes_of("/topics/1/cursors.0");
  bytes = file_of(4, 2, {{{5}, {6}}, {{8}, {20}}});
  EXPECT_EQ(*load(), (Cursors{{"a", {4}, unfinished_between({4}, {{{5}, {6}}, {{8}, {20}}})}}));
  const std::vector<std::vector<OffsetRange>> wrong = {
      {{{4}, {6}}},               // touches the offset
      {{{2}, {3}}},               // lies below the offset
      {{{5}, {5}}},               // is empty
      {{{7}, {6}}},               // ends before it begins
      {{{8}, {9}}, {{5}, {6}}},   // are in the wrong order
      {{{5}, {8}}, {{7}, {10}}},  // overlap
      {{{5}, {8}}, {{8}, {10}}},  // touch each other
  };
  for (const auto& ranges : wrong) {
    bytes = file_of(4, static_cast<std::uint16_t>(ranges.size()), ranges);
    EXPECT_EQ(load().error().code, ErrorCode::corrupt) << ranges[0].begin.value;
  }
  for (const std::uint16_t count : std::initializer_list<std::uint16_t>{0, 1, 3, 4097, 65535}) {
    bytes = file_of(4, count, {{{5}, {6}}, {{8}, {20}}});
    EXPECT_EQ(load().error().code, ErrorCode::corrupt) << count;
  }
  std::vector<OffsetRange> many;
  for (std::uint64_t i = 0; i < limits::acknowledged_ranges_max + 1; ++i)
    many.push_back({{2 * i + 5}, {2 * i + 6}});
  bytes = file_of(4, static_cast<std::uint16_t>(many.size()), many);
  EXPECT_EQ(load().error().code, ErrorCode::corrupt);
}

TEST(NamedCursorTest, IsCutAtTheEndOfTheLog) {
  const auto with = [](const std::vector<OffsetRange>& processed) {
    return NamedCursor{"a", {4}, unfinished_between({4}, processed)};
  };
  const NamedCursor cursor = with({{{5}, {7}}, {{9}, {12}}});
  const auto cut = [&](std::uint64_t end) {
    NamedCursor copy = cursor;
    const bool changed = copy.cut_at({end});
    EXPECT_EQ(changed, copy != cursor);
    return copy;
  };
  EXPECT_EQ(cut(12), cursor);
  EXPECT_EQ(cut(10), with({{{5}, {7}}, {{9}, {10}}}));
  // Messages 7 and 8 were delivered, and are not processed.
  EXPECT_EQ(cut(9), (NamedCursor{"a", {4}, {{9}, test::set_of({{{4}, {5}}, {{7}, {9}}})}}));
  EXPECT_EQ(cut(7), with({{{5}, {7}}}));
  EXPECT_EQ(cut(6), with({{{5}, {6}}}));
  EXPECT_EQ(cut(5), (NamedCursor{"a", {4}, {{5}, test::set_of({{{4}, {5}}})}}));
  EXPECT_EQ(cut(4), (NamedCursor{"a", {4}}));
  EXPECT_EQ(cut(2), (NamedCursor{"a", {2}}));
}

void CursorFileTest::falls_back_to(const Cursors& older) {
  const auto good = storage.bytes_of("/topics/1/cursors.1");
  for (std::size_t at = 0; at < good.size(); ++at) {
    storage.bytes_of("/topics/1/cursors.1")[at] ^= std::byte{0x20};
    CursorFile damaged(storage, "/topics/1");
    const auto loaded = damaged.load();
    ASSERT_TRUE(loaded.ok()) << at;
    EXPECT_EQ(*loaded, older) << at;
    ASSERT_TRUE(damaged.passed_over().has_value());
    EXPECT_NE(damaged.passed_over()->message.find("cursors.1"), std::string::npos);
    storage.bytes_of("/topics/1/cursors.1") = good;
  }
  for (std::size_t size = 0; size < good.size(); ++size) {
    storage.bytes_of("/topics/1/cursors.1").resize(size);
    EXPECT_EQ(*load(), older) << size;
    storage.bytes_of("/topics/1/cursors.1") = good;
  }
}

TEST_F(CursorFileTest, ReportsThatNoSoundCopyIsLeft) {
  ASSERT_TRUE(write(first).ok());
  storage.bytes_of("/topics/1/cursors.0").back() ^= std::byte{1};
  EXPECT_EQ(load().error().code, ErrorCode::corrupt);
  storage.bytes_of("/topics/1/cursors.0")[8] = std::byte{9};
  EXPECT_EQ(load().error().code, ErrorCode::foreign_format);
  EXPECT_TRUE(write(second).ok());
  EXPECT_EQ(*load(), second);
}

// Two failed writes in a row must not destroy both files: the second write goes to the same file as the
// first.
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

// If neither file is sound, reading is an error. A power cut during the very first write must not leave that
// state.
TEST_F(CursorFileTest, TheFirstWriteIsCompleteOrAbsent) {
  bool written = false;
  for (std::uint64_t calls = 0; !written; ++calls) {
    for (const bool names_survive : {false, true}) {
      for (const bool bytes_survive : {false, true}) {
        FaultyStorage disk;
        disk.on_call = [left = calls](FaultyStorage::Call, const std::string&) mutable {
          return left == 0 ? FaultyStorage::Fault{EIO, 0} : (--left, FaultyStorage::Fault{});
        };
        written = CursorFile(disk, "/topics/1").write(CursorFile::encode(first)).ok();
        disk.on_call = nullptr;
        if (bytes_survive) disk.write_back([n = 0]() mutable { return n++ % 2 == 0; });
        disk.power_cut([&] { return names_survive; });
        const auto loaded = CursorFile(disk, "/topics/1").load();
        ASSERT_TRUE(loaded.ok()) << "after " << calls << " calls: " << loaded.error().text();
        EXPECT_TRUE(*loaded == first || (loaded->empty() && !written)) << "after " << calls << " calls";
      }
    }
  }
}

TEST_F(CursorFileTest, SurvivesAPowerCutOnceWritten) {
  for (const auto& cursors : {first, second, with_ranges, third}) {
    ASSERT_TRUE(write(cursors).ok());
    storage.power_cut([] { return false; });
    EXPECT_EQ(*load(), cursors);
  }
}

}  // namespace
}  // namespace lightq::log
