/// What all segment files together may take of the disk.
#include "log/disk_quota.hpp"

#include <gtest/gtest.h>

#include "log/posix_storage.hpp"
#include "log/segment_pool.hpp"
#include "support/temp_dir.hpp"

namespace lightq::test {
namespace {

using namespace std::chrono_literals;
using log::DiskQuota;

TEST(DiskQuota, TakesUpToTheBoundAndAgainWhatWasGivenBack) {
  DiskQuota quota(100, [] { return 40U; });
  EXPECT_TRUE(quota.take(60));
  EXPECT_FALSE(quota.take(1));
  quota.give_back(10);
  EXPECT_FALSE(quota.take(11));
  EXPECT_TRUE(quota.take(10));
}

TEST(DiskQuota, WhatIsLargerThanTheBoundNeverFits) {
  DiskQuota quota(100, [] { return 0U; });
  EXPECT_FALSE(quota.take(101));
  EXPECT_FALSE(quota.take(~std::uint64_t{0}));
  EXPECT_TRUE(quota.take(100));
}

TEST(DiskQuota, CountsAgainWhenItIsFullButNotAllTheTime) {
  int counts = 0;
  std::uint64_t there = 100;
  DiskQuota quota(100, [&] { return ++counts, there; });
  const auto now = DiskQuota::Clock::now();
  there = 20;
  EXPECT_FALSE(quota.take(10, now));
  EXPECT_EQ(counts, 1) << "it has just been counted";
  EXPECT_TRUE(quota.take(10, now + 1min));
  EXPECT_EQ(counts, 2);
  EXPECT_TRUE(quota.take(70, now + 2min));
  EXPECT_EQ(counts, 2) << "there is room";
  there = 50;
  EXPECT_FALSE(quota.take(60, now + 3min));
  EXPECT_EQ(counts, 3);
  EXPECT_TRUE(quota.take(50, now + 3min));
}

TEST(DiskQuota, GivingBackTooMuchIsNoRoomBeyondTheBound) {
  DiskQuota quota(100, [] { return 10U; });
  quota.give_back(50);
  EXPECT_FALSE(quota.take(101));
  EXPECT_TRUE(quota.take(100));
}

class QuotaOfPoolTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t file_bytes = 64 * limits::KiB;
  Result<log::PreparedSegment> prepare(const std::string& name, std::uint64_t bytes = file_bytes) {
    return pool_.prepare(directory_.path() + "/" + name, bytes, 1, 0);
  }
  Result<void> retire(const std::string& name) {
    return pool_.retire({directory_.path() + "/" + name, file_bytes});
  }

  TempDir directory_;
  log::PosixStorage storage_;
  DiskQuota quota_{3 * file_bytes, [] { return 0U; }};
  log::SegmentPool pool_{{.directory = directory_.path() + "/pool", .quota = &quota_}, storage_};
};

TEST_F(QuotaOfPoolTest, NoFileIsMadeBeyondItAndOneThatGoesMakesRoom) {
  for (const char* const name : {"a", "b", "c"}) ASSERT_TRUE(prepare(name).ok());
  const auto refused = prepare("d");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::no_space);
  EXPECT_NE(refused.error().message.find("196608"), std::string::npos) << refused.error().message;
  ASSERT_TRUE(pool_.remove(directory_.path() + "/a", file_bytes).ok());
  EXPECT_TRUE(prepare("d").ok());
}

TEST_F(QuotaOfPoolTest, AFileInThePoolIsWrittenAgainOrGoesForOneOfAnotherSize) {
  for (const char* const name : {"a", "b", "c"}) ASSERT_TRUE(prepare(name).ok());
  ASSERT_TRUE(retire("a").ok());
  ASSERT_TRUE(prepare("d").ok()) << "it takes nothing of the disk";
  ASSERT_TRUE(retire("b").ok());
  ASSERT_TRUE(retire("c").ok());
  EXPECT_TRUE(prepare("e", 2 * file_bytes).ok());
  EXPECT_EQ(pool_.files(), 0U) << "both were given up for it";
  EXPECT_FALSE(prepare("f").ok());
}

TEST_F(QuotaOfPoolTest, AFileThatCouldNotBeMadeTakesNothing) {
  for (int i = 0; i < 10; ++i) ASSERT_FALSE(prepare("no/such/directory").ok());
  for (const char* const name : {"a", "b", "c"}) EXPECT_TRUE(prepare(name).ok());
}

}  // namespace
}  // namespace lightq::test
