/// Tests of broker/data_directory: locking a data directory, and the files in it.
#include "broker/data_directory.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <lightq/protocol/json.hpp>

#include "support/temp_dir.hpp"

namespace lightq::broker {
namespace {

using lightq::test::TempDir;
using testing::HasSubstr;

mode_t mode_of(const std::filesystem::path& path) {
  struct stat facts{};
  return stat(path.c_str(), &facts) == 0 ? facts.st_mode & 0777U : 0;
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(DataDirectory, CreatesItsSubdirectoriesForItsOwnerOnly) {
  const TempDir temp;
  const auto directory = DataDirectory::open(temp / "a/b/data");
  ASSERT_TRUE(directory.ok()) << directory.error().text();
  for (const auto& room :
       {directory.value()->topics(), directory.value()->pool(), directory.value()->catalogue()}) {
    EXPECT_EQ(mode_of(room), 0700U) << room;
  }
  EXPECT_EQ(mode_of(directory.value()->ipc()), 0711U);
  EXPECT_EQ(mode_of(directory.value()->path()) & 022U, 0U);
  EXPECT_TRUE(directory.value()->path().is_absolute());
}

TEST(DataDirectory, BelongsToOneBrokerAtATime) {
  const TempDir temp;
  auto first = DataDirectory::open(temp.path());
  ASSERT_TRUE(first.ok());
  const auto second = DataDirectory::open(temp.path());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::in_use);
  EXPECT_THAT(second.error().text(), HasSubstr(std::to_string(getpid())));
  EXPECT_THAT(second.error().text(), HasSubstr(temp.path()));
  first.value().reset();
  EXPECT_TRUE(DataDirectory::open(temp.path()).ok());
}

TEST(DataDirectory, BelongsToItsBrokerEvenIfTheLockFileIsRemoved) {
  const TempDir temp;
  auto first = DataDirectory::open(temp.path());
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(first.value()->publish("tcp://127.0.0.1:4711").ok());
  std::filesystem::remove(temp / "lock");
  for (const char* text : {"", "4711\n"}) {  // the lock file is missing, then replaced
    if (*text != '\0') std::ofstream(temp / "lock") << text;
    const auto second = DataDirectory::open(temp.path());
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code, ErrorCode::in_use);
    EXPECT_THAT(second.error().text(), HasSubstr("is in use by"));
    EXPECT_TRUE(std::filesystem::exists(temp / "broker.json")) << "nothing of the first is touched";
  }
  first.value().reset();
  EXPECT_TRUE(DataDirectory::open(temp.path()).ok());
}

TEST(DataDirectory, IsNotTakenFromABrokerThatKnowsOnlyTheLockFile) {
  const TempDir temp;
  ASSERT_TRUE(DataDirectory::open(temp.path()).ok());
  const int older = ::open((temp / "lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(older, LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(DataDirectory::open(temp.path()).error().code, ErrorCode::in_use);
  ::close(older);
  EXPECT_TRUE(DataDirectory::open(temp.path()).ok());
}

TEST(DataDirectory, PublishesTheBrokersAddressWhileItRuns) {
  const TempDir temp;
  const auto file = temp / "broker.json";
  std::ofstream(file) << "of a broker that was killed";
  {
    const auto directory = DataDirectory::open(temp.path());
    ASSERT_TRUE(directory.ok());
    EXPECT_FALSE(std::filesystem::exists(file));
    ASSERT_TRUE(directory.value()->publish("tcp://127.0.0.1:4711").ok());
    const auto found = protocol::parse_broker_file(text_of(file));
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->pid, static_cast<std::uint64_t>(getpid()));
    EXPECT_EQ(found->control_uri, "tcp://127.0.0.1:4711");
    EXPECT_FALSE(found->version.empty());
    EXPECT_EQ(mode_of(file), 0644U);
  }
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(DataDirectory, KeepsItsPublicKeyForClientsWhileTheBrokerIsStopped) {
  const TempDir temp;
  const auto file = temp / "server_key.json";
  const auto publish = [&](const std::string& uri, const std::string& key) {
    const auto directory = DataDirectory::open(temp.path());
    ASSERT_TRUE(directory.ok());
    ASSERT_TRUE(directory.value()->publish(uri, key).ok());
  };
  publish("tcp://127.0.0.1:4711", "its key");
  auto found = protocol::parse_broker_file(text_of(file));
  ASSERT_TRUE(found.has_value()) << "it is gone with the broker";
  EXPECT_EQ(found->control_uri, "tcp://127.0.0.1:4711");
  EXPECT_EQ(found->server_key, "its key");
  EXPECT_EQ(mode_of(file), 0644U);
  publish("tcp://127.0.0.1:4712", "another key");
  found = protocol::parse_broker_file(text_of(file));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->control_uri, "tcp://127.0.0.1:4712");
  EXPECT_EQ(found->server_key, "another key");
  publish("tcp://127.0.0.1:4712", "");
  EXPECT_FALSE(std::filesystem::exists(file)) << "it does not encrypt any more";
}

TEST(DataDirectory, ReportsWhyItCannotBeCreated) {
  const TempDir temp;
  std::ofstream(temp / "file") << "";
  const auto below = DataDirectory::open(temp / "file/data");
  ASSERT_FALSE(below.ok());
  EXPECT_THAT(below.error().text(), HasSubstr(temp / "file"));
  const auto itself = DataDirectory::open(temp / "file");
  ASSERT_FALSE(itself.ok());
  EXPECT_THAT(itself.error().text(), HasSubstr("Not a directory"));
}

}  // namespace
}  // namespace lightq::broker
