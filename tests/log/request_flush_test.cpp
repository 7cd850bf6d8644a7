/// Tests `request_flush`, which asks a log to make its messages durable now.
#include <gtest/gtest.h>

#include "log/memory/ring_log.hpp"
#include "log/memory/write_behind_log.hpp"
#include "support/log_fixture.hpp"

namespace lightq::log {
namespace {

using test::FaultyStorage;
using test::make_batch;
using test::make_batch_of;
using test::read_everything;

class RequestFlushTest : public test::LogFixture {
 protected:
  RequestFlushTest() { options.flush_interval_ms = 0; }  // nothing is synced unless the test asks for it

  void fail_with(FaultyStorage::Call which, int error) {
    storage.on_call = [which, error](FaultyStorage::Call call, const std::string&) {
      return FaultyStorage::Fault{call == which ? error : 0, 0};
    };
  }
  int syncs_of(const std::function<void()>& action) {
    int syncs = 0;
    storage.on_call = [&syncs](FaultyStorage::Call call, const std::string&) {
      if (call == FaultyStorage::Call::sync) ++syncs;
      return FaultyStorage::Fault{};
    };
    action();
    storage.on_call = nullptr;
    return syncs;
  }
};

// The owner stops asking for jobs once the log wants none. A sync that was due while another job was out
// would then wait for the next append.
TEST_F(RequestFlushTest, WantsTheSyncThatIsDueBySizeWithoutFurtherAppends) {
  options.flush_bytes = 10'000;
  open();
  append({std::string(4000, 'x')});
  EXPECT_FALSE(log->wants_disk_work());
  EXPECT_FALSE(work());
  append({std::string(8000, 'x')});
  EXPECT_TRUE(log->wants_disk_work());
  EXPECT_TRUE(work());
  EXPECT_EQ(log->durable_offset(), Offset{2});
  EXPECT_FALSE(log->wants_disk_work());
}

TEST_F(RequestFlushTest, WithoutARequestNothingIsSyncedBeforeItsTime) {
  open();
  append({"a"});
  EXPECT_FALSE(log->wants_disk_work());
  EXPECT_FALSE(work());
  log->request_flush();
  EXPECT_TRUE(work());
  append({"b"});
  now.us += 3'600'000'000;
  EXPECT_FALSE(log->wants_disk_work()) << "a request speaks of what was there, not of what comes";
  EXPECT_FALSE(work());
  EXPECT_EQ(log->durable_offset(), Offset{1});
}

// If the directory could not be opened, no sync was tried, so no data can have been lost.
TEST_F(RequestFlushTest, ADirectoryThatCannotBeOpenedForNowIsNoFailedSync) {
  for (const int error : {EMFILE, ENFILE, ENOMEM, EACCES, EIO}) {
    open();
    append({"a"});
    ASSERT_TRUE(log->end_segment().ok());
    append({"b"});  // begins a segment, so that a file name must be synced
    log->request_flush();
    storage.on_call = [&](FaultyStorage::Call call, const std::string& path) {
      const bool is_it = call == FaultyStorage::Call::open && path == directory;
      return FaultyStorage::Fault{is_it ? error : 0, 0};
    };
    const Offset before = log->durable_offset();
    EXPECT_TRUE(work());
    EXPECT_FALSE(work()) << "it is not tried again and again";
    EXPECT_FALSE(log->sync().begun().ok());
    EXPECT_FALSE(log->flush().ok());
    EXPECT_TRUE(log->may_flush_again());
    EXPECT_EQ(log->durable_offset(), before);
    storage.on_call = nullptr;
    now.us += 1'000'000;
    EXPECT_TRUE(work());
    EXPECT_EQ(log->durable_offset(), log->next_offset());
    EXPECT_FALSE(storage.exists(directory + "/sync-failed"));
    log.reset();
    now.us += 1'000'000;
  }
}

TEST_F(RequestFlushTest, ADirectoryThatCannotBeSyncedIsAFailedSync) {
  open();
  append({"a"});
  log->request_flush();
  fail_with(FaultyStorage::Call::sync_directory, EIO);
  EXPECT_TRUE(work());
  storage.on_call = nullptr;
  EXPECT_TRUE(log->sync().poisoned());
  EXPECT_FALSE(log->may_flush_again());
}

TEST_F(RequestFlushTest, CreatesOneJobForAllAppendedBatches) {
  options.flush_interval_ms = 3'600'000;
  open();
  for (int i = 0; i < 5; ++i) {
    append({std::to_string(i)});
    log->request_flush();
    EXPECT_TRUE(log->wants_disk_work());
  }
  EXPECT_EQ(syncs_of([this] { EXPECT_TRUE(work()); }), 1);
  EXPECT_EQ(log->durable_offset(), Offset{5});
  EXPECT_FALSE(work());
  log->request_flush();
  EXPECT_FALSE(log->wants_disk_work()) << "nothing is left to be done";
  EXPECT_FALSE(work());
}

TEST_F(RequestFlushTest, RequestsAnotherJobWhileOneIsRunning) {
  open();
  append({"a"});
  log->request_flush();
  auto job = log->take_disk_job(now);
  ASSERT_NE(job, nullptr);
  append({"b"});
  log->request_flush();
  append({"c"});
  log->request_flush();
  EXPECT_EQ(log->take_disk_job(now), nullptr);
  job->run();
  job->finish();
  EXPECT_EQ(log->durable_offset(), Offset{1});
  EXPECT_TRUE(log->wants_disk_work());
  auto next = log->take_disk_job(now);
  ASSERT_NE(next, nullptr) << "at once, though the last one's object is still there";
  job.reset();
  EXPECT_EQ(log->take_disk_job(now), nullptr) << "the next is out";
  EXPECT_EQ(syncs_of([&] { next->run(); }), 1);
  next->finish();
  EXPECT_EQ(log->durable_offset(), Offset{3});
}

TEST_F(RequestFlushTest, AcceptsARunningJobThatCoversAllBatches) {
  open();
  append({"a"});
  log->request_flush();
  auto job = log->take_disk_job(now);
  ASSERT_NE(job, nullptr);
  log->request_flush();
  job->run();
  job->finish();
  job.reset();
  EXPECT_FALSE(work());
  EXPECT_EQ(log->durable_offset(), Offset{1});
}

TEST_F(RequestFlushTest, StaysOpenAfterAJobThatNeverRan) {
  open();
  append({"a"});
  log->request_flush();
  log->take_disk_job(now).reset();
  EXPECT_TRUE(work());
  EXPECT_EQ(log->durable_offset(), Offset{1});
}

TEST_F(RequestFlushTest, SyncsFullSegmentsAndTheirNamesToo) {
  options.segment_bytes = limits::segment_bytes_min;
  open();
  for (int i = 0; i < 5; ++i) append({std::string(limits::segment_bytes_min / 2 + 1, 'x')});
  log->request_flush();
  ASSERT_TRUE(work());
  append({"not asked for"});
  log.reset();
  storage.power_cut([] { return false; });
  open();
  EXPECT_EQ(read_everything(*log).size(), 5U);
  EXPECT_EQ(log->next_offset(), Offset{5});
}

TEST_F(RequestFlushTest, IsForgottenByALogThatCannotSyncAnyMore) {
  open();
  append({"a"});
  log->request_flush();
  fail_with(FaultyStorage::Call::sync, EIO);
  EXPECT_TRUE(work());
  storage.on_call = nullptr;
  log->request_flush();
  EXPECT_FALSE(log->wants_disk_work());
  EXPECT_FALSE(work());
  EXPECT_EQ(log->durable_offset(), Offset{0});
}

// Without this pause the log would call a disk that refuses the name in a busy loop.
TEST_F(RequestFlushTest, TriesANameThatCouldNotBeGivenOnceASecond) {
  options.mapped_writes = options.prefault = true;
  options.segment_bytes = limits::segment_bytes_min;
  open();
  const auto is_unnamed = [this] {
    return log->segments().size() > 1 && !storage.exists(log->segments().active().path());
  };
  for (int i = 0; i < 1000 && !is_unnamed(); ++i) {
    append({std::string(3000, 'x')});
    if (!is_unnamed()) work();
  }
  ASSERT_TRUE(is_unnamed());
  int tries = 0;
  storage.on_call = [&tries](FaultyStorage::Call call, const std::string&) {
    if (call != FaultyStorage::Call::rename) return FaultyStorage::Fault{};
    ++tries;
    return FaultyStorage::Fault{EIO, 0};
  };
  log->request_flush();
  for (int i = 0; i < 300; ++i, now.us += 10'000) work();
  EXPECT_GE(tries, 3);
  EXPECT_LE(tries, 4);
  EXPECT_FALSE(log->sync().begun().ok());
  EXPECT_TRUE(log->wants_disk_work());
  storage.on_call = nullptr;
  now.us += 1'000'000;
  EXPECT_TRUE(work());
  EXPECT_EQ(log->durable_offset(), log->next_offset());
}

TEST_F(RequestFlushTest, IsNothingToALogInMemory) {
  RingLog ring({.capacity_bytes = limits::ring_bytes_min});
  auto batch = make_batch({"a"});
  ASSERT_EQ(ring.append(batch, now).outcome, AppendOutcome::appended);
  ring.request_flush();
  EXPECT_FALSE(ring.wants_disk_work());
  EXPECT_EQ(ring.take_disk_job(now), nullptr);
  EXPECT_EQ(ring.durable_offset(), Offset{0});
}

class RequestFlushBehindTest : public RequestFlushTest {
 protected:
  void open_behind() {
    behind.reset();
    open();
    ASSERT_NE(log, nullptr);
    behind = std::make_unique<WriteBehindLog>(write_behind, std::move(log));
  }
  AppendOutcome append_behind(std::vector<std::byte> batch) { return behind->append(batch, now).outcome; }
  bool work_behind() {
    const auto job = behind->take_disk_job(now);
    if (job == nullptr) return false;
    job->run();
    job->finish();
    return true;
  }

  WriteBehindOptions write_behind{.ring = {.capacity_bytes = 8 * limits::MiB}};
  std::unique_ptr<WriteBehindLog> behind;
};

TEST_F(RequestFlushBehindTest, WritesAllThatWaitsAndSyncsIt) {
  open_behind();
  for (int i = 0; i < 40; ++i) ASSERT_EQ(append_behind(make_batch_of(100'000)), AppendOutcome::appended);
  EXPECT_FALSE(work_behind());
  EXPECT_EQ(behind->written_offset(), Offset{0});
  behind->request_flush();
  EXPECT_TRUE(behind->wants_disk_work());
  EXPECT_TRUE(work_behind());
  EXPECT_EQ(behind->written_offset(), Offset{40});
  EXPECT_EQ(behind->durable_offset(), Offset{40});
  EXPECT_FALSE(behind->wants_disk_work());
  append_behind(make_batch({"not asked for"}));
  EXPECT_FALSE(work_behind());
  behind.reset();
  storage.power_cut([] { return false; });
  open_behind();
  EXPECT_EQ(behind->next_offset(), Offset{40});
}

TEST_F(RequestFlushBehindTest, WritesMessagesThatArrivedDuringAJobTogether) {
  open_behind();
  append_behind(make_batch({"a"}));
  behind->request_flush();
  auto job = behind->take_disk_job(now);
  ASSERT_NE(job, nullptr);
  for (const auto* text : {"b", "c"}) {
    append_behind(make_batch({text}));
    behind->request_flush();
    EXPECT_EQ(behind->take_disk_job(now), nullptr);
  }
  EXPECT_TRUE(behind->wants_disk_work());
  job->run();
  job->finish();
  job.reset();
  EXPECT_EQ(behind->durable_offset(), Offset{1});
  EXPECT_EQ(syncs_of([this] { EXPECT_TRUE(work_behind()); }), 1);
  EXPECT_EQ(behind->durable_offset(), Offset{3});
}

TEST_F(RequestFlushBehindTest, RetriesAFullDiskOnlyNowAndThenAndWritesWhenThereIsSpace) {
  storage.disk_bytes = 0;
  open_behind();
  append_behind(make_batch({"a"}));
  behind->request_flush();
  int tries = 0;
  storage.on_call = [&tries](FaultyStorage::Call call, const std::string&) {
    if (call == FaultyStorage::Call::open) ++tries;
    return FaultyStorage::Fault{};
  };
  EXPECT_FALSE(work_behind());
  const int first_tries = tries;
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(work_behind());
  EXPECT_EQ(tries, first_tries);
  EXPECT_TRUE(behind->wants_disk_work());
  storage.disk_bytes = 100 * limits::MiB;
  now.us += 100'000;
  behind->maintain(now);
  EXPECT_TRUE(work_behind());
  EXPECT_EQ(behind->durable_offset(), Offset{1});
  EXPECT_FALSE(behind->wants_disk_work());
}

}  // namespace
}  // namespace lightq::log
