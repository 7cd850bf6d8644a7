/// Tests the durable log: append, read, begin a new segment, drop, sync.
#include "log/segment_log/segment_log.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "support/log_fixture.hpp"
#include "support/random.hpp"

namespace lightq::log {
namespace {

using test::FaultyStorage;
using test::read_everything;
using test::ReadMessage;

class SegmentLogTest : public test::LogFixture {
 protected:
  static std::string big(char fill, std::size_t bytes = 200'000) { return std::string(bytes, fill); }
  void fail_with(FaultyStorage::Call call, int error) {
    storage.on_call = [=](FaultyStorage::Call asked, const std::string&) {
      return asked == call ? FaultyStorage::Fault{error, 0} : FaultyStorage::Fault{};
    };
  }
};

TEST_F(SegmentLogTest, PutsNothingOnDiskBeforeTheFirstAppend) {
  open();
  EXPECT_FALSE(work());
  log->maintain(now);
  EXPECT_TRUE(log->flush().ok());
  EXPECT_TRUE(storage.paths().empty());
  EXPECT_EQ(log->first_offset(), log->next_offset());
}

TEST_F(SegmentLogTest, ReturnsAppendedMessages) {
  open();
  ASSERT_EQ(append({"a", "b"}), AppendOutcome::appended);
  ASSERT_EQ(append({""}), AppendOutcome::appended);
  EXPECT_EQ(read_everything(*log), (std::vector<ReadMessage>{{{0}, "a"}, {{1}, "b"}, {{2}, ""}}));
  ReadPosition place{{3}};
  EXPECT_EQ(log->read(place).outcome, ReadOutcome::end);
}

TEST_F(SegmentLogTest, ContinuesAfterAKilledProcess) {
  open();
  append({"a", "b"});
  const auto incarnation = log->incarnation();
  open();
  EXPECT_TRUE(log->recovery().clean()) << log->recovery().text();
  EXPECT_EQ(log->recovery().messages, 2U);
  EXPECT_EQ(log->incarnation(), incarnation);
  EXPECT_EQ(log->durable_offset(), Offset{2});
  append({"c"});
  EXPECT_EQ(read_everything(*log), (std::vector<ReadMessage>{{{0}, "a"}, {{1}, "b"}, {{2}, "c"}}));
}

TEST_F(SegmentLogTest, DoublesItsSegmentsUpToTheLimit) {
  options.segment_bytes = 4 * limits::MiB;
  open();
  for (int i = 0; i < 80; ++i) ASSERT_EQ(append({big('x')}), AppendOutcome::appended);
  std::vector<std::size_t> sizes;
  for (const auto& path : storage.paths()) sizes.push_back(storage.bytes_of(path).size() / limits::MiB);
  EXPECT_EQ(sizes, (std::vector<std::size_t>{1, 2, 4, 4, 4, 4}));
  EXPECT_EQ(read_everything(*log).size(), 80U);
  open();
  EXPECT_TRUE(log->recovery().clean()) << log->recovery().text();
  EXPECT_EQ(read_everything(*log).size(), 80U);
}

TEST_F(SegmentLogTest, StoresABatchAboveSegmentBytesInItsOwnSegment) {
  options.segment_bytes = limits::MiB;
  open();
  append({"small"});
  ASSERT_EQ(append({big('y', 3'000'000)}), AppendOutcome::appended);
  ASSERT_EQ(append({big('n', 10'000)}), AppendOutcome::appended);
  EXPECT_EQ(storage.paths().size(), 3U);
  EXPECT_EQ(storage.bytes_of(segment_path(2)).size(), limits::MiB);
  open();
  EXPECT_EQ(read_everything(*log)[1].payload, big('y', 3'000'000));
}

TEST_F(SegmentLogTest, ReplacesAnEmptySegmentTooSmallForItsFirstBatch) {
  open();
  fail_with(FaultyStorage::Call::write, 0);
  storage.on_call = [n = 0](FaultyStorage::Call call, const std::string&) mutable {
    // The header is written twice, before and after the first offset is known. The write of the batch then
    // fails.
    return call == FaultyStorage::Call::write && ++n == 3 ? FaultyStorage::Fault{EIO, 0}
                                                          : FaultyStorage::Fault{};
  };
  EXPECT_EQ(append({"fails"}), AppendOutcome::failed);
  EXPECT_EQ(log->last_error().system_error, EIO);
  EXPECT_EQ(append({big('z', 5'000'000)}), AppendOutcome::appended);
  EXPECT_EQ(storage.paths().size(), 1U);
  EXPECT_EQ(read_everything(*log).size(), 1U);
}

TEST_F(SegmentLogTest, WritesOnAfterAShortWrite) {
  open();
  storage.on_call = [](FaultyStorage::Call call, const std::string&) {
    return call == FaultyStorage::Call::write ? FaultyStorage::Fault{0, 1000} : FaultyStorage::Fault{};
  };
  ASSERT_EQ(append({big('s', 10'000)}), AppendOutcome::appended);
  open();
  EXPECT_EQ(read_everything(*log), (std::vector<ReadMessage>{{{0}, big('s', 10'000)}}));
}

TEST_F(SegmentLogTest, LeavesNothingOfAFailedAppend) {
  open();
  append({"a"});
  storage.on_call = [n = 0](FaultyStorage::Call call, const std::string&) mutable {
    if (call != FaultyStorage::Call::write) return FaultyStorage::Fault{};
    return ++n == 1 ? FaultyStorage::Fault{0, 100} : FaultyStorage::Fault{ENOSPC, 0};
  };
  EXPECT_EQ(append({big('f', 500)}), AppendOutcome::no_space);
  storage.on_call = nullptr;
  EXPECT_EQ(log->next_offset(), Offset{1});
  open();
  EXPECT_EQ(log->next_offset(), Offset{1});
  append({"b"});
  EXPECT_EQ(read_everything(*log), (std::vector<ReadMessage>{{{0}, "a"}, {{1}, "b"}}));
}

TEST_F(SegmentLogTest, WaitsOnAFullDiskAndContinuesWhenThereIsSpace) {
  storage.disk_bytes = limits::MiB + 1000;
  open();
  int count = 0;
  while (append({big('x')}) == AppendOutcome::appended) ++count;
  EXPECT_EQ(count, 5);
  EXPECT_EQ(append({big('x')}), AppendOutcome::no_space);
  EXPECT_EQ(log->last_error().code, ErrorCode::no_space);
  EXPECT_EQ(append({"a small one still fits the segment"}), AppendOutcome::appended);
  EXPECT_EQ(log->next_offset(), Offset{6});
  storage.disk_bytes = 100 * limits::MiB;
  EXPECT_EQ(append({big('x')}), AppendOutcome::appended);
  EXPECT_EQ(read_everything(*log).size(), 7U);
}

TEST_F(SegmentLogTest, StaysAboveItsFloorOfFreeDisk) {
  storage.disk_bytes = 10 * limits::MiB;
  options.disk_free_floor_bytes = 9 * limits::MiB + 1;
  open();
  EXPECT_EQ(append({"a"}), AppendOutcome::no_space);
  EXPECT_TRUE(storage.paths().empty());
  storage.disk_bytes += 1;
  EXPECT_EQ(append({"a"}), AppendOutcome::appended);
}

TEST_F(SegmentLogTest, ReportsOnceThatItWaitsForSpace) {
  std::vector<SpaceBound> waits;
  SegmentPoolOptions of_pool{"/pool"};
  of_pool.log_waits = [&](SpaceBound bound) { waits.push_back(bound); };
  log.reset();
  pool = std::make_unique<SegmentPool>(of_pool, storage);
  storage.disk_bytes = 10 * limits::MiB;
  options.disk_free_floor_bytes = 9 * limits::MiB + 1;
  open();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(append({"a"}), AppendOutcome::no_space);
  EXPECT_EQ(waits, std::vector{SpaceBound::floor});
  storage.disk_bytes += 1;
  while (append({big('x')}) == AppendOutcome::appended) {
  }
  EXPECT_EQ(append({big('x')}), AppendOutcome::no_space);
  EXPECT_EQ(waits, (std::vector{SpaceBound::floor, SpaceBound::floor})) << "it has waited twice";
  log.reset();
}

TEST_F(SegmentLogTest, BecomesDurableWithEachJobAndNotEarlier) {
  open();
  append({"a"});
  EXPECT_EQ(log->durable_offset(), Offset{0});
  now.us += 100'000;
  const auto job = log->take_disk_job(now);
  ASSERT_NE(job, nullptr);
  append({"b"});
  EXPECT_EQ(log->take_disk_job(now), nullptr) << "one job at a time";
  job->run();
  EXPECT_EQ(log->durable_offset(), Offset{0});
  job->finish();
  EXPECT_EQ(log->durable_offset(), Offset{1});
  EXPECT_EQ(log->take_disk_job(now), nullptr);
}

TEST_F(SegmentLogTest, SyncsAtTheIntervalAndOnlyNewMessages) {
  open();
  EXPECT_FALSE(log->wants_disk_work());
  append({"a"});
  EXPECT_TRUE(log->wants_disk_work());
  now.us += 99'999;
  EXPECT_FALSE(work());
  now.us += 1;
  EXPECT_TRUE(work());
  now.us += 1'000'000;
  EXPECT_FALSE(work());
  EXPECT_FALSE(log->wants_disk_work());
  append({"b"});
  EXPECT_TRUE(work());
  EXPECT_EQ(log->durable_offset(), Offset{2});
}

TEST_F(SegmentLogTest, NeverCallsAnythingDurableAfterAFailedSync) {
  open();
  append({"a"});
  now.us += 100'000;
  fail_with(FaultyStorage::Call::sync, EIO);
  EXPECT_TRUE(work());
  storage.on_call = nullptr;
  EXPECT_TRUE(log->sync().poisoned());
  EXPECT_EQ(log->last_error().system_error, EIO);
  EXPECT_EQ(append({"b"}), AppendOutcome::appended);
  now.us += 1'000'000;
  work();
  EXPECT_FALSE(log->flush().ok());
  EXPECT_EQ(log->durable_offset(), Offset{0});
  EXPECT_EQ(read_everything(*log).size(), 2U);
  open();
  EXPECT_EQ(log->durable_offset(), Offset{2});
}

TEST_F(SegmentLogTest, UsesNoOffsetTwiceWhileRetentionContinuesAfterAFailedSync) {
  options.segment_bytes = limits::segment_bytes_min;
  options.retention_bytes = 1;
  open();
  append({"a"});
  ASSERT_TRUE(log->flush().ok());
  fail_with(FaultyStorage::Call::sync, EIO);
  append({"b"});
  EXPECT_FALSE(log->flush().ok());
  storage.on_call = nullptr;
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(append({std::string(limits::segment_bytes_min / 2, 'x')}), AppendOutcome::appended);
    log->maintain(now);
    now.us += 1'000'000;
    work();
  }
  ASSERT_LT(Offset{50}, log->first_offset());
  log.reset();
  storage.power_cut([] { return false; });
  open();
  EXPECT_EQ(log->next_offset(), Offset{1}) << "what had become durable is remembered";
}

TEST_F(SegmentLogTest, RetriesAFileThatCannotBeRemovedOnceASecond) {
  options.segment_bytes = limits::segment_bytes_min;
  options.retention_bytes = 1;
  open();
  for (int i = 0; i < 4; ++i) append({std::string(limits::segment_bytes_min / 2 + 1, 'x')});
  log->maintain(now);
  storage.on_call = [](FaultyStorage::Call call, const std::string&) {
    const bool removes = call == FaultyStorage::Call::rename || call == FaultyStorage::Call::unlink;
    return FaultyStorage::Fault{removes ? EIO : 0, 0};
  };
  EXPECT_TRUE(work());
  for (int i = 0; i < 10; ++i) {
    now.us += 99'000;
    EXPECT_FALSE(work());
    EXPECT_TRUE(log->wants_disk_work()) << "or nobody asks again";
  }
  storage.on_call = nullptr;
  now.us += 10'000;
  EXPECT_TRUE(work());
  EXPECT_FALSE(storage.exists(segment_path(0)));
}

TEST_F(SegmentLogTest, IsPoisonedByAFailedSyncOfItsDirectoryToo) {
  open();
  append({"a"});
  fail_with(FaultyStorage::Call::sync_directory, EIO);
  EXPECT_FALSE(log->flush().ok());
  storage.on_call = nullptr;
  EXPECT_FALSE(log->flush().ok());
  EXPECT_EQ(log->durable_offset(), Offset{0});
}

TEST_F(SegmentLogTest, OutlivesADroppedJobAndMayBeOutlivedByOne) {
  open();
  append({"a"});
  now.us += 100'000;
  log->take_disk_job(now).reset();
  auto job = log->take_disk_job(now);
  EXPECT_EQ(job, nullptr) << "the interval has begun again";
  now.us += 100'000;
  job = log->take_disk_job(now);
  ASSERT_NE(job, nullptr);
  log.reset();
  job->run();
}

TEST_F(SegmentLogTest, SyncsOnAnotherThreadWhileItAppends) {
  open();
  for (int round = 0; round < 50; ++round) {
    append({big('t')});
    now.us += 100'000;
    const auto job = log->take_disk_job(now);
    ASSERT_NE(job, nullptr);
    std::thread disk([&] { job->run(); });
    for (int i = 0; i < 5; ++i) append({big('u', 1000)});
    read_everything(*log, log->next_offset().value > 20 ? Offset{log->next_offset().value - 20} : Offset{});
    disk.join();
    job->finish();
  }
  EXPECT_EQ(log->next_offset(), Offset{300});
  ASSERT_TRUE(log->flush().ok());
  EXPECT_EQ(log->durable_offset(), Offset{300});
  EXPECT_EQ(read_everything(*log).size(), 300U);
}

TEST_F(SegmentLogTest, RollsIntoTheSegmentThatAJobHasPrepared) {
  open();
  for (int i = 0; i < 3; ++i) append({big('x')});
  work();
  EXPECT_TRUE(storage.exists(directory + "/next.prepared"));
  const auto allocations = std::make_shared<int>(0);
  storage.on_call = [=](FaultyStorage::Call call, const std::string&) {
    if (call == FaultyStorage::Call::allocate) ++*allocations;
    return FaultyStorage::Fault{};
  };
  for (int i = 0; i < 3; ++i) append({big('x')});
  EXPECT_EQ(*allocations, 0);
  EXPECT_FALSE(storage.exists(directory + "/next.prepared"));
  EXPECT_EQ(storage.paths().size(), 2U);
}

TEST_F(SegmentLogTest, DropsOnlyWholeUnneededSegments) {
  options.segment_bytes = limits::MiB;
  options.capacity_bytes = 2'500'000;
  open();
  while (append({big('x')}) == AppendOutcome::appended) {
  }
  const Offset full = log->next_offset();
  EXPECT_FALSE(log->make_room(200'100, {4}));
  EXPECT_TRUE(log->make_room(200'100, {5}));
  EXPECT_EQ(log->first_offset(), Offset{5});
  ReadPosition place{{2}};
  EXPECT_EQ(log->read(place).outcome, ReadOutcome::trimmed);
  EXPECT_EQ(append({big('x')}), AppendOutcome::appended);
  EXPECT_TRUE(storage.exists(segment_path(0)));
  work();
  EXPECT_FALSE(storage.exists(segment_path(0)));
  open();
  EXPECT_EQ(log->first_offset(), Offset{5});
  EXPECT_EQ(log->next_offset(), full + 1);
}

TEST_F(SegmentLogTest, KeepsTheFilesOfDroppedSegmentsThatAStartMayNeed) {
  options.segment_bytes = limits::MiB;
  open();
  for (int i = 0; i < 12; ++i) append({big('x')});
  log->dropped().keep_from({7});
  log->drop_before({10});
  EXPECT_EQ(log->first_offset(), Offset{10});
  work();
  EXPECT_FALSE(storage.exists(segment_path(0)));
  EXPECT_TRUE(storage.exists(segment_path(5)));
  EXPECT_EQ(log->dropped().end(), Offset{10});
  EXPECT_GE(log->dropped().bytes(), 1'000'000U);
  EXPECT_FALSE(log->wants_disk_work());
  storage.disk_bytes = 2 * limits::MiB + limits::MiB / 2;
  for (int i = 0; i < 10; ++i) ASSERT_EQ(append({big('x')}), AppendOutcome::appended) << i;
  EXPECT_FALSE(storage.exists(segment_path(5))) << "it has made room";
  EXPECT_EQ(log->dropped().bytes(), 0U);
}

TEST_F(SegmentLogTest, DropsItsOnlySegmentIfOnlyThatFreesSpace) {
  options.capacity_bytes = 700'000;
  open();
  for (int i = 0; i < 3; ++i) append({big('x')});
  EXPECT_EQ(append({big('x')}), AppendOutcome::full);
  EXPECT_FALSE(log->make_room(200'100, {2}));
  EXPECT_TRUE(log->make_room(200'100, {3}));
  EXPECT_EQ(log->first_offset(), Offset{3});
  open();
  EXPECT_EQ(log->next_offset(), Offset{3}) << "an empty segment remembers the next offset";
}

TEST_F(SegmentLogTest, KeepsMessagesByItsRetentionSettings) {
  options.segment_bytes = limits::MiB;
  options.retention_bytes = 500'000;
  open();
  for (int i = 0; i < 20; ++i) append({big('x')});
  log->maintain(now);
  EXPECT_GE(log->stored_bytes(), 500'000U);
  EXPECT_LT(log->stored_bytes(), 500'000U + limits::MiB);
  options = {directory, limits::MiB};
  options.retention_messages = 2;
  open();
  for (int i = 0; i < 6; ++i) append({big('x')});
  log->maintain(now);
  EXPECT_LE(distance(log->first_offset(), log->next_offset()), 2U + 5U);
  EXPECT_GE(distance(log->first_offset(), log->next_offset()), 2U);
  options.retention_messages = 0;
  options.retention_ms = 1000;
  open();
  log->maintain({now.us + 1'000'000});
  EXPECT_LT(log->first_offset(), log->next_offset());
  log->maintain({now.us + 1'000'001});
  EXPECT_EQ(log->first_offset(), log->next_offset());
}

TEST_F(SegmentLogTest, RecyclesFilesWithoutShowingTheirOldContent) {
  options.segment_bytes = limits::MiB;
  options.retention_messages = 1;
  open();
  for (int i = 0; i < 11; ++i) append({big('o')});
  log->maintain(now);
  work();
  ASSERT_GE(pool->files(), 1U);
  const std::size_t before = pool->files();
  const Offset first_new = log->next_offset();
  for (int i = 0; i < 20 && pool->files() == before; ++i) append({big('n')});
  EXPECT_LT(pool->files(), before);
  const Offset end = log->next_offset();
  open();
  EXPECT_TRUE(log->recovery().clean()) << log->recovery().text();
  EXPECT_EQ(log->next_offset(), end);
  const auto found = read_everything(*log, first_new);
  EXPECT_EQ(found.size(), distance(first_new, end));
  for (const ReadMessage& message : found) EXPECT_EQ(message.payload, big('n'));
}

TEST_F(SegmentLogTest, ReadsAnywhereWithMoreSegmentsThanItMaps) {
  options.segment_bytes = limits::segment_bytes_min;
  open();
  for (int i = 0; i < 60; ++i) append({std::to_string(i) + big('m', 30'000), "second"});
  open();
  EXPECT_GT(log->recovery().segments, 25U);
  test::Random random;
  ReadPosition place;
  for (int i = 0; i < 500; ++i) {
    if (random.one_in(3)) place = {{random.below(120)}};
    if (place.offset.value == 120) place.offset = {0};
    const ReadResult result = log->read(place);
    ASSERT_EQ(result.outcome, ReadOutcome::batch);
    ASSERT_EQ(result.batch.base_offset().value, place.offset.value / 2 * 2);
    ASSERT_TRUE(test::payloads_of(result.batch)[0].starts_with(std::to_string(place.offset.value / 2) + "m"));
    place.offset = result.batch.end_offset();
  }
}

TEST_F(SegmentLogTest, WorksOnAfterAnIdleTimeInWhichItClosedItsFiles) {
  open();
  append({"a"});
  work();
  ASSERT_TRUE(log->flush().ok());
  log->maintain(now);
  log->maintain({now.us + 20'000'000});
  EXPECT_EQ(read_everything(*log).size(), 1U);
  log->maintain({now.us + 20'000'000});
  log->maintain({now.us + 40'000'000});
  EXPECT_EQ(append({"b"}), AppendOutcome::appended);
  EXPECT_EQ(read_everything(*log).size(), 2U);
}

TEST_F(SegmentLogTest, LeavesNothingInItsDirectoryWhenItIsDestroyed) {
  open();
  for (int i = 0; i < 4; ++i) append({big('x')});
  work();
  ASSERT_TRUE(log->destroy().ok());
  EXPECT_EQ(storage.paths(), std::vector<std::string>{}) << "no other log uses its files again";
}

TEST_F(SegmentLogTest, RefusesSegmentSizesOutOfRange) {
  options.segment_bytes = 1;
  const auto opened = SegmentLog::open(options, storage, *pool, now);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::invalid_argument);
}

// The system reports a lost page only once, to the first sync after the loss.
TEST_F(SegmentLogTest, ConfirmsNothingMoreOnceASyncThatRemembersTheNextOffsetHasFailed) {
  open();
  ASSERT_EQ(append({"one"}), AppendOutcome::appended);
  storage.on_call = [](FaultyStorage::Call call, const std::string&) -> FaultyStorage::Fault {
    return {call == FaultyStorage::Call::sync ? EIO : 0, 0};
  };
  EXPECT_FALSE(log->settle().ok());
  storage.on_call = nullptr;
  EXPECT_TRUE(log->sync().poisoned());
  EXPECT_FALSE(log->settle().ok());
  EXPECT_FALSE(log->flush().ok());
  EXPECT_EQ(log->durable_offset(), Offset{0});
}

}  // namespace
}  // namespace lightq::log
