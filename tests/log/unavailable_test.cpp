/// Tests that data which cannot be read now is not taken for damage. Any call may fail for any reason, once
/// or for a time. No message is skipped and nothing is changed. Everything can be read once the calls succeed
/// again.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <map>

#include "log/format/unnamed_segment.hpp"
#include "log/saved_state/cursor_file.hpp"
#include "log/tools/cursor_survey.hpp"
#include "log/tools/repair.hpp"
#include "support/log_fixture.hpp"

namespace lightq::test {
namespace {

using Call = FaultyStorage::Call;
using log::ReadOutcome;

class UnavailableTest : public LogFixture {
 protected:
  UnavailableTest() { options.segment_bytes = limits::segment_bytes_min; }
  static constexpr int shortages[] = {EMFILE, ENFILE, ENOMEM, EACCES, EIO};

  /// Appends 40 messages of 10,000 bytes, six in each segment, all sealed except the last. Opens the log
  /// again, so that nothing is mapped.
  void make_segments() {
    open();
    for (int i = 0; i < 40; ++i)
      ASSERT_EQ(append({std::to_string(i) + std::string(10'000, 'p')}), log::AppendOutcome::appended);
    ASSERT_TRUE(log->flush().ok());
    ASSERT_TRUE(storage.exists(segment_path(6)) && storage.exists(segment_path(12)));
    open();
  }
  /// Lets the next `times` calls of this kind on this file fail with `error`.
  void fail(Call call, const std::string& path, int error, int times = 1'000'000) {
    storage.on_call = [=](Call asked, const std::string& where) mutable {
      if (asked != call || where != path || times-- <= 0) return FaultyStorage::Fault{};
      return FaultyStorage::Fault{error, 0};
    };
  }
  void expect_all_is_there() {
    const auto messages = read_everything(*log);
    ASSERT_EQ(messages.size(), 40U);
    for (std::uint64_t i = 0; i < 40; ++i) EXPECT_EQ(messages[i].offset, Offset{i});
  }
  std::map<std::string, std::vector<std::byte>> files() {
    std::map<std::string, std::vector<std::byte>> all;
    for (const auto& path : storage.paths()) all[path] = storage.bytes_of(path);
    return all;
  }
};

TEST_F(UnavailableTest, AReadWaitsWhicheverCallFailsAndWhy) {
  make_segments();
  for (const Call call : {Call::open, Call::map, Call::read}) {
    for (const int error : shortages) {
      open();
      fail(call, segment_path(6), error);
      log::ReadPosition place{{7}};
      for (int again = 0; again < 3; ++again) {
        const auto looked = log->read_header(place);
        EXPECT_EQ(looked.outcome, ReadOutcome::unavailable);
        const auto read = log->read(place);
        ASSERT_EQ(read.outcome, ReadOutcome::unavailable);
        EXPECT_EQ(read.next, place.offset) << "nothing is passed over";
        EXPECT_EQ(log->last_error().system_error, error);
        EXPECT_NE(log->last_error().text().find(segment_path(6)), std::string::npos);
      }
      log::ReadPosition elsewhere{{20}};
      EXPECT_EQ(log->read(elsewhere).outcome, ReadOutcome::batch) << "the others can be read";
      storage.on_call = nullptr;
      const auto read = log->read(place);
      ASSERT_EQ(read.outcome, ReadOutcome::batch);
      EXPECT_EQ(read.batch.base_offset(), Offset{7});
      expect_all_is_there();
    }
  }
}

TEST_F(UnavailableTest, AFailureIsForgottenAtTheNextRead) {
  make_segments();
  for (const int error : shortages) {
    open();
    // After the first failure the log releases its own views and tries once more.
    fail(Call::open, segment_path(12), error, 1);
    expect_all_is_there();
    open();
    fail(Call::open, segment_path(12), error, 2);
    log::ReadPosition place{{12}};
    log::ReadPosition other{{0}};
    ASSERT_EQ(log->read(other).outcome, ReadOutcome::batch);
    EXPECT_EQ(log->read(place).outcome, ReadOutcome::unavailable);
    EXPECT_EQ(log->read(place).outcome, ReadOutcome::batch);
  }
}

TEST_F(UnavailableTest, AMissingOrUnusableFileIsDamage) {
  make_segments();
  for (const int error : {ENOENT, EINVAL}) {
    storage.on_call = nullptr;
    open();
    fail(error == ENOENT ? Call::open : Call::map, segment_path(6), error);
    log::ReadPosition place{{7}};
    const auto read = log->read(place);
    EXPECT_EQ(read.outcome, ReadOutcome::damaged);
    EXPECT_EQ(read.next, Offset{12});
  }
}

// The directory was renamed for a moment, or is on a disk that is not mounted.
TEST_F(UnavailableTest, AMissingDirectoryIsNotDamage) {
  make_segments();
  ASSERT_TRUE(storage.rename(directory, "/topics/away").ok());
  log::ReadPosition place{{7}};
  EXPECT_EQ(log->read_header(place).outcome, ReadOutcome::unavailable);
  const auto read = log->read(place);
  EXPECT_EQ(read.outcome, ReadOutcome::unavailable);
  EXPECT_EQ(read.next, Offset{7}) << "nothing is passed over";
  ASSERT_TRUE(storage.rename("/topics/away", directory).ok());
  expect_all_is_there();
}

TEST_F(UnavailableTest, OnlyUnavailableBytesMakeReadersWait) {
  make_segments();
  const std::uint64_t bad = log::segment_header_bytes + 2 * (64 + 4 + 10'001) + 5000;  // in message 8
  storage.on_read = [&](const std::string& path, std::uint64_t position, std::size_t bytes) {
    return path == segment_path(6) && position < bad + 1 && bad < position + bytes;
  };
  for (std::uint64_t offset = 6; offset < 12; ++offset) {
    log::ReadPosition place{{offset}};
    const auto read = log->read(place);
    EXPECT_EQ(read.outcome, offset == 8 ? ReadOutcome::unavailable : ReadOutcome::batch) << offset;
  }
  storage.on_read = nullptr;
  expect_all_is_there();
}

TEST_F(UnavailableTest, ALogWithUnavailableFilesDoesNotOpenAndIsNotChanged) {
  make_segments();
  log.reset();
  const auto before = files();
  for (const Call call : {Call::open, Call::read}) {
    for (const int error : shortages) {
      for (const std::uint64_t first : {0, 6, 36}) {
        fail(call, segment_path(first), error);
        const auto opened = log::SegmentLog::open(options, storage, *pool, now);
        ASSERT_FALSE(opened.ok()) << error << " at " << first;
        EXPECT_EQ(opened.error().code, ErrorCode::io_error);
        EXPECT_EQ(opened.error().system_error, error);
      }
    }
  }
  storage.on_call = nullptr;
  EXPECT_TRUE(files() == before);
  open();
  EXPECT_TRUE(log->recovery().clean()) << log->recovery().text();
  expect_all_is_there();
}

// The unreadable part is one that recovery must scan. Sound batches follow, so it could be mistaken for
// damage.
TEST_F(UnavailableTest, UnreadableSectorsOfAnUnsealedFileAreNotTheEnd) {
  open();
  for (int i = 0; i < 5; ++i)
    ASSERT_EQ(append({std::to_string(i) + std::string(5'000, 'p')}), log::AppendOutcome::appended);
  log.reset();
  const std::uint64_t bad = log::segment_header_bytes + 64 + 4 + 5'001 + 2000;
  storage.on_read = [&](const std::string&, std::uint64_t position, std::size_t bytes) {
    return position < bad + 1 && bad < position + bytes;
  };
  const auto opened = log::SegmentLog::open(options, storage, *pool, now);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().system_error, EIO);
  storage.on_read = nullptr;
  open();
  EXPECT_EQ(read_everything(*log).size(), 5U);
}

// The header never reached the disk, or was lost. The file is removed only if it is known to contain no
// batch.
TEST_F(UnavailableTest, AFileWithoutAHeaderStaysUntilItCanBeRead) {
  make_segments();
  log.reset();
  auto& bytes = storage.bytes_of(segment_path(36));
  const auto whole = bytes;
  std::fill_n(bytes.begin(), log::segment_header_bytes, std::byte{0});
  storage.on_read = [&](const std::string& path, std::uint64_t position, std::size_t) {
    return path == segment_path(36) && position >= log::segment_header_bytes;
  };
  EXPECT_EQ(log::SegmentLog::open(options, storage, *pool, now).error().system_error, EIO);
  storage.on_read = nullptr;
  ASSERT_TRUE(storage.exists(segment_path(36)));
  storage.bytes_of(segment_path(36)) = whole;
  open();
  expect_all_is_there();
}

TEST_F(UnavailableTest, ASegmentWithoutANameStaysUntilItCanBeRead) {
  make_segments();
  log.reset();
  const std::string unnamed = directory + "/" + log::next_prepared_name;
  ASSERT_TRUE(storage.rename(segment_path(36), unnamed).ok());
  for (const bool header : {true, false}) {
    storage.on_read = [&](const std::string& path, std::uint64_t position, std::size_t) {
      return path == unnamed && (header || position >= log::segment_header_bytes);
    };
    EXPECT_EQ(log::SegmentLog::open(options, storage, *pool, now).error().system_error, EIO);
    ASSERT_TRUE(storage.exists(unnamed));
  }
  storage.on_read = nullptr;
  open();
  expect_all_is_there();
}

class UnavailableCursorsTest : public UnavailableTest {
 protected:
  void write(std::uint64_t offset) {
    ASSERT_TRUE(cursors.write(log::CursorFile::encode({{"group:g", {offset}, {}}})).ok());
  }
  log::CursorFile cursors{storage, directory};
  const std::string slots[2] = {directory + "/cursors.0", directory + "/cursors.1"};
};

TEST_F(UnavailableCursorsTest, NoOlderCopyIsUsedIfTheNewerMayBeSound) {
  write(5);
  write(9);
  for (const std::string& slot : slots) {
    for (const Call call : {Call::open, Call::read}) {
      for (const int error : shortages) {
        fail(call, slot, error);
        log::CursorFile again(storage, directory);
        EXPECT_EQ(again.load().error().system_error, error);
        EXPECT_EQ(again.write(log::CursorFile::encode({})).error().system_error, error);
      }
    }
  }
  storage.on_call = nullptr;
  log::CursorFile again(storage, directory);
  EXPECT_EQ(again.load()->front().offset, Offset{9});
}

// A repair abandons data that the disk cannot read. It must not abandon data because this process lacks
// descriptors or memory.
TEST_F(UnavailableCursorsTest, ARepairStopsForAShortage) {
  make_segments();
  log.reset();
  write(5);
  write(9);
  storage.bytes_of(segment_path(6))[log::segment_header_bytes + 70] ^= std::byte{1};
  const auto before = files();
  for (const std::string& path : {slots[0], slots[1], segment_path(6), segment_path(12)}) {
    for (const int error : {EMFILE, ENFILE, ENOMEM, EACCES}) {
      fail(Call::open, path, error);
      const auto repaired = log::repair_in_place(directory, {}, storage);
      ASSERT_FALSE(repaired.ok()) << path;
      EXPECT_EQ(repaired.error().system_error, error);
    }
  }
  storage.on_call = nullptr;
  EXPECT_TRUE(files() == before);
  fail(Call::read, slots[1], EIO);
  const auto repaired = log::repair_in_place(directory, {}, storage);
  ASSERT_TRUE(repaired.ok()) << repaired.error().text();
  EXPECT_EQ(repaired->cursors, 1U) << "the other copy";
  EXPECT_EQ(repaired->lost_messages(), 1U);
}

}  // namespace
}  // namespace lightq::test
