/// Tests storage keys that a command prints.
#include "crypto/storage_key_command.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>

#include "support/storage_keys.hpp"
#include "support/temp_dir.hpp"

namespace lightq::rest {
namespace {

using test::key_line;

TEST(StorageKeyCommandTest, PrintsKeysAsAFileHoldsThem) {
  const auto keys = run_storage_key_command("echo '# from the vault'; printf '%s' '" + key_line(4) + "'");
  ASSERT_TRUE(keys.ok()) << keys.error().text();
  EXPECT_EQ((*keys)->of(1)->key_id(), test::storage_keys({4})->of(1)->key_id());
}

TEST(StorageKeyCommandTest, GetsNoInput) {
  const auto keys = run_storage_key_command("cat; cat <<END\n" + key_line(4) + "END");
  EXPECT_TRUE(keys.ok()) << keys.error().text();
}

TEST(StorageKeyCommandTest, AFailureIsReported) {
  const auto failed = run_storage_key_command("echo " + key_line(4).substr(0, 64) + "; exit 3");
  ASSERT_FALSE(failed.ok()) << "what it prints does not count then";
  EXPECT_EQ(failed.error().code, ErrorCode::io_error);
  EXPECT_NE(failed.error().message.find("exit code 3"), std::string::npos) << failed.error().message;
  EXPECT_NE(run_storage_key_command("kill -9 $$").error().message.find("signal 9"), std::string::npos);
  EXPECT_NE(run_storage_key_command("no-such-command-anywhere").error().message.find("exit code 127"),
            std::string::npos);
  EXPECT_NE(run_storage_key_command("true").error().message.find("contains no key"), std::string::npos);
}

TEST(StorageKeyCommandTest, ItsErrorOutputIsDiscarded) {
  testing::internal::CaptureStderr();
  EXPECT_FALSE(run_storage_key_command("echo the-secret >&2; exit 1").ok());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(StorageKeyCommandTest, NoErrorContainsItsOutput) {
  const auto keys = run_storage_key_command("echo the-secret");
  ASSERT_FALSE(keys.ok());
  EXPECT_EQ(keys.error().message,
            "the output of the storage key command, line 1: not a key of 64 hexadecimal digits");
}

TEST(StorageKeyCommandTest, ItsOutputIsLimited) {
  const auto keys = run_storage_key_command("yes");
  ASSERT_FALSE(keys.ok());
  EXPECT_EQ(keys.error().code, ErrorCode::invalid_argument);
}

/// Returns true unless the process is gone, or is a zombie that its new parent has not collected yet.
bool is_running(pid_t process) {
  std::string state;
  std::ifstream status("/proc/" + std::to_string(process) + "/stat");
  for (int i = 0; i < 3; ++i) status >> state;
  return status && state != "Z" && state != "X";
}

TEST(StorageKeyCommandTest, IsBoundedInTimeAndEndsWithAllThatItHasStarted) {
  const test::TempDir directory;
  const std::string file = directory.path() + "/process";
  for (const char* ending : {"wait", "exec >&-; wait", "exit 0"}) {
    const auto keys = run_storage_key_command("sleep 600 & echo $! > " + file + "; " + std::string(ending),
                                              std::chrono::milliseconds(200));
    ASSERT_FALSE(keys.ok()) << ending;
    EXPECT_EQ(keys.error().code, ErrorCode::timeout) << keys.error().text();
    pid_t process = 0;
    std::ifstream(file) >> process;
    ASSERT_GT(process, 1);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (is_running(process) && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    EXPECT_FALSE(is_running(process)) << ending;
  }
}

TEST(StorageKeyCommandTest, EndsWithAllThatItHasStartedWhenItIsToStop) {
  const test::TempDir directory;
  const std::string file = directory.path() + "/process";
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  for (const char* ending : {"wait", "exec >&-; wait"}) {
    const int told = open(file.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);  // readable when the command runs
    ASSERT_GE(told, 0);
    const auto keys = run_storage_key_command("sleep 600 & echo $! > " + file + "; " + std::string(ending),
                                              std::chrono::minutes(5), told);
    ASSERT_FALSE(keys.ok()) << ending;
    EXPECT_EQ(keys.error().code, ErrorCode::shutting_down) << keys.error().text();
    std::array<char, 32> text{};
    ASSERT_GT(read(told, text.data(), text.size() - 1), 0);
    close(told);
    const auto process = static_cast<pid_t>(std::stol(text.data()));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (is_running(process) && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    EXPECT_FALSE(is_running(process)) << ending;
  }
}

TEST(StorageKeyCommandTest, HasNoDescriptorOfThisProcess) {
  const test::TempDir directory;
  const int left_open = fcntl(STDIN_FILENO, F_DUPFD, 100);  // above the descriptors that a shell uses itself
  ASSERT_GE(left_open, 100);
  const std::string file = directory.path() + "/descriptors";
  // Lists the descriptors of the shell ($$). Those of a child would include descriptors that `ls` opens.
  const auto keys = run_storage_key_command("for at in /proc/$$/fd/*; do echo ${at##*/}; done > " + file +
                                            "; echo " + key_line(4));
  close(left_open);
  ASSERT_TRUE(keys.ok()) << keys.error().text();
  std::ifstream listed(file);
  const std::set<int> descriptors{std::istream_iterator<int>(listed), {}};
  EXPECT_FALSE(descriptors.contains(left_open));
  EXPECT_TRUE(descriptors.contains(0) && descriptors.contains(1) && descriptors.contains(2));
}

}  // namespace
}  // namespace lightq::rest
