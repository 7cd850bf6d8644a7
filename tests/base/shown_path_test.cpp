/// Tests of lightq/base/shown_path.hpp: which file names error texts repeat.
#include <lightq/base/shown_path.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <lightq/base/private_file.hpp>

namespace lightq {
namespace {

const std::string hex_key = "00112233445566778899aabbccddeeffFFEEDDCCBBAA99887766554433221100";

TEST(ShownPath, ShowsAnythingThatLooksLikeAPath) {
  for (const std::string name : {"/etc/key", "keys/storage", "./key", "storage.keys", ".key", "secrets/"})
    EXPECT_EQ(shown_path(name), name);
}

TEST(ShownPath, HidesPossibleSecrets) {
  for (const std::string& name : {std::string("hunter2"), std::string("correct horse"), hex_key})
    EXPECT_THAT(shown_path(name), testing::Not(testing::HasSubstr(name)));
}

TEST(ShownPath, DoesNotNameAMissingFileThatMayBeASecret) {
  for (const std::string& name : {std::string("planted-hunter2"), hex_key}) {
    const auto read = read_private_line(name, "a password", 100);
    ASSERT_FALSE(read.ok());
    EXPECT_THAT(read.error().text(), testing::Not(testing::HasSubstr(name)));
    EXPECT_THAT(read.error().text(), testing::HasSubstr("No such file"));
  }
}

}  // namespace
}  // namespace lightq
