/// Tests the highest offset: a log takes stored offsets above it for damage, and appends nothing there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/limits.hpp>

#include "log/format/open_batch.hpp"
#include "log/memory/ring_log.hpp"
#include "log/memory/write_behind_log.hpp"
#include "log/tools/repair.hpp"
#include "support/batch_mask.hpp"
#include "support/log_fixture.hpp"

namespace lightq::log {
namespace {

using test::read_everything;
using test::ReadMessage;

class OffsetLimitTest : public test::LogFixture {
 protected:
  static constexpr std::uint64_t highest_start = limits::offset_max - limits::batch_records_max;

  OffsetLimitTest() { options.segment_bytes = limits::segment_bytes_min; }

  /// Makes an empty segment that begins at `first`, and returns the bytes of its file.
  std::vector<std::byte>& make_segment(std::uint64_t first) {
    EXPECT_TRUE(storage.open(segment_path(first), OpenMode::create).ok());
    auto& file = storage.bytes_of(segment_path(first));
    file.assign(file_bytes, std::byte{0});
    const auto header = encode_segment_header(header_of(first));
    std::copy(header.begin(), header.end(), file.begin());
    return file;
  }
  static SegmentHeader header_of(std::uint64_t first) { return {7, {first}, 1, file_bytes}; }
  static constexpr std::uint64_t file_bytes = limits::segment_bytes_min;

  void remove_log() {
    log.reset();
    for (const auto& path : storage.paths()) {
      if (path.starts_with(directory)) {
        ASSERT_TRUE(storage.unlink(path).ok());
      }
    }
  }
};

// No broker writes such an offset, so a file with one is damaged, even if all checksums are valid. If the log
// accepted it, the log's end would overflow at the next message, and that message would be lost.
TEST_F(OffsetLimitTest, ABatchAboveTheHighestOffsetIsDamage) {
  for (const std::uint64_t base : {limits::offset_max, UINT64_MAX - 1, UINT64_MAX}) {
    open();
    ASSERT_EQ(append({"first"}), AppendOutcome::appended);
    ASSERT_EQ(append({"second"}), AppendOutcome::appended);
    log.reset();
    auto& file = storage.bytes_of(segment_path(0));
    std::byte* const second = file.data() + segment_header_bytes + test::make_batch({"first"}).size();
    const std::uint32_t epoch = BatchView::trusted(second).segment_epoch();
    auto forged = test::make_batch({"second"});
    stamp_batch(forged, Offset{base}, now, epoch, test::batch_mask_in(file));
    std::copy(forged.begin(), forged.end(), second);
    open();
    const Offset next = log->next_offset();
    EXPECT_LE(next.value, 2U) << base;
    ASSERT_EQ(append({"third"}), AppendOutcome::appended) << base;
    open();
    const auto messages = read_everything(*log);
    ASSERT_EQ(messages.size(), 2U) << base;
    EXPECT_EQ(messages.front(), (ReadMessage{{0}, "first"})) << base;
    EXPECT_EQ(messages.back(), (ReadMessage{next, "third"})) << base;
    remove_log();
  }
}

TEST_F(OffsetLimitTest, ALogThatHasUsedUpItsOffsetsAppendsNothing) {
  open();
  ASSERT_EQ(append({"first"}), AppendOutcome::appended);
  remove_log();
  for (const bool used_up : {false, true}) {
    const Offset first{highest_start + (used_up ? 1 : 0)};
    make_segment(first.value);
    open();
    EXPECT_EQ(log->next_offset(), first);
    EXPECT_EQ(append({"message"}), used_up ? AppendOutcome::failed : AppendOutcome::appended);
    if (used_up) {
      EXPECT_NE(log->last_error().message.find("has used up its offsets"), std::string::npos);
      EXPECT_EQ(log->next_offset(), first);
    }
    EXPECT_EQ(read_everything(*log, first).size(), used_up ? 0U : 1U);
    remove_log();
  }
}

// The file's name reserves an offset, because the header that would tell its messages is lost.
TEST_F(OffsetLimitTest, ALastFileWithoutAHeaderReservesNoHigherOffset) {
  make_segment(highest_start);
  make_segment(limits::offset_max)[20] ^= std::byte{1};  // damages the header
  open();
  EXPECT_EQ(log->next_offset(), Offset{limits::offset_max});
  EXPECT_EQ(append({"message"}), AppendOutcome::failed);
  EXPECT_NE(log->last_error().message.find("has used up its offsets"), std::string::npos);
  EXPECT_TRUE(log->end_segment().ok());
  EXPECT_TRUE(log->flush().ok());
  while (work()) {
  }
  open();
  EXPECT_EQ(log->next_offset(), Offset{limits::offset_max});
  for (const std::string& path : storage.paths())
    EXPECT_FALSE(path.ends_with(segment_name({limits::offset_max + 1}))) << path;

  log.reset();
  const auto report = repair_to(directory, "/new", {}, storage);
  ASSERT_TRUE(report.ok()) << report.error().text();
  EXPECT_LE(report->next_offset, Offset{limits::offset_max});
  options.directory = "/new";
  open();
  EXPECT_EQ(log->next_offset(), report->next_offset);
}

// A process that ended while it packed a batch left a mark of the records. No process packs more records than
// there are offsets, so a mark that states more is not valid, and the one before it counts.
TEST_F(OffsetLimitTest, AnOpenBatchIsCompletedUpToTheHighestOffset) {
  for (const bool fits : {true, false}) {
    const std::uint64_t first = limits::offset_max - (fits ? 2 : 1);
    auto& file = make_segment(first);
    OpenBatch batch;
    batch.begin(std::span(file).subspan(segment_header_bytes), file.data(), segment_header_bytes,
                header_of(first), BootId{storage.boot_id()}, {first}, now, 10);
    batch.add(as_byte_view("first"));
    batch.add(as_byte_view("second"));
    open();
    EXPECT_EQ(log->next_offset(), Offset{limits::offset_max});
    EXPECT_EQ(read_everything(*log, {first}).size(), fits ? 2U : 1U);
    open();
    EXPECT_EQ(log->next_offset(), Offset{limits::offset_max});
    remove_log();
  }
}

TEST_F(OffsetLimitTest, ALogInMemoryThatHasUsedUpItsOffsetsAppendsNothing) {
  for (const bool used_up : {false, true}) {
    const Offset first{highest_start + (used_up ? 1 : 0)};
    RingLog ring({.first_offset = first});
    auto batch = test::make_batch({"message"});
    EXPECT_EQ(ring.place_for_next(batch.size()).empty(), used_up);
    const AppendResult result = ring.append(batch, now);
    EXPECT_EQ(result.outcome, used_up ? AppendOutcome::failed : AppendOutcome::appended);
    if (used_up) {
      EXPECT_NE(ring.last_error().message.find("has used up its offsets"), std::string::npos);
    }
    EXPECT_EQ(ring.next_offset(), used_up ? first : first + 1);
    EXPECT_EQ(read_everything(ring, first).size(), used_up ? 0U : 1U);
  }
}

// Their ring is in front of segments, which have the same limit: what the ring takes can be written.
TEST_F(OffsetLimitTest, ALogThatIsWrittenBehindAppendsNothingEither) {
  make_segment(highest_start);
  auto segments = SegmentLog::open(options, storage, *pool, now);
  ASSERT_TRUE(segments.ok()) << segments.error().text();
  WriteBehindLog behind({}, std::move(*segments));
  auto batch = test::make_batch({"message"});
  EXPECT_EQ(behind.append(batch, now).outcome, AppendOutcome::appended);
  batch = test::make_batch({"message"});
  EXPECT_EQ(behind.append(batch, now).outcome, AppendOutcome::failed);
  EXPECT_NE(behind.last_error().message.find("has used up its offsets"), std::string::npos);
  EXPECT_TRUE(behind.flush().ok());
  EXPECT_EQ(behind.next_offset(), Offset{highest_start + 1});
}

TEST_F(OffsetLimitTest, NoSegmentIsNamedAfterAHigherOffset) {
  EXPECT_EQ(segment_name_offset("09223372036854775807.seg"), Offset{limits::offset_max});
  EXPECT_EQ(segment_name_offset("09223372036854775808.seg"), std::nullopt);
  EXPECT_EQ(segment_name_offset("18446744073709551615.seg"), std::nullopt);
}

}  // namespace
}  // namespace lightq::log
