/// Tests of the administrator's account and its file: access/admin_account.
#include "access/admin_account.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "support/planted.hpp"
#include "support/temp_dir.hpp"

namespace lightq::broker {
namespace {

using lightq::test::TempDir;
using testing::HasSubstr;

TEST(AdminAccount, IsCreatedOnceWithARandomPasswordThatOnlyItsOwnerMayRead) {
  const TempDir directory;
  const auto file = directory / "admin.json";
  const auto made = open_admin_account(file, {});
  ASSERT_TRUE(made.ok()) << made.error().text();
  EXPECT_TRUE(made.value().is_new);
  EXPECT_EQ(made.value().user_id, "lightq_admin");
  EXPECT_EQ(made.value().password.expose().size(), 43U);
  struct stat facts{};
  ASSERT_EQ(stat(file.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
  const auto again = open_admin_account(file, {});
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(again.value().is_new);
  EXPECT_EQ(again.value().password.expose(), made.value().password.expose());
  EXPECT_FALSE(std::filesystem::exists(directory / "admin.json.new"));
}

TEST(AdminAccount, UsesAGivenPasswordWithoutAFile) {
  const TempDir directory;
  const auto account = open_admin_account(directory / "admin.json", Secret(planted::admin_password));
  ASSERT_TRUE(account.ok());
  EXPECT_EQ(account.value().password.expose(), planted::admin_password);
  EXPECT_FALSE(std::filesystem::exists(directory / "admin.json"));
}

TEST(AdminAccount, RefusesAFileThatOthersMayRead) {
  const TempDir directory;
  const auto file = directory / "admin.json";
  ASSERT_TRUE(open_admin_account(file, {}).ok());
  ASSERT_EQ(chmod(file.c_str(), 0640), 0);
  const auto refused = open_admin_account(file, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().text(), HasSubstr("chmod 600"));
  EXPECT_THAT(refused.error().text(), HasSubstr(file));
}

TEST(AdminAccount, RefusesAFileWithoutAnAccount) {
  const TempDir directory;
  const auto file = directory / "admin.json";
  std::ofstream(file) << "{}";
  ASSERT_EQ(chmod(file.c_str(), 0600), 0);
  EXPECT_EQ(open_admin_account(file, {}).error().code, ErrorCode::corrupt);
}

TEST(AdminAccount, ReportsWhyItCannotBeWritten) {
  const TempDir directory;
  const auto refused = open_admin_account(directory / "missing/admin.json", {});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().text(), HasSubstr("No such file"));
}

}  // namespace
}  // namespace lightq::broker
