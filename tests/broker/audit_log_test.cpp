/// Tests of broker/logging/audit_log: whole lines, rotation, files that others move, and lines that are lost.
#include "broker/logging/audit_log.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "support/temp_dir.hpp"

namespace lightq::broker {
namespace {

namespace fs = std::filesystem;

std::string text_of_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class AuditFileTest : public testing::Test {
 protected:
  std::unique_ptr<AuditFile> opened(std::uint64_t bytes_max = 1000) {
    auto file = AuditFile::open({.file = path_, .file_bytes_max = bytes_max, .files_kept = 2});
    EXPECT_TRUE(file) << (file ? "" : file.error().text());
    return file ? std::move(*file) : nullptr;
  }
  fs::path old(int number) const { return path_.string() + "." + std::to_string(number); }

  test::TempDir directory_;
  const fs::path path_ = fs::path(directory_.path()) / "audit.json";
};

TEST_F(AuditFileTest, AppendsLinesThatOnlyTheOwnerReads) {
  EXPECT_TRUE(opened()->write("one"));
  EXPECT_TRUE(opened()->write("two"));
  EXPECT_EQ(text_of_file(path_), "one\ntwo\n");
  struct stat about{};
  ASSERT_EQ(::stat(path_.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600U);
}

TEST_F(AuditFileTest, EndsALineThatAKillHasCutOff) {
  std::ofstream(path_) << "{\"cut";
  EXPECT_TRUE(opened()->write("whole"));
  EXPECT_EQ(text_of_file(path_), "{\"cut\nwhole\n");
}

TEST_F(AuditFileTest, RotatesAndKeepsTheNewest) {
  const auto file = opened(10);
  for (const char* line : {"aaaaaa", "bbbbbb", "c", "dddddd", "eeeeee"}) EXPECT_TRUE(file->write(line));
  EXPECT_EQ(text_of_file(path_), "eeeeee\n");
  EXPECT_EQ(text_of_file(old(1)), "dddddd\n");
  EXPECT_EQ(text_of_file(old(2)), "bbbbbb\nc\n");
  EXPECT_FALSE(fs::exists(old(3)));
  EXPECT_TRUE(file->write(std::string(100, 'x'))) << "a line that is longer than a file";
  EXPECT_EQ(text_of_file(path_).size(), 101U);
}

TEST_F(AuditFileTest, BeginsANewFileWhenAnotherProgramHasMovedOrRemovedIt) {
  const auto file = opened();
  EXPECT_TRUE(file->write("one"));
  fs::rename(path_, old(7));
  EXPECT_TRUE(file->write("two"));
  EXPECT_EQ(text_of_file(old(7)), "one\n");
  EXPECT_EQ(text_of_file(path_), "two\n");
  fs::remove(path_);
  EXPECT_TRUE(file->write("three"));
  EXPECT_EQ(text_of_file(path_), "three\n");
}

TEST_F(AuditFileTest, RefusesWhatIsNoRegularFile) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const auto pipe = AuditFile::open({.file = path_});
  ASSERT_FALSE(pipe);
  EXPECT_EQ(pipe.error().code, ErrorCode::invalid_argument);
  const auto nowhere = AuditFile::open({.file = path_.parent_path() / "none" / "audit.json"});
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, ErrorCode::io_error);
}

TEST_F(AuditFileTest, LeavesNoPartOfALineThatDoesNotFitOnTheDisk) {
  const auto file = opened();
  EXPECT_TRUE(file->write("one"));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto on_signal = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 8;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const bool written = file->write("a long line");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, on_signal);
  EXPECT_FALSE(written);
  EXPECT_EQ(text_of_file(path_), "one\n");
  EXPECT_TRUE(file->write("later"));
  EXPECT_EQ(text_of_file(path_), "one\nlater\n");
}

TEST_F(AuditFileTest, ManyThreadsWriteWholeLinesAndTheEndWaitsForThem) {
  constexpr int threads = 4;
  constexpr int lines = 200;
  {
    auto log = AuditLog::open({.file = path_, .file_bytes_max = 1 << 20});
    ASSERT_TRUE(log);
    std::vector<std::jthread> writers;
    for (int i = 0; i < threads; ++i)
      writers.emplace_back([&log] {
        for (int line = 0; line < lines; ++line) (*log)->put("{\"n\":" + std::to_string(line) + "}");
      });
    writers.clear();
    EXPECT_EQ((*log)->lost(), 0U);
  }
  std::istringstream text(text_of_file(path_));
  int count = 0;
  for (std::string line; std::getline(text, line); ++count)
    EXPECT_TRUE(line.starts_with("{\"n\":") && line.ends_with("}"));
  EXPECT_EQ(count, threads * lines);
}

TEST_F(AuditFileTest, LinesThatAreLostAreCountedInTheLog) {
  {
    auto log = AuditLog::open({.file = path_, .file_bytes_max = 1 << 30});
    ASSERT_TRUE(log);
    const std::string large = "{\"x\":\"" + std::string(600'000, 'x') + "\"}";
    while ((*log)->lost() == 0) (*log)->put(large);  // the second one that waits has no space
    (*log)->put("{\"last\":true}");
  }
  const std::string text = text_of_file(path_);
  EXPECT_NE(text.find(R"(","cmd":"audit_log","lost":)"), std::string::npos);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE(line.starts_with('{') && line.ends_with('}'));
}

}  // namespace
}  // namespace lightq::broker
