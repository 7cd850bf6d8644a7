/// Tests inspecting logs in which some files are encrypted and others are not.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "support/storage_keys.hpp"
#include "support/tool_fixture.hpp"

namespace lightq::log {
namespace {

class MixedLogTest : public test::ToolFixture {
 protected:
  using Kind = Finding::Kind;
  /// Records findings and summaries. Accepts batches unread, because encrypted ones cannot be read without
  /// the key.
  class Looker final : public LogVisitor {
   public:
    bool on_batch(const ScannedBatch&, const BatchView&) override { return true; }
    bool on_finding(const Finding& finding) override {
      findings.push_back(finding);
      return true;
    }
    bool on_summary(const SegmentSummary& summary) override {
      summaries.push_back(summary);
      return true;
    }
    [[nodiscard]] std::vector<Finding> mixed() const {
      std::vector<Finding> found;
      std::ranges::copy_if(findings, std::back_inserter(found),
                           [](const Finding& finding) { return finding.kind == Kind::mixed; });
      return found;
    }
    std::vector<Finding> findings;
    std::vector<SegmentSummary> summaries;
  };

  /// Writes some segments. Returns the first offsets of the directory's segments.
  std::vector<std::uint64_t> write_log(const std::string& where, const BatchCiphers* ciphers) {
    options.directory = where;
    options.ciphers = ciphers;
    written.clear();
    fill(100, 3000);
    incarnation_ = log->incarnation();
    log.reset();
    return segments(where);
  }
  /// Makes two logs of different kinds and replaces the first file of `/topics/1` with that of `/topics/2`.
  /// The header's incarnation is corrected, so that only the kind is wrong. Returns the file's path.
  std::string mix(const BatchCiphers* of_most, const BatchCiphers* of_one) {
    const auto others = write_log("/topics/2", of_one);
    const auto own = write_log("/topics/1", of_most);
    EXPECT_GE(own.size(), 4U);
    EXPECT_EQ(own[0], others[0]);
    auto file = storage.bytes_of("/topics/2/" + segment_name({0}));
    SegmentHeader header = *decode_segment_header(SegmentPageOf(file)).header;
    header.incarnation = incarnation_;
    const SegmentPage page = encode_segment_header(header);
    std::ranges::copy(page, file.begin());
    const std::string path = "/topics/1/" + segment_name({0});
    put(path, file);
    return path;
  }
  std::vector<Finding> mixed(const BatchCiphers* ciphers, Looker& looker) {
    InspectOptions how;
    how.ciphers = ciphers;
    const auto totals = inspect_log("/topics/1", storage, how, looker);
    EXPECT_TRUE(totals.ok()) << totals.error().text();
    return looker.mixed();
  }
  static SegmentPage SegmentPageOf(const std::vector<std::byte>& file) {
    SegmentPage page{};
    std::copy_n(file.begin(), page.size(), page.begin());
    return page;
  }

  std::unique_ptr<rest::StorageKeys> keys = test::storage_keys({1});
  std::uint64_t incarnation_ = 0;
};

TEST_F(MixedLogTest, AFileInClearAmongEncryptedOnesIsDamageWithTheKeyAndWithoutIt) {
  const std::string path = mix(keys.get(), nullptr);
  for (const BatchCiphers* ciphers :
       {static_cast<const BatchCiphers*>(nullptr), static_cast<const BatchCiphers*>(keys.get())}) {
    Looker looker;
    const auto found = mixed(ciphers, looker);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].file, path);
    EXPECT_TRUE(found[0].is_damage());
    EXPECT_EQ(to_word(found[0].kind), "mixed");
    EXPECT_EQ(found[0].text(), path +
                                   " is not encrypted, but other segments are: the log mixes encrypted and "
                                   "unencrypted segments, so a broker delivers nothing from it");
    const auto damaged = std::ranges::count_if(looker.summaries, [&](const SegmentSummary& summary) {
      return summary.damages != 0 && summary.segment.path == path;
    });
    EXPECT_EQ(damaged, 1);
  }
}

TEST_F(MixedLogTest, AnEncryptedFileAmongThoseInClearIsDamageToo) {
  const std::string path = mix(nullptr, keys.get());
  Looker looker;
  const auto found = mixed(nullptr, looker);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].file, path);
  EXPECT_TRUE(found[0].text().starts_with(path + " is encrypted, but other segments are not"))
      << found[0].text();
}

TEST_F(MixedLogTest, WithTheKeyItReportsThatTheLogIsEncrypted) {
  const std::string encrypted = mix(nullptr, keys.get());
  Looker looker;
  // The key belongs to the log that the one file is from. The test checks only which files are reported.
  InspectOptions how;
  how.ciphers = keys.get();
  how.from = {written.empty() ? 0 : segments("/topics/1")[1]};
  ASSERT_TRUE(inspect_log("/topics/1", storage, how, looker).ok());
  const auto found = looker.mixed();
  EXPECT_EQ(found.size(), segments("/topics/1").size() - 1);
  for (const Finding& finding : found) EXPECT_NE(finding.file, encrypted);
}

TEST_F(MixedLogTest, ALogOfOneKindIsNot) {
  for (const BatchCiphers* ciphers :
       {static_cast<const BatchCiphers*>(nullptr), static_cast<const BatchCiphers*>(keys.get())}) {
    const std::string where = ciphers == nullptr ? "/topics/3" : "/topics/4";
    write_log(where, ciphers);
    for (const BatchCiphers* with : {ciphers, static_cast<const BatchCiphers*>(keys.get())}) {
      Looker looker;
      InspectOptions how;
      how.ciphers = with;
      ASSERT_TRUE(inspect_log(where, storage, how, looker).ok());
      EXPECT_TRUE(looker.findings.empty());
    }
  }
}

/// A broker with encryption opens a topic. The topic's only file was created without encryption, and has no
/// batch.
TEST_F(MixedLogTest, AnUnencryptedFileWithoutABatchDoesNotMakeALogMixed) {
  open();
  ASSERT_TRUE(log->settle().ok());
  log.reset();
  options.ciphers = keys.get();
  fill(60, 3000);
  log.reset();
  Looker looker;
  EXPECT_TRUE(mixed(keys.get(), looker).empty());
}

}  // namespace
}  // namespace lightq::log
