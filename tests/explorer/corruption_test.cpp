/// Damages a small log exhaustively: no wrong message is ever read, and no message is lost without a report.
#include "explorer/corruption.hpp"
#include "explorer/lying_index.hpp"
#include "explorer/open_batch_damage.hpp"

#include <gtest/gtest.h>

#include <iostream>

namespace lightq::test {
namespace {

class CorruptionTest : public testing::Test {
 protected:
  static CorruptionOptions options() {
    CorruptionOptions chosen;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    chosen.bit_step = 23;  // not a multiple of eight, so that it is another bit in each byte
#endif
    return chosen;
  }
  static void expect_noticed(const CorruptionResult& result) {
    std::cout << result.cases << " cases: " << result.detected << " detected, " << result.harmless
              << " without effect, " << result.passed_over << " sound batches passed over\n";
    EXPECT_EQ(result.violation.value_or(""), "");
    EXPECT_NE(result.detected, 0U);
  }
  Corruption corruption{options()};
};

TEST_F(CorruptionTest, NoFlippedBitYieldsAWrongMessageOrLosesOneInSilence) {
  expect_noticed(corruption.flip_bits());
}

TEST_F(CorruptionTest, SwappedCopiedZeroedOrForeignBatchesAreNotReadAsMessages) {
  expect_noticed(corruption.move_batches());
}

TEST_F(CorruptionTest, DamagedSectorsAreNotReadAsMessages) {
  expect_noticed(corruption.move_sectors());
}

TEST_F(CorruptionTest, CutRemovedOrExchangedFilesAreNotReadAsMessages) {
  expect_noticed(corruption.spoil_files());
}

TEST_F(CorruptionTest, NoDamageToCursorFilesYieldsACursorThatWasNeverWritten) {
  expect_noticed(corruption.spoil_cursors());
}

// The catalogue is such a log: one small file that is never sealed.
TEST(CatalogueCorruptionTest, ALogOfOneUnsealedFileIsAsSafe) {
  CorruptionOptions options;
  options.messages = 6;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  options.bit_step = 23;
#endif
  Corruption corruption(options);
  for (const auto& result : {corruption.flip_bits(), corruption.move_batches(), corruption.move_sectors()}) {
    EXPECT_EQ(result.violation.value_or(""), "");
    EXPECT_NE(result.detected, 0U);
  }
}

TEST(OpenBatchDamageTest, NoFlippedBitMakesAWrongMessageOfAnOpenBatch) {
  std::uint64_t cases = 0;
  EXPECT_EQ(flip_open_batch(cases).value_or(""), "");
  EXPECT_GT(cases, 30'000);
}

TEST(LyingIndexTest, NoIndexChangesAMessageOrAPosition) {
  std::uint64_t cases = 0;
  EXPECT_EQ(read_by_lying_indexes(cases).value_or(""), "");
  EXPECT_GT(cases, 1'000);
}

}  // namespace
}  // namespace lightq::test
