/// Tests a reused segment file after a power cut undid its new header.
#include "log/segment/recovery.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "support/log_fixture.hpp"

namespace lightq::log {
namespace {

using test::FaultyStorage;
using test::read_everything;
using test::ReadMessage;

/// A log that continues in a reused segment file. The power then fails when only the new segment's name is on
/// disk; the file's bytes are still those of its earlier use.
class EarlierLifeTest : public test::LogFixture {
 protected:
  EarlierLifeTest() {
    options.segment_bytes = limits::segment_bytes_min;
    open();
    while (log->segments().size() < 2) EXPECT_EQ(append({std::string(5000, 'x')}), AppendOutcome::appended);
    old_ = storage.bytes_of(segment_path(0));
    EXPECT_TRUE(log->drop_first(log->next_offset(), 0));
    now.us += 10'000'000;
    while (work()) now.us += 10'000'000;
    while (log->segments().size() < 2) EXPECT_EQ(append({std::string(5000, 'y')}), AppendOutcome::appended);
    oldest = log->first_offset();
    newest = log->segments().active().first_offset();
    log.reset();
    pool = std::make_unique<SegmentPool>(SegmentPoolOptions{"/pool"}, storage);
    EXPECT_EQ(storage.bytes_of(segment_path(newest.value)).size(), old_.size());
    storage.bytes_of(segment_path(newest.value)) = old_;
  }

  Offset oldest;
  Offset newest;

 private:
  std::vector<std::byte> old_;
};

TEST_F(EarlierLifeTest, IsNoPartOfTheLog) {
  open();
  EXPECT_TRUE(log->recovery().damaged.empty()) << log->recovery().text();
  EXPECT_NE(log->recovery().bytes_cut, 0U);
  EXPECT_EQ(log->first_offset(), oldest);
  EXPECT_EQ(log->next_offset(), newest);
  EXPECT_EQ(read_everything(*log).size(), distance(oldest, newest));
  EXPECT_FALSE(storage.exists(segment_path(newest.value)));
}

TEST_F(EarlierLifeTest, IsNotTakenForARenamedFile) {
  // A file that begins within the log was placed there by a user, so it stays.
  storage.bytes_of(segment_path(newest.value)) = storage.bytes_of(segment_path(oldest.value));
  open();
  EXPECT_FALSE(log->recovery().damaged.empty());
  EXPECT_TRUE(storage.exists(segment_path(newest.value)));
}

TEST_F(EarlierLifeTest, AFileOfAnotherLogIsReportedAndStays) {
  auto& bytes = storage.bytes_of(segment_path(newest.value));
  SegmentPage page{};
  std::copy_n(bytes.begin(), page.size(), page.begin());
  SegmentHeader header = *decode_segment_header(page).header;
  ++header.incarnation;
  const SegmentPage other = encode_segment_header(header);
  std::copy(other.begin(), other.end(), bytes.begin());
  open();
  EXPECT_FALSE(log->recovery().damaged.empty());
  EXPECT_TRUE(storage.exists(segment_path(newest.value)));
}

/// A log with one message in each segment. Its newest segment, 3, reuses the file of segment 0, which the log
/// has dropped. The power then fails when only the new segment's name is on disk. The oldest segment is 1,
/// and 2 lies between.
class EarlierLifeBehindALostHeaderTest : public test::LogFixture {
 protected:
  EarlierLifeBehindALostHeaderTest() {
    options.segment_bytes = limits::segment_bytes_min;
    options.segment_messages_max = 1;
    options.flush_interval_ms = 0;
    options.flush_bytes = 0;
  }
  void begin_in_used_file() {
    open();
    EXPECT_EQ(append({"0"}), AppendOutcome::appended);
    const std::uint32_t epoch = log->segments().active().header().epoch;
    sync_file(0);  // the system does this now and then by itself
    EXPECT_EQ(append({"1"}), AppendOutcome::appended);
    EXPECT_EQ(append({"2"}), AppendOutcome::appended);
    EXPECT_TRUE(log->drop_first(log->next_offset(), 0));
    now.us += 10'000'000;
    while (work()) now.us += 10'000'000;
    begin_segment();
    EXPECT_EQ(log->segments().active().header().first_offset, newest);
    EXPECT_EQ(log->segments().active().header().epoch, epoch + 1);
  }
  void lose_power() {
    EXPECT_TRUE(storage.sync_directory(directory).ok());  // the system does this now and then by itself
    log.reset();
    pool = std::make_unique<SegmentPool>(SegmentPoolOptions{"/pool"}, storage);
    storage.power_cut([] { return false; });
    EXPECT_EQ(first_offset_in(newest), Offset{0});
  }
  /// Returns the first offset in the file's header, or nothing if the header is not sound.
  std::optional<Offset> first_offset_in(Offset name) {
    SegmentPage page{};
    const auto& bytes = storage.bytes_of(segment_path(name.value));
    std::copy_n(bytes.begin(), std::min(bytes.size(), page.size()), page.begin());
    const auto header = decode_segment_header(page).header;
    return header ? std::optional(header->first_offset) : std::nullopt;
  }
  void expect_only_oldest_damaged() {
    ASSERT_EQ(log->recovery().damaged.size(), 1U) << log->recovery().text();
    EXPECT_EQ(log->recovery().damaged.front().first, Offset{1});
    EXPECT_EQ(log->recovery().damaged.front().next, Offset{2});
    EXPECT_FALSE(storage.exists(segment_path(newest.value)));
  }

  const Offset newest{3};

 private:
  void sync_file(std::uint64_t first_offset) {
    const auto file = storage.open(segment_path(first_offset), OpenMode::read_write);
    ASSERT_TRUE(file.ok() && (*file)->sync().ok());
  }
  // Reserves space instead of appending where writes are mapped, so that nothing is stored in the mapping
  // yet.
  void begin_segment() {
    if (options.mapped_writes)
      EXPECT_EQ(log->room_in_place(100, 100).outcome, AppendOutcome::appended);
    else
      EXPECT_EQ(append({"3"}), AppendOutcome::appended);
  }
};

// Segment 2 recorded the drop. Segment 1 was never synced.
TEST_F(EarlierLifeBehindALostHeaderTest, IsIgnoredInALogWithoutSyncs) {
  options.mapped_writes = true;
  begin_in_used_file();
  lose_power();
  ASSERT_EQ(first_offset_in({1}), std::nullopt);
  ASSERT_EQ(first_offset_in({2}), Offset{2});
  open();
  expect_only_oldest_damaged();
  EXPECT_EQ(log->next_offset(), Offset{2}) << log->recovery().text();
}

TEST_F(EarlierLifeBehindALostHeaderTest, IsIgnoredIfTheOldestHeaderIsDamaged) {
  begin_in_used_file();
  lose_power();
  storage.bytes_of(segment_path(1))[20] ^= std::byte{1};
  open();
  expect_only_oldest_damaged();
  EXPECT_EQ(log->next_offset(), newest) << log->recovery().text();
  EXPECT_EQ(read_everything(*log), (std::vector<ReadMessage>{{{2}, "2"}}));
}

}  // namespace
}  // namespace lightq::log
