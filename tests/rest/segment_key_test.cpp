/// Tests logs with mixed files: a file without its key id, which was lost before a repair, or a file that is
/// not encrypted.
#include <gtest/gtest.h>

#include <algorithm>

#include "log/tools/repair.hpp"
#include "support/batch_mask.hpp"
#include "support/storage_keys.hpp"
#include "support/tool_fixture.hpp"

namespace lightq::log {
namespace {

using test::Messages;

class SegmentKeyTest : public test::ToolFixture {
 protected:
  /// Writes thirty messages with the old key and thirty with the new one. The second file's key id is then
  /// lost by a repair.
  void lose_a_key_id() {
    options.ciphers = old_key.get();
    fill(30, 3000);
    log.reset();
    options.ciphers = both.get();
    fill(30, 3000);
    log.reset();
    names = segments();
    ASSERT_GE(names.size(), 4U);
    ASSERT_LT(names[1], 30U);
    flip(segment_path(names[1]), 20);
    // Removes the first file, as retention does. No other file then says that there was an old key.
    auto report = repair_in_place(directory, {}, storage);
    ASSERT_TRUE(report.ok()) << report.error().text();
    ASSERT_TRUE(storage.unlink(segment_path(0)).ok());
    std::erase_if(written, [&](const auto& message) { return message.first < names[1]; });
    ASSERT_EQ(header_of(names[1]).key_id, key_id_unknown);
  }
  SegmentHeader header_of(std::uint64_t first_offset) {
    SegmentPage page{};
    std::copy_n(storage.bytes_of(segment_path(first_offset)).begin(), page.size(), page.begin());
    return decode_segment_header(page).header.value();
  }
  Error refused() {
    log.reset();
    const auto before = all_below("/");
    const auto opened = SegmentLog::open(options, storage, *pool, now);
    EXPECT_FALSE(opened.ok());
    EXPECT_TRUE(all_below("/") == before) << "nothing is changed";
    return opened ? Error{} : opened.error();
  }
  Messages read_all() {
    Messages read;
    for (const auto& message : test::read_everything(*log)) read[message.offset.value] = message.payload;
    return read;
  }

  std::unique_ptr<rest::StorageKeys> old_key = test::storage_keys({1});
  std::unique_ptr<rest::StorageKeys> new_key = test::storage_keys({2});
  std::unique_ptr<rest::StorageKeys> both = test::storage_keys({2, 1});
  std::vector<std::uint64_t> names;
};

TEST_F(SegmentKeyTest, AMissingKeyIsNoDamageIfARepairLostItsId) {
  lose_a_key_id();
  options.ciphers = both.get();
  EXPECT_EQ(read_back(directory), written);
  options.ciphers = new_key.get();
  const Error error = refused();
  EXPECT_EQ(error.code, ErrorCode::not_supported);
  EXPECT_EQ(error.message, segment_path(names[1]) +
                               " is encrypted, and none of the given keys decrypts it (its key id was lost "
                               "before a repair); nothing was changed");
}

TEST_F(SegmentKeyTest, AnEncryptedFileInAnUnencryptedLogIsReported) {
  options.ciphers = old_key.get();
  fill(30, 3000);
  const std::uint64_t key_id = old_key->of(log->incarnation())->key_id();
  options.ciphers = nullptr;
  const Error error = refused();
  EXPECT_EQ(error.code, ErrorCode::not_supported);
  EXPECT_EQ(error.message, segment_path(0) + " is encrypted (key id " + key_id_text(key_id) +
                               "), but the log is opened without encryption; nothing was changed");
}

TEST_F(SegmentKeyTest, ForgedBatchesAreDamageWhileTheKeyDecryptsAnother) {
  lose_a_key_id();
  auto& bytes = storage.bytes_of(segment_path(names[1]));
  bytes[segment_header_bytes + batch_layout::header_bytes + 100] ^= std::byte{1};
  test::mend_batch_in(bytes, segment_header_bytes);
  options.ciphers = both.get();
  open();
  for (std::uint64_t offset = names[1]; offset < names[1] + 5; ++offset) written.erase(offset);
  EXPECT_EQ(read_all(), written);
}

TEST_F(SegmentKeyTest, AnInspectionReportsItToo) {
  lose_a_key_id();
  test::Keeper keeper;
  InspectOptions how;
  how.ciphers = new_key.get();
  const auto totals = inspect_log(directory, storage, how, keeper);
  ASSERT_FALSE(totals.ok());
  EXPECT_EQ(totals.error().code, ErrorCode::not_supported);
  EXPECT_NE(totals.error().message.find(segment_path(names[1])), std::string::npos);
  EXPECT_TRUE(keeper.findings.empty()) << keeper.text();
  how.ciphers = both.get();
  ASSERT_TRUE(inspect_log(directory, storage, how, keeper).ok());
  EXPECT_TRUE(keeper.findings.empty() && keeper.messages == written) << keeper.text();
}

TEST_F(SegmentKeyTest, AnUnencryptedBatchInAnEncryptedLogIsNeitherDeliveredNorSkipped) {
  fill(30, 3000);
  log.reset();
  options.ciphers = new_key.get();
  const Error error = refused();
  EXPECT_EQ(error.code, ErrorCode::corrupt);
  EXPECT_EQ(error.message, segment_path(0) +
                               " is not encrypted, but its log is: the file is older than the encryption, or "
                               "somebody put it there; nothing was changed");
  options.ciphers = nullptr;
  EXPECT_EQ(read_back(directory), written) << "as before";
}

TEST_F(SegmentKeyTest, AnUnencryptedFileAfterEncryptedOnesIsReported) {
  fill(30, 3000);
  log.reset();
  const std::uint64_t middle = segments()[1];
  auto planted = storage.bytes_of(segment_path(middle));
  options.directory = "/topics/2";
  options.ciphers = new_key.get();
  written.clear();
  fill(middle, 3000);
  EXPECT_EQ(read_all(), written);
  SegmentHeader header = header_of(middle);
  header.incarnation = log->incarnation();
  const SegmentPage page = encode_segment_header(header);
  std::ranges::copy(page, planted.begin());
  const std::string path = "/topics/2/" + segment_name({middle});
  put(path, planted);
  const Error error = refused();
  EXPECT_EQ(error.code, ErrorCode::corrupt);
  EXPECT_TRUE(error.message.starts_with(path + " is not encrypted")) << error.message;
  ASSERT_TRUE(storage.unlink(path).ok());
  open();
  EXPECT_EQ(read_all(), written);
}

TEST_F(SegmentKeyTest, ASegmentWithNothingInItKeepsNoLogClosed) {
  open();
  ASSERT_TRUE(log->settle().ok());
  ASSERT_EQ(segments(), std::vector<std::uint64_t>{0});
  log.reset();
  options.ciphers = new_key.get();
  fill(10, 3000);
  EXPECT_EQ(read_all(), written);
  log.reset();
  EXPECT_EQ(read_back(directory), written);
  EXPECT_NE(header_of(segments().back()).key_id, 0U);
}

}  // namespace
}  // namespace lightq::log
