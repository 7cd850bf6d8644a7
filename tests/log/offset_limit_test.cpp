/// Tests the highest offset: a log takes stored offsets above it for damage, and appends nothing there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include <lightq/base/limits.hpp>

#include "support/batch_mask.hpp"
#include "support/log_fixture.hpp"

namespace lightq::log {
namespace {

using test::read_everything;
using test::ReadMessage;

class OffsetLimitTest : public test::LogFixture {
 protected:
  OffsetLimitTest() { options.segment_bytes = limits::segment_bytes_min; }

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
  const std::uint64_t file_bytes = storage.bytes_of(segment_path(0)).size();
  remove_log();
  const std::uint64_t highest_start = limits::offset_max - limits::batch_records_max;
  for (const bool used_up : {false, true}) {
    const Offset first{highest_start + (used_up ? 1 : 0)};
    ASSERT_TRUE(storage.open(segment_path(first.value), OpenMode::create).ok());
    auto& file = storage.bytes_of(segment_path(first.value));
    file.assign(file_bytes, std::byte{0});
    const auto header = encode_segment_header({7, first, 1, file_bytes});
    std::copy(header.begin(), header.end(), file.begin());
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

TEST_F(OffsetLimitTest, NoSegmentIsNamedAfterAHigherOffset) {
  EXPECT_EQ(segment_name_offset("09223372036854775807.seg"), Offset{limits::offset_max});
  EXPECT_EQ(segment_name_offset("09223372036854775808.seg"), std::nullopt);
  EXPECT_EQ(segment_name_offset("18446744073709551615.seg"), std::nullopt);
}

}  // namespace
}  // namespace lightq::log
