/// Tests of key files.
#include "access/curve_key_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/temp_dir.hpp"

namespace lightq::broker {
namespace {

using testing::HasSubstr;

class CurveKeyFile : public testing::Test {
 protected:
  void write(const std::string& text, mode_t mode = 0600) const {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
    ASSERT_EQ(chmod(file.c_str(), mode), 0);
  }
  lightq::test::TempDir directory;
  const std::filesystem::path file = directory / "curve.key";
};

TEST_F(CurveKeyFile, IsCreatedOnceForItsOwnerOnly) {
  const auto first = open_curve_key(file).value_or_throw();
  struct stat facts{};
  ASSERT_EQ(stat(file.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777U, 0600U);
  EXPECT_EQ(facts.st_size, 32);
  const auto again = open_curve_key(file).value_or_throw();
  EXPECT_EQ(again->public_key(), first->public_key());
  EXPECT_EQ(again->secret(), first->secret());
  std::filesystem::remove(file);
  EXPECT_NE(open_curve_key(file).value_or_throw()->public_key(), first->public_key());
}

TEST_F(CurveKeyFile, IsRefusedIfOthersCanReadItOrItsLengthIsWrong) {
  write(std::string(32, 'k'), 0640);
  auto opened = open_curve_key(file);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(opened.error().text(), HasSubstr("chmod 600"));
  for (const std::size_t bytes : {0U, 31U, 33U}) {
    write(std::string(bytes, 'k'));
    opened = open_curve_key(file);
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().code, ErrorCode::corrupt);
    EXPECT_THAT(opened.error().text(), HasSubstr("is not a CURVE key: it has " + std::to_string(bytes)));
  }
}

TEST_F(CurveKeyFile, ARenewedKeyLeavesTheFormerOneInItsOwnFile) {
  const CurveKeyFiles files{file, directory / "curve_former.key"};
  const auto first = renew_curve_key(files).value_or_throw();
  EXPECT_EQ(open_curve_keys(files).value_or_throw().former, nullptr) << "there was no key before";
  const auto second = renew_curve_key(files).value_or_throw();
  auto held = open_curve_keys(files).value_or_throw();
  EXPECT_EQ(held.current->public_key(), second->public_key());
  ASSERT_NE(held.former, nullptr);
  EXPECT_EQ(held.former->public_key(), first->public_key());
  struct stat facts{};
  ASSERT_EQ(stat(files.former.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777U, 0600U);
  std::filesystem::copy_file(file, files.former, std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(open_curve_keys(files).value_or_throw().former, nullptr) << "killed in the middle of a renewal";
  std::filesystem::remove(files.former);
  std::ofstream(files.former) << "short";
  ASSERT_EQ(chmod(files.former.c_str(), 0600), 0);
  const auto broken = open_curve_keys(files);
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().code, ErrorCode::corrupt);
}

TEST_F(CurveKeyFile, ASecondRenewalLeavesTheFormerKeyThatClientsMayUse) {
  const CurveKeyFiles files{file, directory / "curve_former.key"};
  const auto first = open_curve_key(file).value_or_throw();
  const auto second = renew_curve_key(files).value_or_throw();
  const auto refused = renew_curve_key(files);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(refused.error().text(), HasSubstr("remove " + files.former.string() + ", and renew again"));
  const auto held = open_curve_keys(files).value_or_throw();
  EXPECT_EQ(held.current->public_key(), second->public_key());
  ASSERT_NE(held.former, nullptr);
  EXPECT_EQ(held.former->public_key(), first->public_key());
  std::filesystem::copy_file(file, files.former, std::filesystem::copy_options::overwrite_existing);
  EXPECT_TRUE(renew_curve_key(files).ok()) << "a renewal that was interrupted goes on";
  std::filesystem::remove(files.former);
  EXPECT_TRUE(renew_curve_key(files).ok());
}

TEST_F(CurveKeyFile, ARenewedKeyBelongsToTheOwnerOfTheFormerOne) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files to others";
  const CurveKeyFiles files{file, directory / "curve_former.key"};
  ASSERT_TRUE(open_curve_key(file).ok());
  ASSERT_EQ(chown(file.c_str(), 12345, 23456), 0);
  ASSERT_TRUE(renew_curve_key(files).ok());
  for (const auto& each : {files.current, files.former}) {
    struct stat facts{};
    ASSERT_EQ(stat(each.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_uid, 12345U) << each;
    EXPECT_EQ(facts.st_gid, 23456U) << each;
    EXPECT_EQ(facts.st_mode & 07777U, 0600U);
  }
}

TEST_F(CurveKeyFile, AFirstKeyThatRootMakesBelongsToTheOwnerOfTheDirectory) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files to others";
  const CurveKeyFiles files{file, directory / "curve_former.key"};
  ASSERT_EQ(chown(file.parent_path().c_str(), 12345, 23456), 0);
  for (const bool renews : {false, true}) {
    std::filesystem::remove(file);
    ASSERT_TRUE(renews ? renew_curve_key(files).ok() : open_curve_key(file).ok());
    struct stat facts{};
    ASSERT_EQ(stat(file.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_uid, 12345U);
    EXPECT_EQ(facts.st_gid, 23456U);
  }
}

TEST_F(CurveKeyFile, AFirstKeyBehindALinkBelongsToTheOwnerOfTheDirectory) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files to others";
  const std::filesystem::path real = directory / "real";
  const std::filesystem::path link = directory / "link";
  std::filesystem::create_directory(real);
  std::filesystem::create_directory_symlink(real, link);
  ASSERT_EQ(chown(real.c_str(), 12345, 23456), 0);
  ASSERT_EQ(lchown(link.c_str(), 6666, 6666), 0);
  ASSERT_TRUE(open_curve_key(link / "curve.key").ok());
  struct stat facts{};
  ASSERT_EQ(stat((real / "curve.key").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_uid, 12345U);
}

TEST_F(CurveKeyFile, AllowedKeysStandOnePerLine) {
  const CurveKeyPair one, two;
  const std::string a = to_z85(one.public_key());
  const std::string b = to_z85(two.public_key());
  write("# who may\n\n  " + a + "  # the cashier\n#" + b + "\n" + b + "\r\n" + a + "\n#\n");
  EXPECT_EQ(read_allowed_keys(file).value_or_throw(),
            (std::set<CurvePublicKey>{one.public_key(), two.public_key()}));
  for (const std::string& bad :
       {a + " " + b, a.substr(1), "x" + a, a + "#no space", std::string("key"), "# fine\n" + a + ","}) {
    write(bad + "\n");
    const auto read = read_allowed_keys(file);
    ASSERT_FALSE(read.ok()) << bad;
    EXPECT_EQ(read.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(read.error().text(), HasSubstr(file.string() + ":"));
  }
  EXPECT_EQ(read_allowed_keys(directory / "none").error().code, ErrorCode::io_error);
}

}  // namespace
}  // namespace lightq::broker
