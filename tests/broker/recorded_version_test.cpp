/// Tests of broker/upgrade/recorded_version: the newest version that has opened a data directory.
#include "broker/upgrade/recorded_version.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include <lightq/version.hpp>

#include "support/temp_dir.hpp"

namespace lightq::broker {
namespace {

using lightq::test::TempDir;

std::string version_file_of(const TempDir& directory) {
  std::ifstream file(directory / "version");
  return {std::istreambuf_iterator<char>(file), {}};
}

void put_version(const TempDir& directory, const std::string& text) {
  std::ofstream(directory / "version") << text;
}

TEST(RecordedVersion, ComparesNumbersAndNotLetters) {
  EXPECT_TRUE(is_newer_version("0.10.0", "0.9.9"));
  EXPECT_TRUE(is_newer_version("1.0.0", "0.99.99"));
  EXPECT_FALSE(is_newer_version("0.1.0", "0.1.0"));
  EXPECT_FALSE(is_newer_version("0.1.0", "0.1.1"));
  for (const char* const text :
       {"", "1", "1.2", "1.2.3.4", "1.2.x", "-1.2.3", "1..3", "99999999999.0.0", "2.0.0 "})
    EXPECT_FALSE(is_newer_version(text, "0.1.0")) << text;
}

TEST(RecordedVersion, KeepsTheNewestVersion) {
  const TempDir directory;
  EXPECT_FALSE(newer_version_in(directory.path()));
  ASSERT_TRUE(record_version(directory.path()).ok());
  EXPECT_EQ(version_file_of(directory), std::string(version_text) + "\n");
  EXPECT_FALSE(newer_version_in(directory.path()));
  put_version(directory, "0.0.9\n");
  ASSERT_TRUE(record_version(directory.path()).ok());
  EXPECT_EQ(version_file_of(directory), std::string(version_text) + "\n");
  put_version(directory, "99.0.1\n");
  ASSERT_TRUE(record_version(directory.path()).ok());
  EXPECT_EQ(version_file_of(directory), "99.0.1\n");
  EXPECT_EQ(newer_version_in(directory.path()), "99.0.1");
}

TEST(RecordedVersion, AnotherTextIsNoVersion) {
  const TempDir directory;
  for (const std::string& text : {std::string("99.0.1\n\n"), std::string("new"), std::string(100, '9')}) {
    put_version(directory, text);
    EXPECT_FALSE(newer_version_in(directory.path())) << text;
  }
}

TEST(RecordedVersion, AnErrorOfANewerFormatNamesTheWriter) {
  const Error newer = with_writer({ErrorCode::foreign_format, "x"}, "99.0.1");
  EXPECT_EQ(newer.message, "x; LightQ 99.0.1 has used this data directory, and this is " +
                               std::string(version_text) + ": start that version, or restore a backup");
  EXPECT_EQ(with_writer({ErrorCode::foreign_format, "x"}, {}).message, "x");
  EXPECT_EQ(with_writer({ErrorCode::corrupt, "x"}, "99.0.1").message, "x");
}

}  // namespace
}  // namespace lightq::broker
