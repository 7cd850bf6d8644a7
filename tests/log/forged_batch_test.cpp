/// Tests messages that contain whole batches, as a client may store them. None is ever taken for a batch of
/// the log.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "log/tools/repair.hpp"
#include "support/batch_mask.hpp"
#include "support/tool_fixture.hpp"

namespace lightq::log {
namespace {

using test::read_everything;
using test::ReadMessage;

class ForgedBatchTest : public test::ToolFixture {
 protected:
  ForgedBatchTest() {
    options.segment_bytes = limits::segment_bytes_min;
    open();
  }
  /// Returns a message that contains a batch with this first offset, epoch and mask. Clients know neither the
  /// epoch nor the mask; the log must refuse such a batch even if the epoch is right.
  static std::string message_with_batch(Offset offset, std::uint32_t epoch, std::uint32_t mask) {
    auto batch = test::make_batch({"forged"});
    stamp_batch(batch, offset, Timestamp{1}, epoch, mask);
    return std::string(20'000, 'x') + std::string(as_text(batch));
  }
  [[nodiscard]] const SegmentHeader& header() const { return log->segments().active().header(); }
  /// Appends the message, drops its segment, and begins a segment with one message in the same file. Then
  /// opens the log as after a kill. Returns how many offsets the log has then that were not appended.
  std::uint64_t use_file_again(std::uint32_t mask) {
    EXPECT_EQ(append({"first"}), AppendOutcome::appended);
    const std::uint32_t epoch = header().epoch;
    EXPECT_EQ(append({message_with_batch({1000}, epoch + 1, mask)}), AppendOutcome::appended);
    EXPECT_TRUE(log->drop_first(log->next_offset(), 0));
    now.us += 10'000'000;
    while (work()) now.us += 10'000'000;
    EXPECT_EQ(pool->files(), 1U);
    EXPECT_EQ(append({"second"}), AppendOutcome::appended);
    while (log->segments().size() < 3 && header().epoch != epoch + 1)
      EXPECT_EQ(append({std::string(5000, 'y')}), AppendOutcome::appended);
    EXPECT_EQ(header().epoch, epoch + 1);
    const Offset end = log->next_offset();
    open();
    return distance(end, log->next_offset());
  }
};

TEST_F(ForgedBatchTest, EachLogHasAMaskThatItsClientsDoNotKnow) {
  ASSERT_EQ(append({"message"}), AppendOutcome::appended);
  const std::uint32_t mask = header().batch_mask;
  EXPECT_NE(mask, 0U);
  EXPECT_EQ(test::batch_mask_in(storage.bytes_of(segment_path(0))), mask);
  options.directory = "/topics/2";
  open();
  ASSERT_EQ(append({"message"}), AppendOutcome::appended);
  EXPECT_NE(header().batch_mask, mask);
  options.directory = directory;
  open();
  EXPECT_EQ(header().batch_mask, mask) << "for all the log's life";
  ReadPosition place{};
  const ReadResult read = log->read(place);
  ASSERT_EQ(read.outcome, ReadOutcome::batch);
  EXPECT_EQ(BatchView::check_header(read.batch.bytes(), mask), std::nullopt);
  EXPECT_EQ(BatchView::check_header(read.batch.bytes()), BatchFault::bad_header_crc);
}

TEST_F(ForgedBatchTest, NoLogUsesFilesOfAnother) {
  ASSERT_EQ(append({"secret"}), AppendOutcome::appended);
  ASSERT_TRUE(log->drop_first(log->next_offset(), 0));
  now.us += 10'000'000;
  while (work()) now.us += 10'000'000;
  ASSERT_EQ(pool->files(), 1U);
  options.directory = "/topics/2";
  open();
  ASSERT_EQ(append({"message"}), AppendOutcome::appended);
  EXPECT_EQ(pool->files(), 1U);
  EXPECT_EQ(as_text(storage.bytes_of(log->segments().active().path())).find("secret"),
            std::string_view::npos);
}

// The epoch is right, so only the mask distinguishes the forged batch from real ones.
TEST_F(ForgedBatchTest, InARecycledFileAForgedBatchIsIgnored) {
  EXPECT_EQ(use_file_again(0), 0U);
  EXPECT_TRUE(log->recovery().damaged.empty()) << log->recovery().text();
}

// Shows that the test above can fail: a client that knew epoch and mask could forge a batch.
TEST_F(ForgedBatchTest, WithTheRightMaskItWouldBeOne) {
  ASSERT_EQ(append({"zero"}), AppendOutcome::appended);
  EXPECT_GT(use_file_again(header().batch_mask), 0U);
}

// After a power cut the file has the new segment's name and the bytes of its earlier use.
TEST_F(ForgedBatchTest, UnderTheHeaderOfAnEarlierUseIsNoMessage) {
  ASSERT_EQ(append({"first"}), AppendOutcome::appended);
  const std::uint32_t epoch = header().epoch;
  ASSERT_EQ(append({message_with_batch({1000}, epoch + 1, 0)}), AppendOutcome::appended);
  const auto begin_segment = [&] {
    while (log->segments().size() < 2) ASSERT_EQ(append({std::string(5000, 'y')}), AppendOutcome::appended);
  };
  begin_segment();
  const auto earlier = storage.bytes_of(segment_path(0));
  ASSERT_TRUE(log->drop_first(log->next_offset(), 0));
  now.us += 10'000'000;
  while (work()) now.us += 10'000'000;
  begin_segment();
  ASSERT_EQ(header().epoch, epoch + 1);
  const Offset newest = header().first_offset;
  log.reset();
  pool = std::make_unique<SegmentPool>(SegmentPoolOptions{"/pool"}, storage);
  storage.bytes_of(segment_path(newest.value)) = earlier;
  open();
  EXPECT_TRUE(log->recovery().damaged.empty()) << log->recovery().text();
  EXPECT_EQ(log->next_offset(), newest);
}

// The search for sound batches past damage reads through the bytes of messages.
TEST_F(ForgedBatchTest, AfterDamageAForgedBatchIsIgnored) {
  ASSERT_EQ(append({"before"}), AppendOutcome::appended);
  const std::uint64_t damaged = log->segments().active().end_position();
  ASSERT_EQ(append({message_with_batch({1}, header().epoch, 0)}), AppendOutcome::appended);
  ASSERT_EQ(append({"behind"}), AppendOutcome::appended);
  std::fill_n(storage.bytes_of(segment_path(0)).begin() + static_cast<std::ptrdiff_t>(damaged), 40,
              std::byte{'x'});
  open();
  EXPECT_EQ(log->recovery().damaged_messages, 1U) << log->recovery().text();
  EXPECT_EQ(read_everything(*log), (std::vector<ReadMessage>{{{0}, "before"}, {{2}, "behind"}}));
}

// The file's mask is lost with its header. The repair takes the mask from the first batch.
TEST_F(ForgedBatchTest, ARepairSavesMessagesAfterALostHeader) {
  ASSERT_EQ(append({"one"}), AppendOutcome::appended);
  ASSERT_EQ(append({message_with_batch({2}, header().epoch, 0)}), AppendOutcome::appended);
  ASSERT_EQ(append({"three"}), AppendOutcome::appended);
  log.reset();
  std::fill_n(storage.bytes_of(segment_path(0)).begin(), test::FaultyStorage::sector_bytes, std::byte{'x'});
  RepairOptions repair;
  repair.trust_batches = true;
  const auto report = repair_to(directory, "/new", repair, storage);
  ASSERT_TRUE(report.ok()) << report.error().text();
  EXPECT_EQ(report->messages, 3U);
  options.directory = "/new";
  open();
  EXPECT_TRUE(log->recovery().clean()) << log->recovery().text();
  const auto found = read_everything(*log);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[2], (ReadMessage{{2}, "three"}));
  ASSERT_EQ(append({"four"}), AppendOutcome::appended);
  open();
  EXPECT_EQ(read_everything(*log).size(), 4U);
}

// The file was written by a version without masks.
TEST_F(ForgedBatchTest, AFileWithoutAMaskIsReadAndContinued) {
  const auto golden = encode_segment_header({7, {0}, 1, limits::segment_bytes_min});
  std::vector<std::byte> bytes(limits::segment_bytes_min);
  std::ranges::copy(golden, bytes.begin());
  auto batch = test::make_batch({"old"});
  stamp_batch(batch, {0}, now, 7);
  std::ranges::copy(batch, bytes.begin() + segment_header_bytes);
  put(segment_path(0), bytes);
  open();
  ASSERT_EQ(append({"new"}), AppendOutcome::appended);
  EXPECT_EQ(header().batch_mask, 0U);
  while (log->segments().size() < 2) ASSERT_EQ(append({std::string(5000, 'y')}), AppendOutcome::appended);
  EXPECT_NE(header().batch_mask, 0U);
  const std::uint64_t messages = log->next_offset().value;
  open();
  EXPECT_EQ(read_everything(*log).size(), messages);
}

}  // namespace
}  // namespace lightq::log
