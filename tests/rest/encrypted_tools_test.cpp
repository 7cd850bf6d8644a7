/// Tests inspecting, repairing and copying encrypted logs, with and without the key.
#include <gtest/gtest.h>

#include "log/tools/repair.hpp"
#include "log/tools/snapshot.hpp"
#include "support/batch_mask.hpp"
#include "support/storage_keys.hpp"
#include "support/tool_fixture.hpp"

namespace lightq::log {
namespace {

using test::Messages;

class EncryptedToolsTest : public test::ToolFixture {
 protected:
  /// Keeps readable messages and counts unreadable batches.
  class Counter final : public LogVisitor {
   public:
    bool on_batch(const ScannedBatch& batch, const BatchView& view) override {
      if (view.is_encrypted()) {
        ++encrypted;
        return true;
      }
      std::uint64_t offset = batch.base.value;
      for (const auto& payload : test::payloads_of(view)) messages[offset++] = payload;
      return true;
    }
    bool on_finding(const Finding& finding) override {
      findings.push_back(finding);
      return true;
    }
    Messages messages;
    std::uint64_t encrypted = 0;
    std::vector<Finding> findings;
  };

  EncryptedToolsTest() { options.ciphers = keys.get(); }
  Result<InspectTotals> look(Counter& counter, const BatchCiphers* ciphers) {
    InspectOptions how;
    how.with_cursors = true;
    how.with_indexes = true;
    how.ciphers = ciphers;
    return inspect_log(directory, storage, how, counter);
  }
  /// Writes three full segments and a last one.
  void fill_and_close() {
    fill(60, 3000);
    log.reset();
  }

  std::unique_ptr<rest::StorageKeys> keys = test::storage_keys({1});
  std::unique_ptr<rest::StorageKeys> others = test::storage_keys({2});
};

TEST_F(EncryptedToolsTest, AllIsSeenWithTheKey) {
  fill_and_close();
  Counter counter;
  const auto totals = look(counter, keys.get());
  ASSERT_TRUE(totals.ok()) << totals.error().text();
  EXPECT_EQ(counter.messages, written);
  EXPECT_EQ(totals->damages, 0U);
  EXPECT_EQ(totals->encrypted_batches, 12U);
  EXPECT_EQ(totals->decrypted_batches, 12U);
}

TEST_F(EncryptedToolsTest, WithoutTheKeyChecksumsAreCheckedAndPositionsPrinted) {
  fill_and_close();
  Counter counter;
  auto totals = look(counter, nullptr);
  ASSERT_TRUE(totals.ok());
  EXPECT_EQ(counter.encrypted, 12U);
  EXPECT_EQ(totals->messages, 60U);
  EXPECT_EQ(totals->damages, 0U);
  EXPECT_EQ(totals->decrypted_batches, 0U);
  flip(segment_path(0), segment_header_bytes + 1000);
  Counter damaged;
  totals = look(damaged, nullptr);
  EXPECT_EQ(totals->damages, 1U);
  EXPECT_EQ(totals->lost_messages, 5U);
}

TEST_F(EncryptedToolsTest, AWrongKeyIsAnErrorThatNamesFileAndKey) {
  fill_and_close();
  Counter counter;
  const auto totals = look(counter, others.get());
  ASSERT_FALSE(totals.ok());
  EXPECT_EQ(totals.error().code, ErrorCode::not_supported);
  EXPECT_NE(totals.error().message.find(segment_path(0)), std::string::npos);
  EXPECT_TRUE(counter.messages.empty() && counter.findings.empty());
}

// All checksums are right. Only decryption can detect the forgery.
TEST_F(EncryptedToolsTest, VerifyWithTheKeyFindsForgedBatches) {
  fill_and_close();
  auto& bytes = storage.bytes_of(segment_path(0));
  bytes[segment_header_bytes + batch_layout::header_bytes + 100] ^= std::byte{1};
  test::mend_batch_in(bytes, segment_header_bytes);
  Counter without;
  EXPECT_EQ(look(without, nullptr)->damages, 0U);
  Counter with;
  const auto totals = look(with, keys.get());
  EXPECT_EQ(totals->damages, 1U);
  EXPECT_EQ(totals->lost_messages, 5U);
  ASSERT_EQ(with.findings.size(), 1U);
  EXPECT_EQ(to_word(with.findings[0].kind), "forged");
  EXPECT_EQ(with.findings[0].begin_position, segment_header_bytes);
  EXPECT_NE(with.findings[0].text().find(segment_path(0)), std::string::npos) << with.findings[0].text();
  EXPECT_EQ(with.messages.size(), 55U);
}

TEST_F(EncryptedToolsTest, ARepairNeedsNoKey) {
  fill_and_close();
  const auto names = segments();
  ASSERT_GE(names.size(), 3U);
  const std::size_t batch_bytes = 64 + 48 + 5 * 3004;
  flip(segment_path(0), segment_header_bytes + batch_bytes + 1000);  // damages five messages
  flip(segment_path(names[1]), 20);  // damages the header, so that its key id is lost too
  const auto report = repair_to(directory, "/saved", {}, storage);
  ASSERT_TRUE(report.ok()) << report.error().text();
  EXPECT_EQ(report->lost_messages(), 5U);
  Messages expected = written;
  for (std::uint64_t offset = 5; offset < 10; ++offset) expected.erase(offset);
  EXPECT_EQ(read_back("/saved"), expected);
  options.ciphers = nullptr;
  SegmentLogOptions there = options;
  there.directory = "/saved";
  EXPECT_EQ(SegmentLog::open(there, storage, *pool, now).error().code, ErrorCode::not_supported);
  options.ciphers = keys.get();
  ASSERT_TRUE(repair_in_place(directory, {}, storage).ok());
  EXPECT_EQ(read_back(directory), expected);
}

TEST_F(EncryptedToolsTest, ALogWithoutItsIdentityDoesNotGetANewOne) {
  fill_and_close();
  for (const std::uint64_t name : segments())
    std::fill_n(storage.bytes_of(segment_path(name)).begin(), segment_header_bytes, std::byte{0});
  const auto before = all_below(directory);
  const auto report = repair_to(directory, "/saved", {.trust_batches = true}, storage);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, ErrorCode::corrupt);
  EXPECT_NE(report.error().message.find("could not be decrypted"), std::string::npos)
      << report.error().message;
  EXPECT_TRUE(all_below(directory) == before && all_below("/saved").empty());
}

TEST_F(EncryptedToolsTest, ASnapshotNeedsNoKey) {
  fill(60, 3000);
  const auto report = snapshot_log(directory, "/copy", storage);
  ASSERT_TRUE(report.ok()) << report.error().text();
  log.reset();
  EXPECT_EQ(read_back("/copy"), written);
}

}  // namespace
}  // namespace lightq::log
