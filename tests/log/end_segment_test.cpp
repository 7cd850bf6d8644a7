/// Tests dropping exactly the messages that a log has at a moment: end_segment, then drop_before.
#include <gtest/gtest.h>

#include <utility>

#include "log/memory/ring_log.hpp"
#include "log/memory/write_behind_log.hpp"
#include "support/log_fixture.hpp"

namespace lightq::log {
namespace {

using test::FaultyStorage;
using test::make_batch;
using test::read_everything;
using test::ReadMessage;

class EndSegmentTest : public test::LogFixture {
 protected:
  /// Leaves so many bytes free on the disk from now on.
  void leave_free(std::uint64_t bytes) {
    storage.disk_bytes -= storage.free_bytes(directory).value_or_throw();
    storage.disk_bytes += bytes;
  }
};

TEST_F(EndSegmentTest, StoredMessagesCanBeDroppedSeparatelyFromNewOnes) {
  open();
  append({"a", "b"});
  append({"c"});
  ASSERT_TRUE(log->end_segment().ok());
  EXPECT_EQ(log->first_offset(), Offset{0}) << "nothing is dropped yet";
  append({"d"});
  EXPECT_EQ(read_everything(*log).size(), 4U);
  log->drop_before(Offset{3});
  EXPECT_EQ(log->first_offset(), Offset{3});
  EXPECT_EQ(read_everything(*log, Offset{3}), (std::vector<ReadMessage>{{{3}, "d"}}));
  while (work()) {
  }
  EXPECT_FALSE(storage.exists(segment_path(0))) << "its file goes";
  open();
  EXPECT_TRUE(log->recovery().clean()) << log->recovery().text();
  EXPECT_EQ(log->first_offset(), Offset{3});
  EXPECT_EQ(log->next_offset(), Offset{4});
}

TEST_F(EndSegmentTest, ALogOfWhichAllIsDroppedKeepsItsPlace) {
  open();
  append({"a", "b"});
  ASSERT_TRUE(log->end_segment().ok());
  log->drop_before(Offset{2});
  EXPECT_EQ(log->stored_bytes(), 0U);
  EXPECT_EQ(log->first_offset(), Offset{2});
  EXPECT_EQ(log->next_offset(), Offset{2});
  ASSERT_TRUE(log->end_segment().ok()) << "there is nothing to be ended";
  while (work()) {
  }
  EXPECT_TRUE(storage.exists(segment_path(2)));
  open();
  EXPECT_EQ(log->next_offset(), Offset{2});
  ASSERT_EQ(append({"c"}), AppendOutcome::appended);
  EXPECT_EQ(read_everything(*log, Offset{2}), (std::vector<ReadMessage>{{{2}, "c"}}));
}

TEST_F(EndSegmentTest, AnEmptyLogStartsNoSegment) {
  open();
  EXPECT_TRUE(log->end_segment().ok());
  log->drop_before(Offset{0});
  EXPECT_TRUE(storage.paths().empty());
}

TEST_F(EndSegmentTest, IfTheDiskRefusesNothingChanges) {
  open();
  append({"a"});
  storage.on_call = [](FaultyStorage::Call call, const std::string&) {
    return FaultyStorage::Fault{call == FaultyStorage::Call::rename ? EIO : 0};
  };
  const auto ended = log->end_segment();
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().code, ErrorCode::io_error);
  EXPECT_EQ(log->last_error().code, ErrorCode::io_error);
  EXPECT_EQ(read_everything(*log).size(), 1U);
  storage.on_call = nullptr;
  EXPECT_TRUE(log->end_segment().ok());
}

TEST_F(EndSegmentTest, OnAFullDiskTheOldestFilesFreeSpace) {
  options.segment_bytes = limits::MiB;
  open();
  for (int i = 0; i < 4; ++i) ASSERT_EQ(append({std::string(900'000, 'x')}), AppendOutcome::appended);
  ASSERT_EQ(log->segments().size(), 4U);
  storage.disk_bytes = 0;
  ASSERT_TRUE(log->end_segment().ok()) << log->last_error().text();
  log->drop_before(Offset{4});
  EXPECT_EQ(log->first_offset(), Offset{4});
  EXPECT_EQ(append({"fits"}), AppendOutcome::appended);
}

/// Parameter: true for a log of several segments, false for one segment.
class EndSegmentOfFullDiskTest : public EndSegmentTest, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Segments, EndSegmentOfFullDiskTest, testing::Bool());

TEST_P(EndSegmentOfFullDiskTest, TakesAFewKiBWithAnySegmentSize) {
  options.segment_bytes = 8 * limits::MiB;
  options.first_segment_bytes = 4 * limits::MiB;
  open();
  ASSERT_EQ(append({"a"}), AppendOutcome::appended);
  while (GetParam() && log->segments().size() < 3)
    ASSERT_EQ(append({std::string(900'000, 'x')}), AppendOutcome::appended);
  const Offset end = log->next_offset();
  leave_free(12 * limits::KiB);
  ASSERT_TRUE(log->end_segment().ok()) << log->last_error().text();
  EXPECT_EQ(log->first_offset(), Offset{0}) << "nothing had to be dropped for it";
  log->drop_before(end);
  while (work()) {
  }
  EXPECT_EQ(log->first_offset(), end);
  EXPECT_EQ(append({std::string(100'000, 'y')}), AppendOutcome::appended) << "in the room that it made";
  open();
  EXPECT_TRUE(log->recovery().clean()) << log->recovery().text();
  EXPECT_EQ(read_everything(*log, end).size(), 1U);
}

TEST_F(EndSegmentTest, FilesOfAnotherSizeInThePoolAreReplaced) {
  options.segment_bytes = limits::MiB;
  options.first_segment_bytes = 16 * limits::KiB;
  open();
  while (log->segments().size() < 4) ASSERT_EQ(append({std::string(8'000, 'x')}), AppendOutcome::appended);
  const Offset end = log->next_offset();
  leave_free(12 * limits::KiB);
  ASSERT_TRUE(log->end_segment().ok()) << log->last_error().text();
  log->drop_before(end);
  while (work()) {
  }
  EXPECT_GT(pool->files(), 0U);
  EXPECT_EQ(append({std::string(8'000, 'y')}), AppendOutcome::appended) << log->last_error().text();
}

TEST_F(EndSegmentTest, BelowTheFloorItTakesAFewKiBToo) {
  options.segment_bytes = options.first_segment_bytes = limits::MiB;
  options.disk_free_floor_bytes = 4 * limits::MiB;
  open();
  ASSERT_EQ(append({"a"}), AppendOutcome::appended);
  leave_free(3 * limits::MiB);
  ASSERT_EQ(append({std::string(1'100'000, 'x')}), AppendOutcome::no_space) << "nothing else goes below it";
  ASSERT_TRUE(log->end_segment().ok()) << log->last_error().text();
  log->drop_before(Offset{1});
  EXPECT_EQ(log->first_offset(), Offset{1});
}

TEST_F(EndSegmentTest, ExpiredMessagesAreDroppedFromAFullDiskToo) {
  options.segment_bytes = options.first_segment_bytes = limits::MiB;
  options.retention_ms = 1000;
  open();
  ASSERT_EQ(append({"a"}), AppendOutcome::appended);
  leave_free(12 * limits::KiB);
  now.us += 10'000'000;
  log->maintain(now);
  EXPECT_EQ(log->first_offset(), Offset{1}) << log->last_error().text();
}

TEST_F(EndSegmentTest, AWriteBehindLogWritesFirst) {
  open();
  WriteBehindLog behind({.ring = {.capacity_bytes = limits::MiB}}, std::move(log));
  auto batch = make_batch({"a", "b"});
  behind.append(batch, now);
  EXPECT_EQ(behind.written_offset(), Offset{0});
  ASSERT_TRUE(behind.end_segment().ok());
  EXPECT_EQ(behind.written_offset(), Offset{2});
  auto next = make_batch({"c"});
  behind.append(next, now);
  behind.drop_before(Offset{2});
  EXPECT_EQ(behind.first_offset(), Offset{2});
  EXPECT_EQ(read_everything(behind, Offset{2}), (std::vector<ReadMessage>{{{2}, "c"}}));
  ASSERT_TRUE(behind.flush().ok());
  EXPECT_EQ(read_everything(behind, Offset{2}), (std::vector<ReadMessage>{{{2}, "c"}}));
  EXPECT_EQ(behind.next_offset(), Offset{3});
}

TEST_F(EndSegmentTest, AWriteBehindLogOnAFullDiskDropsToWriteTheRemainingMessages) {
  options.segment_bytes = limits::MiB;
  open();
  for (int i = 0; i < 4; ++i) ASSERT_EQ(append({std::string(900'000, 'x')}), AppendOutcome::appended);
  WriteBehindLog behind({.ring = {.capacity_bytes = limits::MiB}}, std::move(log));
  auto batch = make_batch({std::string(200'000, 'y')});
  behind.append(batch, now);
  storage.disk_bytes = 0;
  ASSERT_TRUE(behind.end_segment().ok()) << behind.last_error().text();
  behind.drop_before(Offset{5});
  EXPECT_EQ(behind.first_offset(), Offset{5});
  EXPECT_EQ(behind.stored_bytes(), 0U);
}

TEST_F(EndSegmentTest, AWriteBehindLogThatCannotWriteReportsIt) {
  open();
  WriteBehindLog behind({.ring = {.capacity_bytes = limits::MiB}}, std::move(log));
  auto batch = make_batch({"a", "b"});
  behind.append(batch, now);
  storage.disk_bytes = 0;
  const auto ended = behind.end_segment();
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().code, ErrorCode::no_space);
  EXPECT_EQ(read_everything(behind).size(), 2U);
}

TEST_F(EndSegmentTest, ARingDropsOnlyWholeBatches) {
  RingLog ring({.capacity_bytes = limits::MiB});
  for (const char* payload : {"a", "b"}) {
    auto batch = make_batch({payload});
    ring.append(batch, now);
  }
  ASSERT_TRUE(ring.end_segment().ok());
  ring.drop_before(Offset{2});
  EXPECT_EQ(ring.first_offset(), Offset{2});
  EXPECT_EQ(ring.stored_bytes(), 0U);
}

}  // namespace
}  // namespace lightq::log
