/// Tests how a log treats its last file after a power cut, if the file contains batches of another log with
/// far higher offsets. Versions before 0.1.0 passed files from log to log with their contents.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "log/tools/repair.hpp"
#include "support/tool_fixture.hpp"

namespace lightq::log {
namespace {

using test::read_everything;

/// A log that was given a file of another log. It used the file for a short segment, dropped that segment,
/// and continues in the same file. The power then fails when only the new segment's name is on disk.
class PassedOnFileTest : public test::ToolFixture {
 protected:
  static constexpr std::size_t foreign_messages_per_batch = 1000;

  PassedOnFileTest() {
    options.segment_bytes = limits::segment_bytes_min;
    const Offset foreign_end = fill_foreign_file();
    options.segment_messages_max = 1;
    open();
    EXPECT_EQ(append({"a"}), AppendOutcome::appended);
    plant_foreign_batches(storage.bytes_of(segment_path(0)));
    earlier_ = storage.bytes_of(segment_path(0));
    EXPECT_EQ(append({"b"}), AppendOutcome::appended);
    EXPECT_TRUE(log->drop_first(log->next_offset(), 0));
    do_all_work();
    EXPECT_EQ(append({"c"}), AppendOutcome::appended);
    newest = log->segments().active().first_offset();
    EXPECT_LT(newest, foreign_end);
    EXPECT_EQ(epoch_of(storage.bytes_of(segment_path(newest.value))), epoch_of(earlier_) + 1);
    log.reset();
    pool = std::make_unique<SegmentPool>(SegmentPoolOptions{"/pool"}, storage);
  }
  /// Undoes everything of the newest segment except its name.
  void undo_newest() { storage.bytes_of(segment_path(newest.value)) = earlier_; }
  /// Undoes only the first sector of the newest segment.
  void undo_header_of_newest() {
    std::copy_n(earlier_.begin(), test::FaultyStorage::sector_bytes,
                storage.bytes_of(segment_path(newest.value)).begin());
  }

  Offset newest;

 private:
  static std::uint32_t epoch_of(const std::vector<std::byte>& bytes) {
    SegmentPage page{};
    std::copy_n(bytes.begin(), page.size(), page.begin());
    return decode_segment_header(page).header->epoch;
  }
  void do_all_work() {
    now.us += 10'000'000;
    while (work()) now.us += 10'000'000;
  }
  /// Fills a few files with another log. Returns the end offset of the segment that gives its file to the log
  /// under test.
  Offset fill_foreign_file() {
    SegmentLogOptions other = options;
    other.directory = "/topics/2";
    auto opened = SegmentLog::open(other, storage, *pool, now).value_or_throw();
    const std::vector<std::string> payloads(foreign_messages_per_batch, "x");
    while (opened->next_offset().value < 30 * foreign_messages_per_batch) {
      auto batch = test::make_batch(payloads);
      EXPECT_EQ(opened->append(batch, now).outcome, AppendOutcome::appended);
    }
    const SegmentFile& last = opened->segments().at(opened->segments().size() - 2);
    foreign_ = storage.bytes_of(last.path());
    const Offset end = last.end_offset();
    EXPECT_TRUE(opened->destroy().ok());
    return end;
  }
  // Copies the foreign batches behind the first batches, where no later batch overwrites them.
  void plant_foreign_batches(std::vector<std::byte>& bytes) const {
    constexpr std::ptrdiff_t from = segment_header_bytes + 4096;
    EXPECT_EQ(bytes.size(), foreign_.size());
    std::copy(foreign_.begin() + from, foreign_.end(), bytes.begin() + from);
  }

  std::vector<std::byte> foreign_;
  std::vector<std::byte> earlier_;
};

TEST_F(PassedOnFileTest, RemainsOfAnotherLogAreNoMessages) {
  undo_newest();
  open();
  EXPECT_TRUE(log->recovery().damaged.empty()) << log->recovery().text();
  EXPECT_EQ(log->next_offset(), newest);
  EXPECT_FALSE(storage.exists(segment_path(newest.value)));
}

TEST_F(PassedOnFileTest, VerifyTakesItForATornEnd) {
  undo_newest();
  test::Keeper keeper;
  const auto totals = inspect(keeper);
  EXPECT_EQ(totals.damages, 0U) << keeper.text();
  EXPECT_EQ(totals.next_offset, newest);
}

TEST_F(PassedOnFileTest, ARepairContinuesAtTheEndOfTheLog) {
  undo_newest();
  const auto report = repair_to(directory, "/new", {}, storage);
  ASSERT_TRUE(report.ok()) << report.error().text();
  EXPECT_EQ(report->next_offset, newest);
  EXPECT_EQ(report->lost_messages(), 0U);
}

TEST_F(PassedOnFileTest, ItsOwnMessagesWithoutTheirHeaderAreOnlyDamage) {
  undo_header_of_newest();
  open();
  ASSERT_EQ(log->recovery().damaged.size(), 1U) << log->recovery().text();
  EXPECT_EQ(log->recovery().damaged_messages, 1U);
  EXPECT_EQ(log->next_offset(), newest + 1);
}

}  // namespace
}  // namespace lightq::log
