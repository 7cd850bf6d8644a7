/// Tests the list of a backup's files.
#include "client/backup/manifest.hpp"

#include <gtest/gtest.h>

namespace lightq::cli {
namespace {

std::string document(const std::string& path, const std::string& more = R"("bytes":3,"crc32c":7)") {
  return R"({"format":1,"version":"0.1.0","files":[{"path":")" + path + "\"," + more + "}]}";
}

TEST(Manifest, IsReadAsItWasWritten) {
  const BackupManifest manifest{
      .version = "0.1.0",
      .time_ms = 1'764'000'000'000,
      .files = {{"catalogue/00000001/00000000000000000000.seg", 65536, 0xFFFFFFFF}, {"ticket.key", 0, 0}}};
  const auto read = parse_manifest(manifest_text(manifest));
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(read->version, manifest.version);
  EXPECT_EQ(read->time_ms, manifest.time_ms);
  EXPECT_EQ(read->files, manifest.files);
}

TEST(Manifest, HasOnlyPathsBelowTheBackup) {
  EXPECT_TRUE(parse_manifest(document("topics/1/cursors.0")).ok());
  for (const char* const path : {"", "/etc/passwd", "../a", "topics/../../a", "a//b", "a/", ".", ".hidden/a",
                                 "a\\nb", "a b", "topics/1/\\u0000", "a\\\\b"})
    EXPECT_FALSE(parse_manifest(document(path)).ok()) << path;
  EXPECT_FALSE(parse_manifest(document(std::string(256, 'a'))).ok());
}

TEST(Manifest, RefusesWhatIsMissingOrGivenTwice) {
  for (const std::string& text :
       {std::string("{}"), std::string("[]"), std::string("{"),
        std::string(R"({"format":2,"version":"1","files":[]})"),
        std::string(R"({"format":1,"version":"1","files":[]})"), document("a", R"("bytes":3)"),
        document("a", R"("crc32c":3)"), document("a", R"("bytes":-1,"crc32c":3)"),
        document("a", R"("bytes":1,"crc32c":4294967296)"),
        std::string(R"({"format":1,"version":"1","files":[{"path":"a","bytes":1,"crc32c":1},)"
                    R"({"path":"a","bytes":1,"crc32c":1}]})")}) {
    const auto read = parse_manifest(text);
    EXPECT_FALSE(read.ok()) << text;
    if (!read) {
      EXPECT_FALSE(read.error().message.empty());
    }
  }
}

}  // namespace
}  // namespace lightq::cli
