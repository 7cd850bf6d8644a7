/// Tests that a durable store saves the state of consumers as it was at the call.
#include "store/durable_store.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <new>
#include <optional>
#include <stop_token>

#include "support/log_fixture.hpp"

namespace lightq::broker {
namespace {

class DurableStoreTest : public test::LogFixture, public StoreEvents {
 protected:
  DurableStoreTest() {
    open();
    auto consumers = std::make_unique<log::CursorFile>(storage, directory);
    store = std::make_unique<FileStore>(
        std::move(log),
        StateFiles{directory, std::move(consumers), log::SlotFile(storage, directory, "unused", {})}, disk,
        loop);
    store->report_to(*this);
  }

  void on_durable() override {}
  void on_readable() override {}
  void on_health() override {}
  void on_saved(StoredState what, const Result<void>& result) override {
    if (what == StoredState::producers) return producers_saved.set_value();
    saved = result;
    encoding_us = store->consumers_encoding_us();
    stop.request_stop();
  }
  /// Runs the loop until a save has ended.
  void run() {
    stop = {};
    loop.run(stop.get_token());
  }
  Result<std::vector<log::NamedCursor>> load() { return log::CursorFile(storage, directory).load(); }

  EventLoop loop;
  DiskThread disk;
  std::stop_source stop;
  std::unique_ptr<FileStore> store;
  std::optional<Result<void>> saved;
  std::promise<void> producers_saved;
  std::int64_t encoding_us = -1;
};

/// Returns a cursor of which every second message is unfinished.
log::NamedCursor cursor_with_holes(std::uint64_t messages) {
  log::NamedCursor cursor{"group:g", {0}, {{2 * messages}, {}}};
  for (std::uint64_t i = 0; i < messages; ++i) cursor.unfinished.messages.add({{2 * i}, {2 * i + 1}});
  return cursor;
}

TEST_F(DurableStoreTest, SavesTheCursorsAsTheyWereAtTheCall) {
  EXPECT_EQ(store->consumers_encoding_us(), 0);
  TopicStore::Cursors cursors = {cursor_with_holes(20'000)};
  const TopicStore::Cursors before = cursors;
  store->save_consumers([cursors] { return cursors; });
  // The reactor goes on while the disk's thread encodes.
  for (std::uint64_t i = 0; i < 20'000; i += 3) cursors[0].unfinished.messages.remove({{2 * i}, {2 * i + 1}});
  run();
  ASSERT_TRUE(saved.has_value() && saved->ok());
  EXPECT_GT(encoding_us, 0);
  const auto loaded = load();
  ASSERT_TRUE(loaded.ok()) << loaded.error().text();
  EXPECT_EQ(*loaded, before);
  store->save_consumers([cursors] { return cursors; });
  run();
  EXPECT_EQ(*load(), cursors);
}

TEST_F(DurableStoreTest, EncodingKeepsNoOtherJobFromTheDisk) {
  std::shared_future<void> others_go_on = producers_saved.get_future();
  bool waited = true;
  store->save_consumers([&, others_go_on] {
    waited = others_go_on.wait_for(std::chrono::seconds(30)) != std::future_status::ready;
    return TopicStore::Cursors{{"group:g", {1}}};
  });
  store->save_producers({std::vector<std::byte>(log::SlotBytes::header_bytes)});
  run();
  EXPECT_FALSE(waited) << "the producers are saved while the cursors are encoded";
  ASSERT_TRUE(saved.has_value() && saved->ok());
}

TEST_F(DurableStoreTest, ALackOfMemoryFailsTheSaveOnly) {
  const TopicStore::MakeCursors too_large = []() -> TopicStore::Cursors { throw std::bad_alloc(); };
  store->save_consumers(too_large);
  run();
  ASSERT_TRUE(saved.has_value() && !saved->ok());
  EXPECT_EQ(saved->error().code, ErrorCode::limit_reached);
  EXPECT_FALSE(store->save_consumers_now(too_large).ok());
  const TopicStore::Cursors cursors = {{"group:g", {1}}};
  store->save_consumers([cursors] { return cursors; });
  run();
  ASSERT_TRUE(saved.has_value() && saved->ok());
  EXPECT_EQ(*load(), cursors);
}

TEST_F(DurableStoreTest, ReportsAFailedSaveAndKeepsTheStateBefore) {
  const TopicStore::Cursors cursors = {{"group:g", {1}}};
  store->save_consumers([cursors] { return cursors; });
  run();
  storage.on_call = [](test::FaultyStorage::Call call, const std::string&) {
    return test::FaultyStorage::Fault{call == test::FaultyStorage::Call::write ? EIO : 0, 0};
  };
  store->save_consumers([] { return TopicStore::Cursors{cursor_with_holes(3)}; });
  run();
  storage.on_call = nullptr;
  ASSERT_TRUE(saved.has_value() && !saved->ok());
  EXPECT_EQ(saved->error().code, ErrorCode::io_error);
  EXPECT_EQ(*load(), cursors);
}

}  // namespace
}  // namespace lightq::broker
