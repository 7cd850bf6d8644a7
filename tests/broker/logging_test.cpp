/// Tests of the broker's log: broker/logging.
#include "broker/logging.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

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
  }
  const auto text = text_of(temp / "log");
  EXPECT_THAT(text, testing::ContainsRegex("^20[0-9-]+T[0-9:.]+Z info topic \\{\\} made\n"));
  EXPECT_THAT(text, HasSubstr("error two?lines?[31m\n"));
  EXPECT_THAT(text, Not(HasSubstr("level")));
}

TEST(Logging, RotatesItsFile) {
  const TempDir temp;
  auto options = to_file(temp / "broker.log");
  options.file_bytes_max = 2000;
  options.files_kept = 2;
  const auto logging = Logging::open(options).value_or_throw();
  for (char c = 'a'; c <= 'z'; ++c) logging->info(std::string(500, c));
  std::size_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator(temp.path())) {
    EXPECT_LE(file.file_size(), 2000U);
    ++files;
  }
  EXPECT_EQ(files, 3U);
}

TEST(Logging, SaysWhyAFileCannotBeWritten) {
  const auto refused = Logging::open(to_file("/proc/nowhere/log"));
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().text(), HasSubstr("/proc/nowhere/log"));
}

TEST(RepeatLimiter, ThinsOutLinesThatDifferOnlyInTheirNumbers) {
  RepeatLimiter limiter(3, std::chrono::seconds(10));
  const auto start = RepeatLimiter::Clock::time_point() + std::chrono::hours(1);
  int let_through = 0;
  for (int i = 0; i < 100; ++i) {
    let_through += limiter.admit("peer 10.0.0." + std::to_string(i) + " refused", start).has_value() ? 1 : 0;
  }
  EXPECT_EQ(let_through, 3);
  EXPECT_EQ(limiter.admit("another line", start), 0U);
  EXPECT_EQ(limiter.admit("peer 10.0.0.7 refused", start + std::chrono::seconds(9)), std::nullopt);
  EXPECT_EQ(limiter.admit("peer 10.0.0.7 refused", start + std::chrono::seconds(10)), 98U);
  EXPECT_EQ(limiter.admit("peer 10.0.0.7 refused", start + std::chrono::seconds(10)), 0U);
}

TEST(RepeatLimiter, StaysSmallWhateverIsLogged) {
  RepeatLimiter limiter(1, std::chrono::seconds(10));
  const RepeatLimiter::Clock::time_point now;
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_TRUE(
        limiter
            .admit(std::string(static_cast<std::size_t>(i % 90 + 1), static_cast<char>('a' + i % 26)) +
                       static_cast<char>('A' + i / 90 % 26) + static_cast<char>('A' + i / 2340),
                   now)
            .has_value());
  }
}

}  // namespace
}  // namespace lightq::broker
