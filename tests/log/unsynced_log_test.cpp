/// Tests that a durable log that is never synced keeps few descriptors open.
#include <gtest/gtest.h>

#include "log/segment_log/segment_log.hpp"
#include "support/log_fixture.hpp"

namespace lightq::log {
namespace {

/// A log that is never synced.
class UnsyncedLogTest : public test::LogFixture {
 protected:
  UnsyncedLogTest() {
    options.flush_interval_ms = 0;
    options.segment_bytes = limits::segment_bytes_min;
  }
  void add_segments(int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(append({"x"}), AppendOutcome::appended);
      ASSERT_TRUE(log->end_segment().ok());
    }
  }
  void keep_files(std::size_t most) {
    pool =
        std::make_unique<SegmentPool>(SegmentPoolOptions{.directory = "/pool", .files_max = most}, storage);
  }
  void work_all() {
    while (work()) {
    }
  }
};

TEST_F(UnsyncedLogTest, FullSegmentsGiveUpTheirDescriptorsInAJob) {
  open();
  add_segments(30);
  EXPECT_TRUE(storage.released.empty()) << "the writer has better things to do";
  EXPECT_TRUE(log->jobs().is_due(now));
  work_all();
  EXPECT_EQ(log->segments().size() - 16, storage.released.size());
  EXPECT_TRUE(storage.released.contains(segment_path(0)));
  EXPECT_FALSE(log->jobs().is_due(now));
}

// Each job has a fixed cost, so a log collects some descriptors before it asks for a job.
TEST_F(UnsyncedLogTest, AFewDescriptorsStartNoJobYet) {
  open();
  add_segments(22);
  EXPECT_FALSE(log->jobs().is_due(now)) << log->segments().size();
  add_segments(1);
  EXPECT_TRUE(log->jobs().is_due(now)) << log->segments().size();
}

TEST_F(UnsyncedLogTest, DroppedSegmentsWaitForOthersThatGoWithThem) {
  options.retire_gather_us = 1000;
  open();
  add_segments(60);
  work_all();
  const auto drop = [&](std::uint64_t before) { log->drop_before({before}); };
  drop(1);
  EXPECT_TRUE(log->jobs().is_due(now)) << "no job was before it";
  work_all();
  drop(2);
  EXPECT_FALSE(log->jobs().is_due(now));
  EXPECT_TRUE(log->jobs().gathers_retired());
  EXPECT_TRUE(storage.exists(segment_path(1)));
  now.us += 1000;
  EXPECT_TRUE(log->jobs().is_due(now)) << "it has waited long enough";
  work_all();
  EXPECT_FALSE(log->jobs().gathers_retired());
  EXPECT_FALSE(storage.exists(segment_path(1)));
  drop(2 + 15);
  EXPECT_FALSE(log->jobs().is_due(now));
  drop(2 + 16);
  EXPECT_TRUE(log->jobs().is_due(now)) << "they are many";
  work_all();
  EXPECT_FALSE(storage.exists(segment_path(2 + 15)));
}

TEST_F(UnsyncedLogTest, TheyWaitForNoMoreThanThePoolKeeps) {
  options.retire_gather_us = 1'000'000;
  keep_files(4);
  open();
  add_segments(30);
  work_all();
  log->drop_before({1});
  work_all();
  log->drop_before({1 + 3});
  EXPECT_FALSE(log->jobs().is_due(now));
  log->drop_before({1 + 4});
  EXPECT_TRUE(log->jobs().is_due(now));
}

TEST_F(UnsyncedLogTest, WithoutAPoolTheyWaitUntilTheyAreMany) {
  options.retire_gather_us = 1'000'000;
  keep_files(0);
  open();
  add_segments(30);
  work_all();
  log->drop_before({1});
  work_all();
  log->drop_before({1 + 15});
  EXPECT_FALSE(log->jobs().is_due(now));
  log->drop_before({1 + 16});
  EXPECT_TRUE(log->jobs().is_due(now));
}

TEST_F(UnsyncedLogTest, DroppedFilesAreRemovedWithOtherWork) {
  options.retire_gather_us = 1'000'000;
  open();
  add_segments(10);
  work_all();
  log->drop_before({1});
  work_all();
  log->drop_before({2});
  EXPECT_FALSE(work());
  append({"x"});
  log->request_flush();
  ASSERT_TRUE(work());
  EXPECT_FALSE(storage.exists(segment_path(1)));
}

TEST_F(UnsyncedLogTest, DescriptorsAreReleasedWithOtherWork) {
  options.prefault = options.mapped_writes = true;  // so that the next segment is prepared immediately
  open();
  add_segments(20);
  ASSERT_TRUE(work());
  EXPECT_EQ(log->segments().size() - 16, storage.released.size());
}

TEST_F(UnsyncedLogTest, AFewDescriptorsStartNoJob) {
  open();
  add_segments(22);
  EXPECT_FALSE(work());
  EXPECT_TRUE(storage.released.empty());
}

TEST_F(UnsyncedLogTest, TheWriterReleasesThemIfNoJobRunsForLong) {
  open();
  add_segments(60);
  EXPECT_EQ(log->segments().size() - 32, storage.released.size());
  add_segments(100);
  work_all();
  EXPECT_EQ(log->segments().size() - 16, storage.released.size());
}

TEST_F(UnsyncedLogTest, AFileThatHasToKeepItsDescriptorIsAskedAgainWithTheNextSegment) {
  open();
  add_segments(30);
  storage.may_release_descriptors = [&](const std::string& path) { return path != segment_path(3); };
  work_all();
  EXPECT_EQ(3U, storage.released.size());
  EXPECT_FALSE(log->jobs().is_due(now));
  storage.may_release_descriptors = nullptr;
  EXPECT_FALSE(work());
  add_segments(1);
  EXPECT_TRUE(log->jobs().is_due(now));
  work_all();
  EXPECT_EQ(log->segments().size() - 16, storage.released.size());
}

TEST_F(UnsyncedLogTest, SegmentsThatWaitForAJobToGoHaveFewDescriptors) {
  open();
  add_segments(30);
  const auto slow = log->take_disk_job(now);
  ASSERT_NE(nullptr, slow);
  for (int i = 0; i < 50; ++i) {
    add_segments(1);
    log->drop_before({log->next_offset().value - 10});
  }
  EXPECT_GE(storage.released.size(), 30U);
  slow->run();
  slow->finish();
}

}  // namespace
}  // namespace lightq::log
