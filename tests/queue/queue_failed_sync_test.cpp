/// Tests an embedded queue on a disk that cannot sync: which callers receive the error, and which operations
/// still work.
#include <atomic>

#include "queue/queue_on_faulty_disk.hpp"

namespace lightq::test {
namespace {

TEST_F(QueueOnFaultyDisk, AFailedSyncRefusesEveryLaterConfirmUntilReopened) {
  const QueueOptions options{.flush = FlushPolicy::every_bytes(limits::MiB)};
  open_engine(options);
  ASSERT_TRUE(enqueue("0").ok());
  ASSERT_TRUE(engine->flush().ok());
  ASSERT_TRUE(enqueue("1").ok());
  std::vector<bool> told;
  const auto tell = [&](const Result<void>& result) { told.push_back(result.ok()); };
  engine->on_durable(Offset{2}, tell);
  storage.on_call = [](FaultyStorage::Call call, const std::string&) {
    return FaultyStorage::Fault{call == FaultyStorage::Call::sync ? EIO : 0, 0};
  };
  EXPECT_EQ(ErrorCode::io_error, engine->flush().error().code);
  storage.on_call = nullptr;  // one failure is enough: the system may have dropped the pages
  EXPECT_EQ(ErrorCode::io_error, engine->flush().error().code);
  EXPECT_EQ(ErrorCode::io_error, engine->wait_durable(Offset{2}, 10s).error().code);
  engine->on_durable(Offset{2}, tell);
  EXPECT_EQ(std::vector<bool>({false, false}), told);
  ASSERT_TRUE(enqueue("2").ok()) << "appends go on";
  EXPECT_EQ(Offset{1}, engine->durable_offset());
  EXPECT_EQ(std::vector<std::string>({"0", "1", "2"}), read_all());
  EXPECT_EQ(ErrorCode::io_error, engine->close().error().code);
  open_engine(options);
  EXPECT_FALSE(engine->recovery().clean);
  EXPECT_EQ(Offset{3}, engine->durable_offset());
  EXPECT_TRUE(engine->flush().ok());
  EXPECT_EQ(std::vector<std::string>({"0", "1", "2"}), read_all());
}

class QueueOnADiskThatCannotSync : public QueueOnFaultyDisk {
 protected:
  QueueOnADiskThatCannotSync() {
    storage.on_call = [this](FaultyStorage::Call call, const std::string&) {
      const bool leaves = call == FaultyStorage::Call::rename || call == FaultyStorage::Call::unlink;
      const bool fails = (leaves && files_stay) || (call == FaultyStorage::Call::sync && syncs_fail);
      return FaultyStorage::Fault{fails ? EIO : 0, 0};
    };
  }
  ~QueueOnADiskThatCannotSync() override { engine.reset(); }
  /// Registers a callback for an offset that never becomes durable.
  void wait_for_all() {
    engine->on_durable(engine->next_offset(), [this](const Result<void>& result) {
      if (!result && result.error().code == ErrorCode::io_error) ++told_;
    });
  }
  [[nodiscard]] bool hears_of_it() {
    return eventually([&] { return told_ == 1; });
  }

  std::atomic<bool> syncs_fail = false;
  std::atomic<bool> files_stay = false;  // lets no file be renamed or removed

 private:
  std::atomic<int> told_ = 0;
};

// No background job did the failed sync, and none is to follow. The callback must not wait until the queue is
// closed.
TEST_F(QueueOnADiskThatCannotSync, AWaitingAppendReportsAFailedSyncOfANewCursor) {
  open_engine({});
  ASSERT_TRUE(enqueue("x").ok());
  wait_for_all();
  syncs_fail = true;
  EXPECT_EQ(ErrorCode::io_error, engine->take_cursor("c", Start::first()).error().code);
  EXPECT_TRUE(hears_of_it());
}

TEST_F(QueueOnADiskThatCannotSync, AWaitingAppendReportsAFailedSyncOfTheBackgroundThread) {
  open_engine({.background = true});
  ASSERT_TRUE(enqueue("x").ok());
  ASSERT_TRUE(eventually([&] { return storage.exists(directory + "/next.prepared"); })) << "its last job";
  wait_for_all();
  syncs_fail = true;
  EXPECT_EQ(ErrorCode::io_error, engine->take_cursor("c", Start::first()).error().code);
  EXPECT_TRUE(hears_of_it());
}

TEST_F(QueueOnADiskThatCannotSync, AWaitingAppendReportsAFailedSyncThatFreesSpace) {
  open_engine({.segment_bytes = 4 * limits::KiB});
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(enqueue(text_of(500, 1)).ok());
  wait_for_all();
  // The dropped files cannot be removed, and the disk is then full.
  files_stay = true;
  ASSERT_TRUE(engine->trim(engine->next_offset()).ok());
  files_stay = false;
  storage.disk_bytes = 1;
  syncs_fail = true;
  while (enqueue(text_of(500, 1))) {
  }
  EXPECT_TRUE(hears_of_it());
  EXPECT_EQ(ErrorCode::io_error, engine->flush().error().code) << "not that the disk is full";
}

TEST_F(QueueOnFaultyDisk, EachAppendIsRefusedOnceASyncHasFailed) {
  open_engine({.flush = FlushPolicy::every_append()});
  ASSERT_TRUE(enqueue("0").ok());
  storage.on_call = [](FaultyStorage::Call call, const std::string&) {
    return FaultyStorage::Fault{call == FaultyStorage::Call::sync ? EIO : 0, 0};
  };
  EXPECT_EQ(ErrorCode::io_error, enqueue("may be there").error().code);
  const Offset next = engine->next_offset();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ErrorCode::io_error, enqueue("is not there").error().code);
  EXPECT_EQ(next, engine->next_offset());
  storage.on_call = nullptr;
}

}  // namespace
}  // namespace lightq::test
