/// Tests the parts of an open queue that hold its state: cursors, waiting writers, the packer of messages,
/// and the published offsets.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "log/saved_state/cursor_table_format.hpp"
#include "queue/cursor_registry.hpp"
#include "queue/group_commit.hpp"
#include "queue/message_packer.hpp"
#include "queue/queue_log.hpp"
#include "queue/room_waits.hpp"
#include "support/faulty_storage.hpp"

namespace lightq::queue {
namespace {

using namespace std::chrono_literals;

class CursorRegistryTest : public testing::Test {
 protected:
  void make_table() {
    auto made = log::CursorTable::make(storage, "/queue", 7);
    ASSERT_TRUE(made.ok()) << made.error().text();
    registry.set_table(std::move(*made));
  }
  log::TableCursor& make(const std::string& name, std::uint64_t committed) {
    registry.begin_making();
    auto created = registry.table()->create(name, {committed});
    EXPECT_TRUE(created.ok()) << created.error().text();
    registry.end_making(*created);
    return **created;
  }

  test::FaultyStorage storage;
  CursorRegistry registry;
};

TEST_F(CursorRegistryTest, KnowsTheLowestCommittedOffset) {
  EXPECT_FALSE(registry.committed_by_all().has_value()) << "without cursors nothing is committed";
  make_table();
  log::TableCursor& fast = make("fast", 120);
  log::TableCursor& slow = make("slow", 80);
  EXPECT_EQ(registry.committed_by_all(), Offset{80});
  slow.commit({150});
  EXPECT_EQ(registry.committed_by_all(), Offset{120});
  ASSERT_TRUE(registry.table()->remove("fast").ok());
  registry.note_removed(&fast);
  EXPECT_EQ(registry.committed_by_all(), Offset{150});
}

TEST_F(CursorRegistryTest, NothingIsCommittedWhileACursorIsBeingMade) {
  make_table();
  make("one", 80);
  registry.begin_making();
  registry.begin_making();
  EXPECT_EQ(registry.committed_by_all(), Offset{0});
  registry.end_making(nullptr);
  EXPECT_EQ(registry.committed_by_all(), Offset{0}) << "another one is still being made";
  registry.end_making(nullptr);
  EXPECT_EQ(registry.committed_by_all(), Offset{80});
}

TEST_F(CursorRegistryTest, NothingIsCommittedWhileACursorIsDamaged) {
  make_table();
  make("one", 80);
  make("two", 90);
  ASSERT_TRUE(registry.table()->flush().ok());
  auto& bytes = storage.bytes_of("/queue/cursors.table");
  const std::size_t second = log::cursor_block_position(1);
  ASSERT_LE(second + log::cursor_block_bytes, bytes.size());
  for (std::size_t i = 0; i < log::cursor_block_bytes; ++i) bytes[second + i] ^= std::byte{0x5A};
  auto opened = log::CursorTable::open(storage, "/queue", 7);
  ASSERT_TRUE(opened.ok()) << opened.error().text();
  ASSERT_EQ((*opened)->damaged().size(), 1U);
  CursorRegistry later;
  later.adopt(std::move(*opened));
  EXPECT_EQ(later.committed_by_all(), Offset{0}) << "its position may be anywhere";
  ASSERT_TRUE(later.table()->forget_damaged().ok());
  later.note_removed(nullptr);
  EXPECT_EQ(later.committed_by_all(), Offset{80});
}

TEST_F(CursorRegistryTest, ANameIsOpenOnce) {
  EXPECT_TRUE(registry.open("one"));
  EXPECT_FALSE(registry.open("one"));
  EXPECT_TRUE(registry.is_open("one"));
  registry.close("one");
  EXPECT_FALSE(registry.is_open("one"));
  registry.close("one");
  EXPECT_TRUE(registry.open("one"));
}

TEST(RoomWaitsTest, AWaitingWriterIsToldAboutSpace) {
  HandOffMutex mutex{[] {}};
  RoomWaits room;
  EXPECT_FALSE(room.is_wanted());
  std::optional<bool> came;
  std::thread writer([&] {
    QueueLock lock(mutex);
    room.begin();
    came = room.wait(lock, std::chrono::steady_clock::now() + 60s);
    room.end();
  });
  while (!room.is_wanted()) std::this_thread::yield();
  {
    const QueueLock lock(mutex);
  }  // the writer releases the lock only once it waits
  room.note_made();
  writer.join();
  EXPECT_EQ(came, true);
  EXPECT_FALSE(room.is_wanted());
}

TEST(RoomWaitsTest, AWaitEndsAtItsTime) {
  HandOffMutex mutex{[] {}};
  RoomWaits room;
  QueueLock lock(mutex);
  room.begin();
  EXPECT_FALSE(room.wait(lock, std::chrono::steady_clock::now()));
  EXPECT_TRUE(lock.owns_lock());
  room.end();
}

TEST(GroupCommitTest, SuitsManyWritersThatWaitForTheDiskButNotForSpace) {
  QueueOptions options;
  options.many_writers = true;
  EXPECT_FALSE(GroupCommit::suits(options));
  options.flush.each_append = true;
  EXPECT_TRUE(GroupCommit::suits(options));
  options.capacity_messages = 10;
  options.overflow = Overflow::block;
  EXPECT_FALSE(GroupCommit::suits(options)) << "one writer would wait for space on behalf of all";
  options.overflow = Overflow::reject;
  EXPECT_TRUE(GroupCommit::suits(options));
  options.many_writers = false;
  EXPECT_FALSE(GroupCommit::suits(options));
}

class QueuePartsTest : public testing::Test {
 protected:
  QueuePartsTest() {
    options.background = false;
    options.segment_bytes = limits::queue_segment_bytes_min;
  }
  void open() {
    log.emplace("/queue", options, storage);
    views.emplace(storage, 0);
    ASSERT_TRUE(log->open(*views).ok());
    log->note();
    packer.emplace(*log);
  }
  /// Opens a batch with space for `records` messages.
  void open_batch(std::uint64_t records) {
    const auto got = (*log)->room_in_place(1000, 4000);
    ASSERT_EQ(got.outcome, log::AppendOutcome::appended);
    packer->open(got.room, records);
  }

  test::FaultyStorage storage;
  QueueOptions options;
  std::optional<log::SegmentViews> views;
  std::optional<QueueLog> log;
  std::optional<MessagePacker> packer;
};

TEST_F(QueuePartsTest, ABatchTakesMessagesUntilItIsFull) {
  open();
  EXPECT_FALSE(packer->takes(1)) << "no batch is open";
  open_batch(3);
  for (std::uint64_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(packer->takes(5));
    EXPECT_EQ(packer->add(as_byte_view("hello")), Offset{i});
  }
  EXPECT_FALSE(packer->takes(5)) << "it has all its records";
  EXPECT_EQ((*log)->next_offset(), Offset{0});
  packer->close();
  EXPECT_FALSE(packer->is_open());
  EXPECT_EQ((*log)->next_offset(), Offset{3});
  open_batch(10);
  EXPECT_TRUE(packer->takes(3000));
  EXPECT_FALSE(packer->takes(4000)) << "the space is too small";
  packer->add(as_byte_view("x"));
  packer->close();
  EXPECT_EQ((*log)->next_offset(), Offset{4});
}

TEST_F(QueuePartsTest, WithoutAPulseEachMessageAsksTheClock) {
  open();
  EXPECT_EQ(packer->pulse(), nullptr);
  EXPECT_FALSE(packer->has_beat());
  open_batch(10);
  EXPECT_FALSE(packer->takes_at_once(5));
  EXPECT_TRUE(packer->takes(5));
  packer->add(as_byte_view("hello"));
  packer->close();
}

TEST_F(QueuePartsTest, PublishesTheFirstOffsetOnceMessagesAreDropped) {
  open();
  for (int i = 0; i < 2; ++i) {
    open_batch(10);
    packer->add(as_byte_view("hello"));
    packer->close();
    ASSERT_TRUE((*log)->end_segment().ok());
  }
  EXPECT_FALSE(log->note());
  (*log)->drop_before({1});
  EXPECT_EQ(log->first_offset(), Offset{0}) << "not published yet";
  EXPECT_TRUE(log->note());
  EXPECT_EQ(log->first_offset(), Offset{1});
  EXPECT_FALSE(log->note());
}

}  // namespace
}  // namespace lightq::queue
