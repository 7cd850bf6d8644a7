/// Tests the parts of one segment: trusted ranges, times, marks in the first page, the pieces of a new file,
/// and finding batches.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "log/segment/segment_file.hpp"
#include "support/batches.hpp"
#include "support/faulty_storage.hpp"

namespace lightq::log {
namespace {

TEST(TrustedRangesTest, AreExtendedByWhatFollowsThem) {
  TrustedRanges ranges;
  ranges.add(4096, 5000);
  ranges.add(5000, 6000);
  EXPECT_TRUE(ranges.contain(4096));
  EXPECT_TRUE(ranges.contain(5999));
  EXPECT_FALSE(ranges.contain(6000));
  EXPECT_FALSE(ranges.contain(4095));
}

TEST(TrustedRangesTest, ForgetTheOldestRangeFirst) {
  TrustedRanges ranges;
  for (std::uint64_t i = 0; i < TrustedRanges::ranges_max; ++i) ranges.add(i * 100, i * 100 + 50);
  EXPECT_TRUE(ranges.contain(0));
  ranges.add(5000, 5050);
  EXPECT_FALSE(ranges.contain(0));
  EXPECT_TRUE(ranges.contain(100));
  EXPECT_TRUE(ranges.contain(5000));
}

TEST(SegmentTimesTest, CorrectAClockThatWasAhead) {
  SegmentTimes times;
  times.note({13'000});
  times.end_before({12'500});
  EXPECT_EQ(times.newest(), Timestamp{13'000}) << "a search uses what the batches state";
  EXPECT_EQ(times.written(), Timestamp{12'500});
  times.begin_after({12'800});
  EXPECT_EQ(times.written(), Timestamp{12'800});
  times.note({12'000});
  EXPECT_EQ(times.newest(), Timestamp{13'000}) << "a clock that was set back makes nothing older";
}

/// A segment in a file of a file system in memory.
class SegmentPartsTest : public testing::Test {
 protected:
  static constexpr const char* path = "/1.seg";
  static constexpr SegmentHeader header{
      .epoch = 3, .first_offset = {100}, .incarnation = 7, .file_bytes = 256 * limits::KiB, .batch_mask = 5};

  SegmentPartsTest() {
    auto opened = storage.open(path, OpenMode::create);
    EXPECT_TRUE(opened.ok());
    file = std::move(*opened);
    EXPECT_TRUE(file->allocate(header.file_bytes).ok());
  }
  [[nodiscard]] SegmentPage page() {
    SegmentPage bytes{};
    std::copy_n(storage.bytes_of(path).begin(), bytes.size(), bytes.begin());
    return bytes;
  }
  static Result<void> append_to(SegmentFile& segment, const std::string& payload, Timestamp time) {
    auto batch = test::make_batch({payload});
    stamp_batch(batch, segment.end_offset(), time, header.epoch, header.batch_mask);
    return segment.append(BatchView::trusted(batch.data()));
  }

  test::FaultyStorage storage;
  std::shared_ptr<File> file;
};

TEST_F(SegmentPartsTest, WritesCheckpointsIntoTwoSlotsInTurn) {
  SegmentBytes bytes(path, header.file_bytes, file);
  SegmentMarks marks(header, bytes);
  const std::uint64_t before = marks.checkpoint().sequence;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    SegmentCheckpoint checkpoint = marks.checkpoint();
    checkpoint.end_position = segment_header_bytes + i;
    checkpoint.end_offset = {100 + i};
    ASSERT_TRUE(marks.write_checkpoint(checkpoint).ok());
    EXPECT_EQ(marks.checkpoint().sequence, before + i);
    const auto found = decode_segment_checkpoint(page(), header, {});
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->end_offset, (Offset{100 + i}));
  }
  // The newest one is torn: the one before it is still there.
  storage.bytes_of(path)[segment_checkpoint_position(marks.checkpoint().sequence)] ^= std::byte{1};
  const auto found = decode_segment_checkpoint(page(), header, {});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->end_offset, Offset{102});
}

TEST_F(SegmentPartsTest, KeepsTheCheckpointIfTheNextOneCannotBeWritten) {
  SegmentBytes bytes(path, header.file_bytes, file);
  SegmentMarks marks(header, bytes);
  SegmentCheckpoint checkpoint = marks.checkpoint();
  checkpoint.reserved = 10'000;
  ASSERT_TRUE(marks.write_checkpoint(checkpoint).ok());
  storage.on_call = [](test::FaultyStorage::Call call, const std::string&) {
    return test::FaultyStorage::Fault{call == test::FaultyStorage::Call::write ? EIO : 0, 0};
  };
  checkpoint.reserved = 20'000;
  EXPECT_FALSE(marks.write_checkpoint(checkpoint).ok());
  EXPECT_FALSE(marks.needs_reserve(10'000));
  EXPECT_TRUE(marks.needs_reserve(10'001)) << "the first one still counts";
}

TEST_F(SegmentPartsTest, FillsThePieceAroundTheEndOfANewFileOnce) {
  SegmentBytes bytes(path, header.file_bytes, file);
  std::vector<std::pair<std::uint64_t, std::size_t>> written;
  storage.on_write = [&](const std::string&, std::uint64_t position, std::size_t count) {
    written.emplace_back(position, count);
  };
  FreshBytes fresh;
  fresh.prepare(bytes, 40'000, 42'000);
  EXPECT_TRUE(written.empty()) << "nothing is known about the file";
  fresh.begin_at(segment_header_bytes);
  fresh.prepare(bytes, 40'000, 42'000);
  EXPECT_EQ(written, (std::vector<std::pair<std::uint64_t, std::size_t>>{{40'000, 65'536 - 40'000}}));
  fresh.prepare(bytes, 42'000, 65'536);
  EXPECT_EQ(written.size(), 1U);
  fresh.prepare(bytes, 65'536, 65'600);
  EXPECT_EQ(written.size(), 2U) << "the next piece";
}

TEST_F(SegmentPartsTest, FindsBatchesByOffsetAndTime) {
  SegmentFile segment(path, header, header.file_bytes, file);
  std::vector<std::uint64_t> positions;
  for (int i = 0; i < 30; ++i) {
    positions.push_back(segment.end_position());
    ASSERT_TRUE(append_to(segment, std::string(8000, 'x'), {1000 + i}).ok());
  }
  ASSERT_TRUE(segment.open_for_reading(storage).ok());
  for (std::uint64_t i = 0; i < 30; ++i) {
    const Located found = segment.finder().locate({100 + i}, 0);
    ASSERT_TRUE(found.found);
    EXPECT_EQ(found.position, positions[i]);
    const Located after = segment.finder().locate({100 + i}, positions[i / 2]);
    EXPECT_EQ(after.position, positions[i]) << "from an earlier batch";
  }
  std::uint64_t passed = 0;
  bool unavailable = false;
  EXPECT_EQ(segment.finder().first_since({1017}, passed, unavailable), Offset{117});
  EXPECT_FALSE(segment.finder().first_since({1030}, passed, unavailable).has_value());
  EXPECT_FALSE(unavailable);
}

// This process has written the batches, so it does not check them. Another one does.
TEST_F(SegmentPartsTest, ChecksOnlyBatchesThatItHasNotWritten) {
  SegmentFile written(path, header, header.file_bytes, file);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(append_to(written, "message", {1000}).ok());
  storage.bytes_of(path)[written.end_position() - 1] ^= std::byte{1};
  ASSERT_TRUE(written.open_for_reading(storage).ok());
  EXPECT_TRUE(written.finder().locate({102}, 0).found);

  SegmentFile found(path, header, header.file_bytes, file);
  found.set_end(written.seal());
  ASSERT_TRUE(found.open_for_reading(storage).ok());
  EXPECT_TRUE(found.finder().locate({101}, 0).found);
  const Located damaged = found.finder().locate({102}, 0);
  EXPECT_FALSE(damaged.found);
  EXPECT_FALSE(damaged.unavailable);
  EXPECT_EQ(damaged.damage.first, Offset{102});
  EXPECT_EQ(damaged.damage.next, Offset{103});
}

TEST_F(SegmentPartsTest, ClosesAnUnsealedFileOnlyOnceItIsSynced) {
  SegmentFile segment(path, header, header.file_bytes, file);
  ASSERT_TRUE(append_to(segment, "message", {1000}).ok());
  ASSERT_TRUE(segment.open_for_reading(storage).ok());
  segment.release();
  EXPECT_FALSE(segment.is_mapped());
  EXPECT_NE(segment.file(), nullptr);
  segment.synced_position = segment.end_position();
  segment.release();
  EXPECT_EQ(segment.file(), nullptr);
  EXPECT_TRUE(segment.open_for_writing(storage).ok());
}

}  // namespace
}  // namespace lightq::log
