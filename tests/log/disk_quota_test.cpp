/// Tests the limit on the disk space that all segment files take together.
#include "log/storage/disk_quota.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <optional>
#include <thread>
#include <utility>

#include "log/segment/segment_pool.hpp"
#include "log/storage/posix_storage.hpp"
#include "support/temp_dir.hpp"

namespace lightq::test {
namespace {

using namespace std::chrono_literals;
using log::DiskQuota;

/// A quota that counts on its own thread. The thread ends before the quota does.
struct Counted {
  Counted(std::uint64_t bytes_max, DiskQuota::Count count)
      : quota(bytes_max, std::move(count), [this](std::function<void()> task) {
          counter = std::jthread(std::move(task));
          return true;
        }) {}
  DiskQuota quota;
  std::jthread counter;
};

bool nowhere(const std::function<void()>&) {
  return false;
}

TEST(DiskQuota, PermitsUpToTheLimitAndAgainAfterARelease) {
  DiskQuota quota(100, [] { return 40U; }, nowhere);
  EXPECT_TRUE(quota.take(60));
  EXPECT_FALSE(quota.take(1));
  quota.give_back(10);
  EXPECT_FALSE(quota.take(11));
  EXPECT_TRUE(quota.take(10));
}

TEST(DiskQuota, RefusesASizeAboveTheLimit) {
  DiskQuota quota(100, [] { return 0U; }, nowhere);
  EXPECT_FALSE(quota.take(101));
  EXPECT_FALSE(quota.take(~std::uint64_t{0}));
  EXPECT_TRUE(quota.take(100));
}

/// Returns true if the quota has the bytes within ten seconds of real time. `now` stays the same for all
/// tries.
bool takes_soon(DiskQuota& quota, std::uint64_t bytes, DiskQuota::Clock::time_point now) {
  const auto deadline = DiskQuota::Clock::now() + 10s;
  while (DiskQuota::Clock::now() < deadline) {
    if (quota.take(bytes, now)) return true;
    std::this_thread::yield();
  }
  return false;
}

TEST(DiskQuota, RecountsWhenItIsFullButNotAtEveryRequest) {
  std::atomic<int> counts = 0;
  std::atomic<std::uint64_t> there = 100;
  Counted counted(100, [&] { return ++counts, there.load(); });
  DiskQuota& quota = counted.quota;
  const auto now = DiskQuota::Clock::now();
  there = 20;
  EXPECT_FALSE(quota.take(10, now));
  EXPECT_EQ(counts, 1) << "it has just been counted";
  EXPECT_TRUE(takes_soon(quota, 10, now + 1min));
  EXPECT_EQ(counts, 2);
  EXPECT_TRUE(quota.take(70, now + 2min));
  EXPECT_EQ(counts, 2) << "there is room";
  there = 50;
  EXPECT_TRUE(takes_soon(quota, 50, now + 3min));
  EXPECT_EQ(counts, 3);
  EXPECT_FALSE(quota.take(1, now + 3min));
  EXPECT_EQ(counts, 3) << "once for each time";
}

TEST(DiskQuota, NoCallerWaitsForASlowCount) {
  std::atomic<int> counts = 0;
  std::promise<void> counting, go_on;
  Counted counted(100, [&]() -> std::uint64_t {
    if (++counts == 1) return 90;
    counting.set_value();
    go_on.get_future().wait();
    return 20;
  });
  DiskQuota& quota = counted.quota;
  const auto later = DiskQuota::Clock::now() + 1min;
  EXPECT_FALSE(quota.take(50, later));
  counting.get_future().wait();
  EXPECT_FALSE(quota.take(50, later + 1min)) << "and no second count begins";
  EXPECT_TRUE(quota.take(10, later)) << "what there was room for, there is";
  quota.give_back(5);
  go_on.set_value();
  EXPECT_TRUE(takes_soon(quota, 70, later)) << "20 were found, and 10 taken meanwhile";
  EXPECT_FALSE(quota.take(1, later));
  EXPECT_EQ(counts, 2);
}

TEST(DiskQuota, RetriesAFailedCount) {
  int tried = 0;
  DiskQuota quota(100, [] { return 100U; }, [&](const std::function<void()>&) { return ++tried > 1; });
  const auto now = DiskQuota::Clock::now();
  EXPECT_FALSE(quota.take(1, now + 1min));
  EXPECT_FALSE(quota.take(1, now + 2min));
  EXPECT_FALSE(quota.take(1, now + 3min));
  EXPECT_EQ(tried, 2) << "the second is under way";
}

TEST(DiskQuota, GivingBackTooMuchIsNoRoomBeyondTheBound) {
  DiskQuota quota(100, [] { return 10U; }, nowhere);
  quota.give_back(50);
  EXPECT_FALSE(quota.take(101));
  EXPECT_TRUE(quota.take(100));
}

TEST(DiskQuota, ReportsWhetherOnlyTheLastEighthIsLeft) {
  DiskQuota quota(80, [] { return 60U; }, nowhere);
  EXPECT_EQ(quota.last_bytes(), 10U);
  EXPECT_TRUE(quota.leaves_last(10, 0));
  EXPECT_FALSE(quota.leaves_last(11, 0));
  EXPECT_TRUE(quota.leaves_last(20, 10)) << "what no log has, others can have as well";
  EXPECT_FALSE(quota.leaves_last(21, 10));
  EXPECT_FALSE(quota.leaves_last(71, 100)) << "never more than seven eighths";
  EXPECT_TRUE(quota.take(20)) << "nothing was taken";
  EXPECT_FALSE(quota.leaves_last(1, 0));
  EXPECT_FALSE(quota.leaves_last(1, 10));
}

TEST(DiskQuota, RecountsIfOneLogHasReachedItsPart) {
  std::atomic<std::uint64_t> there = 80;
  Counted counted(80, [&] { return there.load(); });
  DiskQuota& quota = counted.quota;
  there = 10;
  const auto now = DiskQuota::Clock::now();
  EXPECT_FALSE(quota.leaves_last(1, 0, now)) << "it was counted just now";
  EXPECT_FALSE(quota.leaves_last(1, 0, now + 1min)) << "what a count finds a later call sees";
  counted.counter.join();
  EXPECT_TRUE(quota.leaves_last(1, 0, now + 1min));
}

class QuotaOfPoolTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t file_bytes = 64 * limits::KiB;
  Result<log::PreparedSegment> prepare(const std::string& name, std::uint64_t bytes = file_bytes) {
    return pool_.prepare(directory_.path() + "/" + name, bytes, 1, {.leaves_room = false});
  }
  Result<void> retire(const std::string& name) {
    return pool_.retire({directory_.path() + "/" + name, file_bytes});
  }

  TempDir directory_;
  log::PosixStorage storage_;
  DiskQuota quota_{3 * file_bytes, [] { return 0U; }, nowhere};
  log::SegmentPool pool_{{.directory = directory_.path() + "/pool", .quota = &quota_}, storage_};
};

TEST_F(QuotaOfPoolTest, NoFileIsCreatedBeyondItAndARemovedOneFreesSpace) {
  for (const char* const name : {"a", "b", "c"}) ASSERT_TRUE(prepare(name).ok());
  const auto refused = prepare("d");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::no_space);
  EXPECT_NE(refused.error().message.find("196608"), std::string::npos) << refused.error().message;
  ASSERT_TRUE(pool_.remove(directory_.path() + "/a", file_bytes).ok());
  EXPECT_TRUE(prepare("d").ok());
}

TEST_F(QuotaOfPoolTest, AFileInThePoolIsRecycledOrReplacedByOneOfAnotherSize) {
  for (const char* const name : {"a", "b", "c"}) ASSERT_TRUE(prepare(name).ok());
  ASSERT_TRUE(retire("a").ok());
  ASSERT_TRUE(prepare("d").ok()) << "it takes nothing of the disk";
  ASSERT_TRUE(retire("b").ok());
  ASSERT_TRUE(retire("c").ok());
  EXPECT_TRUE(prepare("e", 2 * file_bytes).ok());
  EXPECT_EQ(pool_.files(), 0U) << "both were given up for it";
  EXPECT_FALSE(prepare("f").ok());
}

class SharesOfPoolTest : public QuotaOfPoolTest {
 protected:
  /// Returns the bound that refused a file to a log of `log_bytes`, or nothing if the log got the file.
  std::optional<log::SpaceBound> refused(const std::string& name, std::uint64_t log_bytes) {
    auto bound = log::SpaceBound::disk;
    const auto made = eight_.prepare(directory_.path() + "/" + name, file_bytes, 1,
                                     {.log_bytes = log_bytes, .bound = &bound});
    if (made) return std::nullopt;
    EXPECT_EQ(made.error().code, ErrorCode::no_space);
    const std::string why = bound == log::SpaceBound::share
                                ? "the last eighth of 524288 is reserved for logs that have little"
                                : "the maximum for all of them";
    EXPECT_NE(made.error().message.find(why), std::string::npos) << made.error().message;
    return bound;
  }

  DiskQuota of_eight_{8 * file_bytes, [] { return 0U; }, nowhere};
  log::SegmentPool eight_{{.directory = directory_.path() + "/pool", .quota = &of_eight_}, storage_};
};

TEST_F(SharesOfPoolTest, ALogWithMuchLeavesTheLastFileToOthers) {
  for (std::uint64_t i = 0; i < 7; ++i)
    EXPECT_EQ(refused(std::to_string(i), i * file_bytes), std::nullopt) << i;
  EXPECT_EQ(refused("mine", 7 * file_bytes), log::SpaceBound::share);
  EXPECT_FALSE(storage_.open(directory_.path() + "/mine", log::OpenMode::read_only).ok());
  EXPECT_EQ(refused("others", 0), std::nullopt);
  EXPECT_EQ(refused("more", 0), log::SpaceBound::quota) << "there is none left";
}

TEST_F(SharesOfPoolTest, EachLogHasAPartOfTheLastEighth) {
  DiskQuota of_sixty_four(64 * file_bytes, [] { return 56 * file_bytes; }, nowhere);
  log::SegmentPool pool({.directory = directory_.path() + "/pool", .quota = &of_sixty_four}, storage_);
  const log::SegmentPool::Member mine(pool), others(pool);
  const auto is_made = [&](const std::string& name, std::uint64_t log_bytes, bool leaves_room = true) {
    const log::SpaceWanted wanted{.log_bytes = log_bytes, .leaves_room = leaves_room};
    return pool.prepare(directory_.path() + "/" + name, file_bytes, 1, wanted).ok();
  };
  EXPECT_TRUE(is_made("part", 3 * file_bytes));
  EXPECT_FALSE(is_made("more", 4 * file_bytes)) << "a half of the last eighth";
  EXPECT_TRUE(is_made("drops its oldest", 4 * file_bytes, false));
}

TEST_F(SharesOfPoolTest, IfOnlyItsPartIsLeftALogGetsASmallerFile) {
  DiskQuota of_sixty_four(64 * file_bytes, [] { return 56 * file_bytes; }, nowhere);
  log::SegmentPool pool({.directory = directory_.path() + "/pool", .quota = &of_sixty_four}, storage_);
  const log::SegmentPool::Member mine(pool), others(pool);
  const auto bytes_of = [&](const std::string& name, std::uint64_t log_bytes, std::size_t batch_bytes) {
    const log::SpaceWanted wanted{.log_bytes = log_bytes, .batch_bytes = batch_bytes};
    const auto made = pool.prepare(directory_.path() + "/" + name, 16 * file_bytes, 1, wanted);
    return made ? made->header.file_bytes : 0;
  };
  EXPECT_EQ(bytes_of("small", 0, 1000), file_bytes);
  EXPECT_EQ(bytes_of("for a batch", 0, file_bytes), file_bytes + 4096);
  EXPECT_EQ(bytes_of("too much", 0, 4 * file_bytes), 0U);
  EXPECT_EQ(bytes_of("its part is used", 4 * file_bytes, 1000), 0U);
}

TEST_F(SharesOfPoolTest, HalfOfTheFloorIsReservedForLogsWithLittle) {
  const auto free = storage_.free_bytes(directory_.path()).value_or_throw();
  const std::uint64_t floor = free + free / 2;  // so that half of it is free
  for (const bool has_parts : {false, true}) {
    log::SegmentPool pool({.directory = directory_.path() + "/pool", .floor_has_parts = has_parts}, storage_);
    const auto is_made = [&](std::uint64_t log_bytes) {
      const log::SpaceWanted wanted{.free_bytes_floor = floor, .log_bytes = log_bytes};
      return pool.prepare(directory_.path() + "/floor", file_bytes, 1, wanted).ok();
    };
    EXPECT_EQ(is_made(0), has_parts);
    EXPECT_FALSE(is_made(floor / 2));
  }
}

TEST_F(SharesOfPoolTest, APurgeMayExceedTheQuota) {
  for (std::uint64_t i = 0; i < 8; ++i) ASSERT_EQ(refused(std::to_string(i), 0), std::nullopt) << i;
  const log::SpaceWanted wanted{.log_bytes = 8 * file_bytes, .beyond_bounds = true};
  const auto made = eight_.prepare(directory_.path() + "/purge", log::segment_file_bytes_min, 1, wanted);
  ASSERT_TRUE(made.ok()) << made.error().text();
  ASSERT_TRUE(eight_.remove(directory_.path() + "/0", file_bytes).ok());
  EXPECT_EQ(refused("other", 0), log::SpaceBound::quota) << "it counts all the same";
  ASSERT_TRUE(eight_.remove(directory_.path() + "/purge", log::segment_file_bytes_min).ok());
  EXPECT_EQ(refused("other", 0), std::nullopt);
}

TEST_F(SharesOfPoolTest, ALogBeyondItsPartTakesNoFilesFromThePool) {
  for (std::uint64_t i = 0; i < 8; ++i) ASSERT_EQ(refused(std::to_string(i), 0), std::nullopt) << i;
  ASSERT_TRUE(eight_.retire({directory_.path() + "/7", file_bytes}).ok());
  EXPECT_EQ(refused("mine", 7 * file_bytes), log::SpaceBound::share);
  EXPECT_EQ(eight_.files(), 1U) << "it is there still";
  EXPECT_EQ(refused("others", 0), std::nullopt);
  EXPECT_EQ(eight_.files(), 0U);
}

TEST_F(SharesOfPoolTest, TheFloorIsReportedSeparatelyFromTheQuota) {
  auto bound = log::SpaceBound::disk;
  const auto made = eight_.prepare(directory_.path() + "/floor", file_bytes, 1,
                                   {.free_bytes_floor = std::uint64_t{1} << 62, .bound = &bound});
  EXPECT_FALSE(made.ok());
  EXPECT_EQ(bound, log::SpaceBound::floor);
}

TEST_F(QuotaOfPoolTest, AFileThatCouldNotBeCreatedTakesNothing) {
  for (int i = 0; i < 10; ++i) ASSERT_FALSE(prepare("no/such/directory").ok());
  for (const char* const name : {"a", "b", "c"}) EXPECT_TRUE(prepare(name).ok());
}

}  // namespace
}  // namespace lightq::test
