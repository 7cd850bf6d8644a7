/// Repeats each defect that the explorer has found, in as few steps as possible. Comments describe the code
/// before its correction.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <utility>

#include "explorer/checkpoint_distances.hpp"
#include "explorer/log_client.hpp"
#include "explorer/planted_rests.hpp"
#include "explorer/queue_client.hpp"
#include "queue/reader_state.hpp"

namespace lightq::test {
namespace {

class FoundDefectsTest : public testing::Test {
 protected:
  FoundDefectsTest() {
    EXPECT_TRUE(disk.make_directory("/topics").ok());
    disk.settle();
  }
  ~FoundDefectsTest() override { EXPECT_EQ(client.violation.value_or(""), ""); }

  /// Kills the process in the middle of a commit, before its sync.
  void kill_in_a_commit(std::uint64_t offset) {
    disk.on_call = [](ExplorerStorage::Call call, const std::string&) {
      if (call == ExplorerStorage::Call::sync) throw ProcessKilled{};
      return ExplorerStorage::Fault{};
    };
    EXPECT_THROW(client.commit(offset), ProcessKilled);
    disk.on_call = nullptr;
    client.open(Ending::kill);
  }

  /// Cuts the power. Only the unsynced writes of this sector survive; 0: none survive.
  void cut_power(std::uint32_t sector = 0) {
    client.close();
    ExplorerStorage& before = client.storage();
    ExplorerStorage& next = &before == &disk ? after : disk;
    const std::vector<CutAtom> atoms = before.atoms();
    Cut cut;
    for (const CutAtom& atom : atoms) {
      cut.push_back(static_cast<std::uint8_t>(atom.sector == sector && sector != 0 ? atom.versions - 1 : 0));
    }
    next.become(before, atoms, cut);
    client.move_to(next);
    client.open(Ending::power_cut);
  }

  /// Kills the process when it syncs a directory.
  void kill_in_a_flush() {
    disk.on_call = [](ExplorerStorage::Call call, const std::string&) {
      if (call == ExplorerStorage::Call::sync_directory) throw ProcessKilled{};
      return ExplorerStorage::Fault{};
    };
    EXPECT_THROW(client.flush(), ProcessKilled);
    disk.on_call = nullptr;
    client.open(Ending::kill);
  }

  ExplorerWorld world;
  Payloads payloads;
  ExplorerStorage disk{world};
  ExplorerStorage after{world};
  LogClient client{disk, payloads};
};

// The process that made the directory was killed before it could sync the directory's own name. The next
// process found segments and took the directory for durable.
TEST_F(FoundDefectsTest, OpeningSyncsTheDirectorysOwnName) {
  client.open(Ending::kill);
  client.append({10});
  client.open(Ending::kill);
  EXPECT_EQ(client.log()->durable_offset(), Offset{1});
  cut_power();
  EXPECT_EQ(client.history.end(), Offset{1});
}

TEST_F(FoundDefectsTest, ACursorWrittenBeforeTheFirstMessageSurvivesWithItsDirectory) {
  client.open(Ending::kill);
  EXPECT_TRUE(client.commit(0));
  cut_power();
}

// A cursor file left by a killed process may exist in memory only. The other file is then the last one on
// disk, and must not be overwritten before the newer one is synced.
TEST_F(FoundDefectsTest, TheLastCursorOnDiskIsNotOverwrittenAfterAKill) {
  client.open(Ending::kill);
  EXPECT_TRUE(client.commit(1));
  EXPECT_TRUE(client.commit(2));
  kill_in_a_commit(3);
  disk.on_step = [this] {
    for (const std::uint32_t survivor : {0U, 1U}) {
      const std::vector<CutAtom> atoms = disk.atoms();
      Cut cut;
      for (const CutAtom& atom : atoms)
        cut.push_back(atom.sector == survivor ? std::uint8_t{1} : std::uint8_t{0});
      after.become(disk, atoms, cut);
      EXPECT_TRUE(log::CursorFile(after, LogClient::directory).load().ok()) << "only sector " << survivor;
    }
  };
  EXPECT_TRUE(client.commit(4));
  disk.on_step = nullptr;
}

// Two appends were under way. Nothing of the first reached the disk. The second was complete except for the
// 16 bytes in its first sector, which contain only sizes and the offset. In the next life two appends of the
// same sizes lost their last sector. Their 16 bytes completed the rest of the earlier message.
TEST_F(FoundDefectsTest, RemainsOfALaterAppendAreNotCompletedEither) {
  const auto in_a_batch = [](std::size_t bytes) { return bytes - 68; };
  client.open(Ending::kill);
  client.append({in_a_batch(512)});
  client.flush();
  for (const std::uint32_t survivor : {10U, 9U}) {
    client.now.us += 1000;
    client.append({in_a_batch(512 - 16)});
    client.append({100});
    cut_power(survivor);
  }
  EXPECT_EQ(client.history.end(), Offset{2});
}

// The log wrote a new header to a file without one, but with an incarnation that it did not keep. The next
// cursor table then belonged to another log, and the queue could not be opened any more.
TEST_F(FoundDefectsTest, SettlingGivesALogOfUnreadableFilesAnIdentity) {
  client.open(Ending::kill);
  client.append({100});
  client.close();
  const std::string path = std::string(LogClient::directory) + "/" + log::segment_name({0});
  std::ranges::fill(disk.bytes_of(path).first(log::segment_header_bytes), std::byte{0});
  log::SegmentPool pool({LogClient::pool_directory}, disk);
  std::uint64_t incarnation = 0;
  {
    const auto opened = log::SegmentLog::open(client.options, disk, pool, client.now);
    ASSERT_TRUE(opened.ok());
    EXPECT_TRUE((*opened)->settle().ok());
    incarnation = (*opened)->incarnation();
  }
  const auto again = log::SegmentLog::open(client.options, disk, pool, client.now);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ((*again)->incarnation(), incarnation);
}

// A power cut took messages that a cursor had committed. The cursor was clamped, but only in memory. The next
// power cut restored its old position, past messages that were never delivered.
TEST(FoundInQueueTest, AClampedCursorStaysAtTheEnd) {
  ExplorerWorld world;
  Payloads payloads;
  ExplorerStorage disk(world);
  ExplorerStorage after(world);
  ASSERT_TRUE(disk.make_directory("/queues").ok());
  disk.settle();
  QueueClient client(disk, payloads);
  client.options.flush = FlushPolicy::every_messages(4);
  client.options.drop_committed = false;
  client.open(Ending::kill);
  for (int i = 0; i < 4; ++i) client.enqueue(50);
  client.commit(0, 0);
  client.enqueue(50);
  client.commit(0, 5);
  for (ExplorerStorage* next : {&after, &disk}) {
    client.die();
    const std::vector<CutAtom> atoms = client.storage().atoms();
    Cut cut;
    for (const CutAtom& atom : atoms) {
      const bool survives = client.storage().describe(atom).ends_with("cursors.table") && next == &after;
      cut.push_back(static_cast<std::uint8_t>(survives ? atom.versions - 1 : 0));
    }
    next->become(client.storage(), atoms, cut);
    client.move_to(*next);
    client.open(Ending::power_cut);
    if (next == &after) {
      EXPECT_EQ(client.cursors[0].last, 4);
    }
    for (int i = 0; i < 4; ++i) client.enqueue(50);
  }
  EXPECT_EQ(client.violation.value_or(""), "");
}

/// A queue with a cursor, on a disk that is damaged or fails.
class FoundInCursorsTest : public testing::Test {
 protected:
  FoundInCursorsTest() {
    EXPECT_TRUE(disk.make_directory("/queues").ok());
    disk.settle();
    client.options.flush = FlushPolicy::every_append();
    client.options.segment_bytes = limits::queue_segment_bytes_min;
    client.options.recycled_files_max = 0;
  }

  using Call = ExplorerStorage::Call;

  /// Fails the `number`th of the next calls of this kind on `path`, or kills the process there if `kill`.
  void at_call(Call kind, const std::string& path, int number, bool kill) {
    disk.on_call = [=, left = number](Call call, const std::string& of) mutable {
      const bool now = call == kind && of.ends_with(path) && --left == 0;
      if (now && kill) throw ProcessKilled{};
      return ExplorerStorage::Fault{now ? EIO : 0, 0};
    };
  }

  /// Cuts the power. Nothing unsynced survives.
  void cut_power() {
    client.die();
    disk.on_call = nullptr;
    const std::vector<CutAtom> atoms = disk.atoms();
    after.become(disk, atoms, Cut(atoms.size(), 0));
    client.move_to(after);
    client.open(Ending::power_cut);
  }

  [[nodiscard]] Result<std::unique_ptr<queue::Engine>> open() {
    return queue::Engine::open(QueueClient::directory, client.options, disk, log::DirectoryLock{});
  }

  /// Makes three segments with a message each, and a cursor at the beginning of the second.
  void make_segments() {
    client.options.drop_committed = false;
    client.open(Ending::kill);
    for (int i = 0; i < 3; ++i) client.enqueue(3000);
    client.commit(0, 1);
    client.close();
    client.options.drop_committed = true;
    EXPECT_EQ(client.violation.value_or(""), "");
  }
  [[nodiscard]] std::span<std::byte> segment(std::uint64_t offset) {
    return disk.bytes_of(std::string(QueueClient::directory) + "/" + log::segment_name({offset}));
  }

  ExplorerWorld world;
  Payloads payloads;
  ExplorerStorage disk{world};
  ExplorerStorage after{world};
  QueueClient client{disk, payloads};
};

// The segment had lost its messages, so it was dropped together with those before it. The cursor's reader
// received no error.
TEST_F(FoundInCursorsTest, ASegmentThatHasLostItsMessagesStaysUntilTheCursorIsPastThem) {
  make_segments();
  std::ranges::fill(segment(1).subspan(log::segment_seal_position), std::byte{0});
  const auto engine = open();
  ASSERT_TRUE(engine.ok());
  EXPECT_EQ((*engine)->first_offset(), Offset{1});
  queue::ReaderState reader(**engine);
  reader.place({1});
  const auto taken = reader.take(1);
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code, ErrorCode::corrupt);
  EXPECT_EQ(reader.position(), Offset{2});
}

// The last segment with a sound header was dropped, and the remaining ones had lost their headers. The next
// process took the directory for another log than that of its cursors, and refused to open it.
TEST_F(FoundInCursorsTest, TheLastFileWithTheLogsIdentityStaysUntilAnotherHasIt) {
  make_segments();
  std::ranges::fill(segment(1).first(log::segment_header_bytes), std::byte{0});
  std::ranges::fill(segment(2).first(log::segment_header_bytes), std::byte{0});
  {
    auto engine = open();
    ASSERT_TRUE(engine.ok());
    at_call(Call::rename, ".prepared", 1, true);
    BatchBuilder builder;
    builder.add(as_byte_view("more"));
    (*engine)->maintain();
    EXPECT_THROW(static_cast<void>((*engine)->append(builder.finish())), ProcessKilled);
    disk.kill([&] { engine->reset(); });
    disk.on_call = nullptr;
  }
  const auto again = open();
  EXPECT_TRUE(again.ok()) << again.error().text();
}

// The cursor's name was in memory only, because a sync had failed. The next process took the name for
// durable, and its flush returned success.
TEST_F(FoundInCursorsTest, ACursorThatCouldNotBeCreatedIsNotFoundByTheNextProcess) {
  client.open(Ending::kill);
  client.enqueue(10);
  client.commit(0, 0);
  client.calls_fail = true;
  at_call(Call::sync, "cursors.table", 2, false);
  client.commit(1, 0);
  EXPECT_FALSE(client.has_cursor(1));
  disk.on_call = nullptr;
  client.open(Ending::kill);
  client.flush();
  cut_power();
  EXPECT_EQ(client.violation.value_or(""), "");
}

// The process that made the table was killed before it could sync the directory.
TEST_F(FoundInCursorsTest, ACursorIsDurableWithTheNameOfItsTable) {
  client.options.flush = FlushPolicy::none();  // opening syncs nothing
  client.open(Ending::kill);
  client.enqueue(10);
  disk.on_call = [this](Call call, const std::string&) {
    const bool made = disk.exists(std::string(QueueClient::directory) + "/cursors.table");
    if (call == Call::sync_directory && made) throw ProcessKilled{};
    return ExplorerStorage::Fault{};
  };
  EXPECT_THROW(client.commit(0, 1), ProcessKilled);
  disk.on_call = nullptr;
  client.open(Ending::kill);
  client.commit(0, 1);
  cut_power();
  EXPECT_TRUE(client.cursors[0].certain);
  EXPECT_EQ(client.violation.value_or(""), "");
}

// The position of a new cursor was determined. While the cursor's name was being written to disk, another
// cursor committed, and the messages at that position were dropped.
TEST_F(FoundInCursorsTest, NothingIsDroppedDuringTheCreationOfACursor) {
  make_segments();
  client.open(Ending::kill);
  const Offset first = client.history.first;
  client.commit(0, 1);
  bool meanwhile = false;
  disk.on_step = [&] {
    if (std::exchange(meanwhile, true)) return;
    client.commit(0, 3);
  };
  client.commit(1, first.value);
  disk.on_step = nullptr;
  EXPECT_TRUE(meanwhile);
  client.note_first();
  EXPECT_EQ(client.history.first, first);
  client.die();
}

/// A log that is written through a mapping, with checkpoints every few messages.
class FoundInMappedTest : public FoundDefectsTest {
 protected:
  FoundInMappedTest() {
    client.options.mapped_writes = true;
    client.options.segment_bytes = 16'384;
    client.open(Ending::kill);
  }

 private:
  CheckpointDistances checkpoints_{1000, 500};
};

// A checkpoint that is valid only in its boot recorded how far the writer writes. After a power cut, recovery
// read only as far as the previous checkpoint, although a flush had made later messages durable.
TEST_F(FoundInMappedTest, DurableMessagesBehindAReservationOfAnotherBootAreFound) {
  log::checkpoint_interval_bytes = 100'000;  // so that a sync writes no checkpoint
  for (int i = 0; i < 20; ++i) client.append({150});
  EXPECT_TRUE(client.flush());
  cut_power();
  EXPECT_EQ(client.history.end(), Offset{20});
}

// A newer checkpoint of the lost boot had replaced the checkpoint that removed the clean mark. The older
// checkpoint with the clean mark was still in the other slot.
TEST_F(FoundInMappedTest, ALogThatWentOnIsNotTakenForClosedAfterAPowerCut) {
  for (const std::uint32_t survivor : {1U, 2U}) {
    client.append({150});
    EXPECT_TRUE(client.close_log());
    for (int i = 0; i < 20; ++i) client.append({150});
    cut_power(survivor);
    EXPECT_FALSE(client.log()->recovery().closed);
  }
}

// A permanent seal was written before the file's name was on disk. The next process took the file for
// durable.
TEST_F(FoundInMappedTest, ASealDoesNotCountIfTheFilesNameIsNotOnDisk) {
  client.options.segment_bytes = 8192;
  client.open(Ending::kill);
  for (int i = 0; i < 4; ++i) client.append({2000});
  kill_in_a_flush();
  cut_power();
}

// The seals that closing had written were lost. All messages were on disk, but durable_offset was lower.
TEST_F(FoundDefectsTest, AClosedLogIsDurableToItsEndWithoutItsSeals) {
  client.open(Ending::kill);
  for (int i = 0; i < 4; ++i) client.append({2000});
  EXPECT_TRUE(client.close_log());
  cut_power();
  EXPECT_TRUE(client.log()->recovery().closed);
  EXPECT_EQ(client.log()->durable_offset(), Offset{4});
}

// The end of such a file was computed to lie before its beginning, so 2^64 bytes were reported as cut.
TEST_F(FoundDefectsTest, AFileShorterThanItsFirstPageIsNotCut) {
  client.open(Ending::kill);
  client.append({3000});
  client.append({3000});
  client.close();
  disk.resize(std::string(LogClient::directory) + "/" + log::segment_name({0}), log::segment_seal_position);
  log::SegmentPool pool({LogClient::pool_directory}, disk);
  const auto opened = log::SegmentLog::open(client.options, disk, pool, client.now);
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ((*opened)->recovery().bytes_cut, 0);
  EXPECT_EQ((*opened)->recovery().damaged_messages, 1);
}

// These two are not defects that were found. They show that such a defect would be.
TEST(PlantedRests, MessagesUnderAnEpochUndoneByAPowerCutAreIgnored) {
  std::uint64_t cases = 0;
  EXPECT_EQ(use_file_with_undone_header(cases), std::nullopt);
  EXPECT_EQ(cases, 2U);
}

TEST(PlantedRests, AMessageInAnotherLogsFileIsIgnored) {
  std::uint64_t cases = 0;
  EXPECT_EQ(use_file_with_forged_batch(cases), std::nullopt);
  EXPECT_EQ(cases, 1U);
}

}  // namespace
}  // namespace lightq::test
