/// Tests of files that contain secrets: which of them are read, and which are refused.
#include <lightq/base/private_file.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "support/temp_dir.hpp"

namespace lightq {
namespace {

constexpr std::size_t bytes_max = 100;

class PrivateFile : public ::testing::Test {
 protected:
  void write(const std::string& text, unsigned mode = 0600) const {
    std::ofstream(file_) << text;
    ASSERT_EQ(chmod(file_.c_str(), mode), 0);
  }
  [[nodiscard]] Result<Secret> line() const { return read_private_line(file_, "a password", bytes_max); }

  const test::TempDir directory_;
  const std::string file_ = directory_ / "secret";
};

TEST_F(PrivateFile, IsReadIfItsModeExcludesOthers) {
  for (const unsigned mode : {0600U, 0400U, 0700U}) {
    write("first\r\nsecond\n", mode);
    EXPECT_EQ(line().value_or_throw(), "first") << mode;
    EXPECT_EQ(read_private_file(file_, "a password", bytes_max).value_or_throw(), "first\r\nsecond\n");
    ASSERT_EQ(chmod(file_.c_str(), 0600), 0);
  }
}

TEST_F(PrivateFile, IsRefusedWithItsModeIfOthersHaveAccess) {
  for (const unsigned mode : {0640U, 0604U, 0620U, 0602U, 0610U, 0644U, 0666U, 0777U}) {
    write("first\n", mode);
    const auto refused = line();
    ASSERT_FALSE(refused.ok()) << mode;
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
    const std::string digits =
        std::to_string(mode / 64) + std::to_string(mode / 8 % 8) + std::to_string(mode % 8);
    EXPECT_EQ(
        refused.error().message,
        file_ + " contains a password and is open to other users: its mode is 0" + digits + "; chmod 600 it");
  }
}

TEST_F(PrivateFile, IsJudgedByTheTargetOfALink) {
  write("first\n");
  const std::string link = directory_ / "link";
  std::filesystem::create_symlink(file_, link);
  std::filesystem::create_directory_symlink(directory_.path(), directory_ / "elsewhere");
  EXPECT_EQ(read_private_line(link, "a password", bytes_max).value_or_throw(), "first");
  EXPECT_EQ(read_private_line(directory_ / "elsewhere/secret", "a password", bytes_max).value_or_throw(),
            "first");
  ASSERT_EQ(chmod(file_.c_str(), 0644), 0);
  EXPECT_FALSE(read_private_line(link, "a password", bytes_max).ok());
}

TEST_F(PrivateFile, MayBeAPipeOfWhichOnlyTheFirstLineIsTaken) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "first\nnext\n", 11), 11);
  const std::string path = "/proc/self/fd/" + std::to_string(ends[0]);  // a pipe, like <(…) and /dev/stdin
  EXPECT_EQ(read_private_line(path, "a password", bytes_max).value_or_throw(), "first");
  close(ends[1]);
  EXPECT_EQ(read_private_line(path, "a password", bytes_max).value_or_throw(), "next");
  close(ends[0]);
}

TEST_F(PrivateFile, MayBeANamedPipeUnlessOthersCanReadIt) {
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  std::jthread writer([this] { std::ofstream(file_) << "first\n"; });
  EXPECT_EQ(line().value_or_throw(), "first");
  writer.join();
  ASSERT_EQ(chmod(file_.c_str(), 0644), 0);
  EXPECT_EQ(line().error().code, ErrorCode::invalid_argument) << "nobody is waited for";
}

TEST_F(PrivateFile, APipeTimesOut) {
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  const PipeWait short_wait{.time_max = std::chrono::milliseconds(20)};
  const auto refused = [&](const PipeWait& wait) {
    const auto line = read_private_line(file_, "a password", bytes_max, wait);
    EXPECT_FALSE(line.ok());
    return line ? Error{} : line.error();
  };
  const Error late = refused(short_wait);
  EXPECT_EQ(late.code, ErrorCode::timeout) << "nobody has it open for writing";
  EXPECT_EQ(late.message, file_ + ": no content was received within 20 ms");
  const int writer = ::open(file_.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(writer, 0);
  ASSERT_EQ(::write(writer, "fir", 3), 3);
  EXPECT_EQ(refused(short_wait).code, ErrorCode::timeout) << "the line has no end";
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  EXPECT_EQ(refused({.stop_descriptor = ends[0]}).code, ErrorCode::shutting_down);
  ASSERT_EQ(::write(writer, "second\n", 7), 7);
  EXPECT_EQ(read_private_line(file_, "a password", bytes_max).value_or_throw(), "second");
  for (const int descriptor : {writer, ends[0], ends[1]}) close(descriptor);
}

TEST_F(PrivateFile, APipeIsNotReadAgainAsIfItWereEmpty) {
  constexpr PipeWait no_wait{.time_max = std::chrono::milliseconds(0)};
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  const auto refused = read_public_file(file_, "settings", bytes_max, LinkRule::followed, no_wait);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  ASSERT_EQ(unlink(file_.c_str()), 0);
  std::ofstream(file_) << "text";
  EXPECT_EQ(read_public_file(file_, "settings", bytes_max, LinkRule::followed, no_wait).value_or_throw(),
            "text");
}

TEST_F(PrivateFile, MustBeARegularFileIfLinksAreRefused) {
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  const auto refused = read_private_file(file_, "a password", bytes_max, LinkRule::refused);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(refused.error().message, file_ + " is not a regular file, which a file with a password must be");
}

TEST_F(PrivateFile, IsAcceptedFromTheReaderRootAndTheOwnerOfTheDirectory) {
  constexpr uid_t reader = 1000;
  constexpr uid_t service = 990;
  constexpr uid_t stranger = 4711;
  struct stat facts{};
  struct stat directory{};
  directory.st_uid = service;
  for (const uid_t owner : {uid_t{0}, reader, service}) {
    facts.st_uid = owner;
    EXPECT_FALSE(foreign_file_fault(facts, directory, reader, file_).has_value()) << owner;
  }
  facts.st_uid = stranger;
  for (const uid_t user : {reader, uid_t{0}}) {
    const auto fault = foreign_file_fault(facts, directory, user, file_);
    ASSERT_TRUE(fault.has_value()) << user;
    EXPECT_EQ(fault->code, ErrorCode::invalid_argument);
    EXPECT_EQ(
        fault->message,
        file_ +
            " contains the address of a broker, but belongs to another user (uid 4711), so it is not used");
  }
}

TEST_F(PrivateFile, MayBeADeviceWhichHasNothingToHide) {
  EXPECT_EQ(read_private_line("/dev/null", "a password", bytes_max).value_or_throw(), "");
}

TEST_F(PrivateFile, BelongsToItsReaderOrToRoot) {
  struct stat facts{};
  facts.st_mode = S_IFREG | 0600;
  for (const uid_t owner : {geteuid(), uid_t{0}}) {
    facts.st_uid = owner;
    EXPECT_FALSE(private_file_fault(facts, file_, "a password").has_value()) << owner;
  }
  facts.st_uid = 4711;
  const bool is_root = geteuid() == 0;  // root may read every file
  EXPECT_EQ(private_file_fault(facts, file_, "a password").has_value(), !is_root);
}

TEST_F(PrivateFile, HasABound) {
  write(std::string(bytes_max, 'x') + "\n");
  EXPECT_EQ(line().value_or_throw().size(), bytes_max);
  write(std::string(bytes_max + 2, 'x') + "\n");
  EXPECT_EQ(line().error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(read_private_file(file_, "a password", bytes_max).error().code, ErrorCode::invalid_argument);
}

TEST_F(PrivateFile, ReportsWhyItCannotBeRead) {
  EXPECT_EQ(line().error().system_error, ENOENT);
  EXPECT_EQ(read_private_line(directory_.path(), "a password", bytes_max).error().system_error, EISDIR);
}

}  // namespace
}  // namespace lightq
