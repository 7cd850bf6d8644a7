/// Tests of the start in a data directory that was restored: which marks it leaves, and when tickets end.
#include "broker/restored_data.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/temp_dir.hpp"

namespace lightq::broker {
namespace {

namespace fs = std::filesystem;

class QuietSink final : public LogSink {
 public:
  void write(LogLevel /*level*/, std::string_view /*line*/) override {}
};

class RestoredDataTest : public ::testing::Test {
 protected:
  RestoredDataTest() {
    fs::create_directories(data / "catalogue" / "1");
    fs::create_directories(data / "topics" / "1");
    fs::create_directories(data / "topics" / "2");
    touch("ticket.key");
  }
  void touch(const std::string& name) { std::ofstream(data / name) << "content"; }
  [[nodiscard]] bool exists(const std::string& name) const { return fs::exists(data / name); }
  Result<void> prepare() { return prepare_restored_data(data, sink); }

  test::TempDir directory;
  const fs::path data = directory.path();
  QuietSink sink;
};

TEST_F(RestoredDataTest, ChangesNothingWithoutAMark) {
  ASSERT_TRUE(prepare().ok());
  EXPECT_TRUE(exists("ticket.key"));
  EXPECT_FALSE(exists("topics/1/restored"));
}

TEST_F(RestoredDataTest, MarksEveryTopicAndEndsAllTickets) {
  touch("restored");
  touch("topics/7");  // no directory, so no topic
  ASSERT_TRUE(prepare().ok());
  EXPECT_TRUE(exists("topics/1/restored"));
  EXPECT_TRUE(exists("topics/2/restored"));
  EXPECT_FALSE(exists("ticket.key"));
  EXPECT_FALSE(exists("restored"));
}

TEST_F(RestoredDataTest, ARestoredCatalogueAloneEndsAllTickets) {
  touch("catalogue/1/restored");
  ASSERT_TRUE(prepare().ok());
  EXPECT_FALSE(exists("ticket.key"));
  EXPECT_FALSE(exists("catalogue/1/restored"));
  EXPECT_FALSE(exists("topics/1/restored"));
}

TEST_F(RestoredDataTest, EmptiesNoFileThatALinkNames) {
  touch("restored");
  touch("victim");
  fs::create_symlink("../../victim", data / "topics" / "1" / "restored");
  ASSERT_TRUE(prepare().ok());
  EXPECT_EQ(fs::file_size(data / "victim"), 7U);
}

}  // namespace
}  // namespace lightq::broker
