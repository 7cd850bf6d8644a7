/// Tests of the broker's log: broker/logging.
#include "broker/logging/logging.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "support/no_descriptors.hpp"
#include "support/temp_dir.hpp"

namespace lightq::broker {
namespace {

using lightq::test::TempDir;
using testing::HasSubstr;
using testing::Not;

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

LoggingOptions to_file(const std::string& path) {
  LoggingOptions options;
  options.file = path;
  options.standard_error = false;
  return options;
}

TEST(Logging, WritesOneLinePerEvent) {
  const TempDir temp;
  {
    const auto logging = Logging::open(to_file(temp / "log")).value_or_throw();
    logging->debug("not at this level");
    logging->info("topic {} made");
    logging->error("two\nlines\x1b[31m");
    logging->warn("\"a\" \\ \r\t\x7f" + std::string(1, '\0') + "\xc3\xa9");
  }
  const auto text = text_of(temp / "log");
  EXPECT_THAT(text,
              testing::ContainsRegex("^time=20[0-9-]+T[0-9:.]+Z level=info msg=\"topic \\{\\} made\"\n"));
  EXPECT_THAT(text, HasSubstr("level=error msg=\"two\\nlines\\u001b[31m\"\n"));
  EXPECT_THAT(text, HasSubstr("level=warning msg=\"\\\"a\\\" \\\\ \\r\\t\\u007f\\u0000\xc3\xa9\"\n"));
  EXPECT_THAT(text, Not(HasSubstr("not at this level")));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
}

TEST(Logging, AnotherLevelAppliesToTheNextLine) {
  const TempDir temp;
  {
    const auto logging = Logging::open(to_file(temp / "log")).value_or_throw();
    logging->set_level(LogLevel::debug);
    logging->debug("shown");
    logging->set_level(LogLevel::error);
    logging->warn("not at this level");
  }
  EXPECT_THAT(text_of(temp / "log"), testing::AllOf(HasSubstr("shown"), Not(HasSubstr("not at this level"))));
}

TEST(Logging, AReopenedFileBeginsAgainWhereTheOldOneWas) {
  const TempDir temp;
  {
    const auto logging = Logging::open(to_file(temp / "log")).value_or_throw();
    logging->info("before");
    while (text_of(temp / "log").empty()) std::this_thread::yield();
    std::filesystem::rename(temp / "log", temp / "moved");
    logging->reopen_file();
    logging->info("after");
  }
  EXPECT_THAT(text_of(temp / "moved"), testing::AllOf(HasSubstr("before"), Not(HasSubstr("after"))));
  EXPECT_THAT(text_of(temp / "log"), HasSubstr("after"));
}

TEST(Logging, WritesEveryDifferentWarningAndCountsSkippedInfoLines) {
  const TempDir temp;
  {
    const auto logging = Logging::open(to_file(temp / "log")).value_or_throw();
    for (int i = 0; i < 50; ++i) {
      logging->warn("topic t" + std::to_string(i) + ": 4096 bytes of a torn tail were cut");
      logging->error("topic t" + std::to_string(i) + " cannot be used");
      logging->info("a connection from port " + std::to_string(i) + " was refused");
      logging->error("the same throughout");
    }
  }
  const auto text = text_of(temp / "log");
  for (int i = 0; i < 50; ++i) {
    EXPECT_THAT(text, HasSubstr("level=warning msg=\"topic t" + std::to_string(i) + ": 4096 bytes")) << i;
    EXPECT_THAT(text, HasSubstr("level=error msg=\"topic t" + std::to_string(i) + " cannot")) << i;
  }
  EXPECT_THAT(text, HasSubstr("port 19 was refused\"\n"));
  EXPECT_THAT(text, Not(HasSubstr("port 20 was refused")));
  EXPECT_THAT(text,
              HasSubstr("more lines like this one: a connection from port 49 was refused\" left_out=30\n"));
  EXPECT_THAT(text,
              HasSubstr("level=error msg=\"more lines like this one: the same throughout\" left_out=30\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 50 + 50 + 20 + 20 + 2);
}

TEST(Logging, EscapesTerminalControlsAndInvalidUtf8) {
  const TempDir temp;
  {
    const auto logging = Logging::open(to_file(temp / "log")).value_or_throw();
    logging->warn(
        "socket type \u009b31m \x9b"
        "2J \u202etxt \xff k\u00e4the");
  }
  EXPECT_THAT(text_of(temp / "log"),
              HasSubstr("msg=\"socket type \\u009b31m \\u009b2J \\u202etxt \\u00ff k\u00e4the\"\n"));
}

TEST(Logging, RotatesItsFile) {
  const TempDir temp;
  auto options = to_file(temp / "broker.log");
  options.file_bytes_max = 2000;
  options.files_kept = 2;
  {
    const auto logging = Logging::open(options).value_or_throw();
    for (char c = 'a'; c <= 'z'; ++c) logging->info(std::string(500, c));
  }
  std::size_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator(temp.path())) {
    EXPECT_LE(file.file_size(), 2000U);
    ++files;
  }
  EXPECT_EQ(files, 3U);
}

TEST(Logging, ContinuesWhenTheNextFileCanBeOpenedAgain) {
  const TempDir temp;
  auto options = to_file(temp / "broker.log");
  options.file_bytes_max = 2000;
  options.files_kept = 2;
  {
    const auto logging = Logging::open(options).value_or_throw();
    for (const char c : {'a', 'b', 'c'}) logging->info(std::string(500, c));
    const auto lose = [&](const std::string& line, std::uint64_t lost) {
      logging->info(line);
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (logging->lost() < lost && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
      EXPECT_EQ(logging->lost(), lost);
    };
    {
      const lightq::test::NoDescriptors none;
      lose(std::string(500, 'd'), 1);
      lose("one that would fit the file before", 2);
    }
    logging->info("after that");
  }
  const auto text = text_of(temp / "broker.log");
  EXPECT_THAT(text, HasSubstr("lost=2\n"));
  EXPECT_THAT(text, HasSubstr("msg=\"after that\"\n"));
  EXPECT_THAT(text_of(temp / "broker.1.log"), HasSubstr(std::string(500, 'c')));
}

TEST(Logging, BeginsANewLineAfterAPartialOne) {
  const TempDir temp;
  std::ofstream(temp / "log") << "time=20";
  Logging::open(to_file(temp / "log")).value_or_throw()->info("whole");
  EXPECT_THAT(text_of(temp / "log"), testing::ContainsRegex("^time=20\ntime=.* msg=\"whole\"\n$"));
}

TEST(Logging, KeepsItsFileWhenTheProgramChangesItsDirectory) {
  const TempDir temp;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::create_directory(temp / "elsewhere");
  std::filesystem::current_path(temp.path());
  auto options = to_file("broker.log");
  options.file_bytes_max = 2000;
  options.files_kept = 2;
  auto logging = Logging::open(options).value_or_throw();
  std::filesystem::current_path(temp / "elsewhere");
  for (char c = 'a'; c <= 'z'; ++c) logging->info(std::string(500, c));
  logging.reset();
  std::filesystem::current_path(before);
  EXPECT_TRUE(std::filesystem::is_empty(temp / "elsewhere"));
  EXPECT_TRUE(std::filesystem::exists(temp / "broker.2.log"));
}

TEST(Logging, ReportsWhyAFileCannotBeWritten) {
  const auto refused = Logging::open(to_file("/proc/nowhere/log"));
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().text(), HasSubstr("/proc/nowhere/log"));
}

std::uint64_t total(const std::vector<RepeatLimiter::LeftOut>& all) {
  std::uint64_t count = 0;
  for (const auto& left_out : all) count += left_out.count;
  return count;
}

TEST(RepeatLimiter, ThinsOutInfoLinesThatDifferOnlyInTheirNumbers) {
  RepeatLimiter limiter(3, std::chrono::seconds(10));
  const auto start = RepeatLimiter::Clock::time_point() + std::chrono::hours(1);
  const auto peer_7 = [&](int second) {
    return limiter.admit(LogLevel::info, "peer 10.0.0.7 refused", start + std::chrono::seconds(second));
  };
  int let_through = 0;
  for (int i = 0; i < 100; ++i) {
    const std::string line = "peer 10.0.0." + std::to_string(i) + " refused";
    let_through += limiter.admit(LogLevel::info, line, start) ? 1 : 0;
  }
  EXPECT_EQ(let_through, 3);
  EXPECT_TRUE(limiter.admit(LogLevel::info, "another line", start));
  EXPECT_FALSE(peer_7(9));
  EXPECT_TRUE(limiter.take_ended(start + std::chrono::seconds(9)).empty());
  const auto ended = limiter.take_ended(start + std::chrono::seconds(10));
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].count, 98U);
  EXPECT_EQ(ended[0].line, "peer 10.0.0.7 refused");
  EXPECT_EQ(ended[0].level, LogLevel::info);
  EXPECT_TRUE(peer_7(10));
  EXPECT_TRUE(limiter.take_all().empty()) << "told twice";
}

TEST(RepeatLimiter, ReturnsTheRemainingCountsAtTheEnd) {
  RepeatLimiter limiter(1, std::chrono::seconds(10));
  const RepeatLimiter::Clock::time_point now;
  for (int i = 0; i < 5; ++i) limiter.admit(LogLevel::warn, "once", now);
  limiter.admit(LogLevel::warn, "once", now + std::chrono::seconds(10));  // starts a new period
  limiter.admit(LogLevel::warn, "once", now + std::chrono::seconds(10));
  const auto all = limiter.take_all();
  EXPECT_EQ(all.size(), 2U);
  EXPECT_EQ(total(all), 5U);
}

TEST(RepeatLimiter, LosesNoCountHoweverManyKindsOfLineThereAre) {
  RepeatLimiter limiter(1, std::chrono::seconds(10));
  const RepeatLimiter::Clock::time_point now;
  std::uint64_t admitted = 0;
  std::uint64_t told = 0;
  constexpr std::uint64_t lines = 20'000;
  for (std::uint64_t i = 0; i < lines; ++i) {  // each line twice: more kinds than the limiter remembers
    admitted += limiter.admit(LogLevel::error, "line " + std::to_string(i / 2), now) ? 1 : 0;
    const auto ended = limiter.take_ended(now);
    EXPECT_LE(ended.size(), 1024U);
    told += total(ended);
  }
  EXPECT_EQ(admitted, lines / 2);
  EXPECT_EQ(admitted + told + total(limiter.take_all()), lines);
}

}  // namespace
}  // namespace lightq::broker
