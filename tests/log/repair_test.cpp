/// Tests making a sound log out of a broken one.
#include "log/tools/repair.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>

#include "log/saved_state/cursor_file.hpp"
#include "support/golden_files.hpp"
#include "support/tool_fixture.hpp"

namespace lightq::test {
namespace {

using Call = FaultyStorage::Call;

class RepairTest : public ToolFixture {
 protected:
  /// Repairs into /new. Checks that the result is sound and contains only messages that were written.
  log::RepairReport repair(bool trust_batches = false) {
    const auto report = log::repair_to(directory, "/new", {trust_batches}, storage);
    EXPECT_TRUE(report.ok()) << report.error().text();
    if (!report) return {};
    check_sound("/new");
    return *report;
  }
  void check_sound(const std::string& where) {
    Keeper keeper;
    EXPECT_EQ(inspect(keeper, where).damages, 0U) << keeper.text();
    saved = keeper.messages;
    EXPECT_EQ(read_back(where), saved);
    for (const auto& [offset, payload] : saved) EXPECT_EQ(payload, written.at(offset)) << offset;
  }
  [[nodiscard]] Messages without(std::uint64_t first, std::uint64_t next) const {
    Messages rest = written;
    rest.erase(rest.lower_bound(first), rest.lower_bound(next));
    return rest;
  }

  Messages saved;
};

/// Tests the producer files of a topic. A repair in place does not change them if they are sound.
class RepairOfProducers : public RepairTest {
 protected:
  RepairOfProducers() {
    fill(10);
    EXPECT_TRUE(log->close().ok());
    put(directory + "/producers.0", golden_file("producers.v1"));
    put(directory + "/producers.1", golden_file("producers.v2"));
  }
  log::RepairReport replace() {
    const auto report = log::repair_in_place(directory, {}, storage);
    EXPECT_TRUE(report.ok()) << report.error().text();
    Keeper keeper;
    EXPECT_EQ(inspect(keeper).damages, 0U) << keeper.text();
    EXPECT_TRUE(keeper.findings.empty()) << keeper.text();
    EXPECT_EQ(keeper.messages, written);
    return report ? *report : log::RepairReport{};
  }
};

TEST_F(RepairOfProducers, LeavesSoundFilesUnchanged) {
  Keeper keeper;
  EXPECT_EQ(inspect(keeper).producers, 3U) << keeper.text();
  const auto before = all_below("");
  EXPECT_EQ(replace().moved_to, "");
  EXPECT_EQ(all_below(""), before);
}

TEST_F(RepairOfProducers, MovesATornOneAwayAndKeepsTheOther) {
  flip(directory + "/producers.1", 60);
  const auto torn = storage.bytes_of(directory + "/producers.1");
  const auto other = storage.bytes_of(directory + "/producers.0");
  Keeper keeper;
  EXPECT_EQ(inspect(keeper).damages, 0U) << keeper.text();
  ASSERT_EQ(keeper.of(Kind::torn).size(), 1U) << keeper.text();
  const auto report = replace();
  EXPECT_EQ(report.producers_lost, "");
  EXPECT_EQ(storage.bytes_of(report.moved_to + "/producers.1"), torn);
  EXPECT_EQ(storage.bytes_of(directory + "/producers.0"), other);
  EXPECT_FALSE(log::may_exist(directory + "/producers.1", storage));
}

TEST_F(RepairOfProducers, MovesDamagedFilesAwayAndReportsThemLost) {
  flip(directory + "/producers.0", 60);
  flip(directory + "/producers.1", 0);  // a magic that no version of a producer file has
  Keeper keeper;
  EXPECT_EQ(inspect(keeper).damages, 1U) << keeper.text();
  ASSERT_EQ(keeper.of(Kind::producers).size(), 1U) << keeper.text();
  const auto report = replace();
  EXPECT_NE(report.producers_lost.find("producers."), std::string::npos) << report.producers_lost;
  for (const std::string name : {"/producers.0", "/producers.1"}) {
    EXPECT_TRUE(log::may_exist(report.moved_to + name, storage));
    EXPECT_FALSE(log::may_exist(directory + name, storage));
  }
  EXPECT_EQ(replace().moved_to, "");
}

// If any byte of the file is changed, a broker must not accept it as a sound producer file.
TEST_F(RepairOfProducers, EveryFlippedBitIsFound) {
  auto& bytes = storage.bytes_of(directory + "/producers.1");
  for (std::size_t position = 0; position < bytes.size(); ++position) {
    bytes[position] ^= std::byte{1};
    Keeper keeper;
    inspect(keeper);
    EXPECT_EQ(keeper.of(Kind::torn).size(), 1U) << "position " << position << ": " << keeper.text();
    bytes[position] ^= std::byte{1};
  }
}

TEST_F(RepairTest, CopiesASoundLogByteForByte) {
  fill(100);
  const auto before = all_below(directory);
  const auto report = repair();
  EXPECT_EQ(saved, written);
  EXPECT_EQ(report.lost_messages(), 0U);
  EXPECT_EQ(report.next_offset, Offset{100});
  EXPECT_EQ(all_below(directory), before);
}

TEST_F(RepairTest, RecordsAGapForADamagedBatchAndKeepsEveryOtherMessage) {
  fill(100);
  flip(segment_path(segments()[1]), log::segment_header_bytes + 64 + 5 * 3004 + 200);  // the second batch
  const auto report = repair();
  ASSERT_EQ(report.lost.size(), 1U);
  const auto [first, next] = report.lost[0];
  EXPECT_EQ(first, Offset{segments()[1] + 5});
  EXPECT_EQ(next, Offset{segments()[1] + 10});
  EXPECT_EQ(saved, without(first.value, next.value));
  EXPECT_EQ(reopened_next, Offset{100});
  // Gaps that the log already states are not reported again.
  const auto again = log::repair_to("/new", "/newer", {}, storage);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->lost_messages(), 0U);
}

TEST_F(RepairTest, KeepsTheNextOffsetIfTheEndIsLost) {
  fill(100);
  const auto found = segments();
  const std::uint64_t last = found.back();
  storage.bytes_of(segment_path(last)).assign(limits::segment_bytes_min, std::byte{0x11});
  const auto report = repair();
  EXPECT_EQ(saved, without(last, 100));
  EXPECT_LT(Offset{last}, reopened_next);  // all that is known is that there was at least one message
  EXPECT_EQ(report.next_offset, reopened_next);
}

TEST_F(RepairTest, KeepsTheNextOffsetIfTheLastBatchOfASealedEndIsLost) {
  fill(100);
  ASSERT_TRUE(storage.unlink(segment_path(segments().back())).ok());
  const std::uint64_t last = segments().back();
  const std::uint64_t end = last + 20;
  flip(segment_path(last), log::segment_header_bytes + 3 * (64 + 5 * 3004) + 500);
  const auto report = repair();
  EXPECT_EQ(report.next_offset, Offset{end});
  EXPECT_EQ(reopened_next, Offset{end});
  EXPECT_EQ(saved, without(end - 5, 100));
  const auto again = log::repair_to("/new", "/newer", {}, storage);  // an empty last file is copied too
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->lost_messages(), 0U);
  EXPECT_EQ(read_back("/newer"), saved);
  EXPECT_EQ(reopened_next, Offset{end});
  // Appending to the repaired log, across a new segment, must not turn the gap into damage.
  log::SegmentLogOptions there = options;
  there.directory = "/new";
  {
    auto opened = log::SegmentLog::open(there, storage, *pool, now);
    ASSERT_TRUE(opened.ok());
    for (int i = 0; i < 3; ++i) {
      auto batch = make_batch({std::string(40'000, 'n')});
      ASSERT_EQ((*opened)->append(batch, now).base, Offset{end + static_cast<std::uint64_t>(i)});
    }
    ASSERT_TRUE((*opened)->flush().ok());
  }
  EXPECT_EQ(read_back("/new").size(), saved.size() + 3);
}

TEST_F(RepairTest, BridgesAMissingFile) {
  fill(100);
  const auto found = segments();
  ASSERT_TRUE(storage.unlink(segment_path(found[1])).ok());
  repair();
  EXPECT_EQ(saved, without(found[1], found[2]));
}

TEST_F(RepairTest, SavesAFileWithoutItsFirstPageIfSealOrSuccessorConfirmIt) {
  fill(100);
  const auto found = segments();
  flip(segment_path(found[0]), 20);  // the epoch is still in the seal
  auto& page = storage.bytes_of(segment_path(found[1]));
  // The end is still in the next file's name.
  std::fill_n(page.begin(), log::segment_header_bytes, std::byte{0});
  const auto report = repair();
  EXPECT_EQ(saved, written);
  EXPECT_EQ(report.lost_messages(), 0U);
}

TEST_F(RepairTest, UsesUnconfirmedBatchesOnlyOnRequest) {
  fill(100);
  const std::uint64_t last = segments().back();
  std::fill_n(storage.bytes_of(segment_path(last)).begin(), log::segment_header_bytes, std::byte{0});
  auto report = repair();
  EXPECT_EQ(saved, without(last, 100));
  EXPECT_EQ(report.next_offset, Offset{100});  // the offsets of lost messages are not used again
  for (const auto& [path, bytes] : all_below("/new")) ASSERT_TRUE(storage.unlink(path).ok());
  report = repair(true);
  EXPECT_EQ(saved, written);
}

TEST_F(RepairTest, NeverUsesBatchesOfAFilesEarlierLife) {
  options.retention_messages = 20;
  fill(100);
  for (int round = 0; round < 20; ++round) {  // until files of the pool are in use
    log->maintain(now);
    while (work()) now.us += 1'000'000;
    fill(10);
  }
  const auto found = segments();
  const Messages before = written;
  // The segment now has a lost header. The batches behind it must not be taken for sound ones of an earlier
  // use of the file.
  auto& bytes = storage.bytes_of(segment_path(found.back()));
  std::fill_n(bytes.begin(), log::segment_header_bytes, std::byte{0});
  repair();
  for (const auto& [offset, payload] : saved) ASSERT_EQ(payload, before.at(offset));
}

TEST_F(RepairTest, FindsAFileUnderAWrongName) {
  fill(100);
  const auto found = segments();
  ASSERT_TRUE(storage.rename(segment_path(found[1]), segment_path(1'000'000)).ok());
  repair();
  EXPECT_EQ(saved, written);
}

TEST_F(RepairTest, CopiesCursorsAndSetsThoseBackThatStandPastTheEnd) {
  fill(10);
  log::CursorFile cursors(storage, directory);
  ASSERT_TRUE(cursors
                  .write(log::CursorFile::encode(
                      {{"a", {3}, log::unfinished_between({3}, {{{5}, {7}}})},
                       {"b", {99}},
                       {"c", {2}, log::unfinished_between({2}, {{{4}, {6}}, {{8}, {12}}})}}))
                  .ok());
  const auto report = repair();
  EXPECT_EQ(report.cursors, 3U);
  EXPECT_EQ(report.clamped_cursors, (std::vector<std::string>{"b", "c"}));
  log::CursorFile copy(storage, "/new");
  EXPECT_EQ(*copy.load(), (std::vector<log::NamedCursor>{
                              {"a", {3}, log::unfinished_between({3}, {{{5}, {7}}})},
                              {"b", {10}},
                              {"c", {2}, log::unfinished_between({2}, {{{4}, {6}}, {{8}, {10}}})}}));
}

TEST_F(RepairTest, RefusesALogOfAnotherVersion) {
  fill(100);
  auto& bytes = storage.bytes_of(segment_path(0));
  store_little_endian(bytes.data() + 8, std::uint32_t{2});
  store_little_endian(bytes.data() + 60, crc32c({bytes.data(), 60}));
  const auto report = log::repair_to(directory, "/new", {}, storage);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, ErrorCode::foreign_format);
  EXPECT_TRUE(all_below("/new").empty());
}

TEST_F(RepairTest, LeavesNothingBehindWhenTheDiskIsFullAtAnyCall) {
  fill(60);
  flip(segment_path(0), 5000);
  const auto before = all_below("/");
  int calls = 0;
  int fail_at = 1;
  const auto count_down = [&](Call call, const std::string& path) -> FaultyStorage::Fault {
    const bool changes = call != Call::read && call != Call::unlink && path.starts_with("/new");
    return {changes && ++calls == fail_at ? ENOSPC : 0, 0};
  };
  for (;; ++fail_at) {
    calls = 0;
    storage.on_call = count_down;
    const auto report = log::repair_to(directory, "/new", {}, storage);
    storage.on_call = nullptr;
    if (report) break;
    ASSERT_EQ(report.error().code, ErrorCode::no_space) << report.error().text();
    ASSERT_EQ(all_below("/"), before) << "failed at " << fail_at;
  }
  EXPECT_GT(fail_at, 10);
}

class RepairInPlaceTest : public RepairTest {
 protected:
  void repair_there() {
    log.reset();
    const auto report = log::repair_in_place(directory, {}, storage);
    ASSERT_TRUE(report.ok()) << report.error().text();
    done = *report;
  }
  log::RepairReport done;
};

TEST_F(RepairInPlaceTest, ReplacesDamagedFilesAndKeepsTheOldOnes) {
  fill(100);
  const auto found = segments();
  const auto sound = storage.bytes_of(segment_path(found[0]));
  flip(segment_path(found[1]), 5000);
  flip(segment_path(found[1]), 40'000);
  const auto damaged = storage.bytes_of(segment_path(found[1]));
  repair_there();
  EXPECT_EQ(done.moved_to, directory + "/damaged-1");
  EXPECT_EQ(storage.bytes_of(done.moved_to + "/" + log::segment_name({found[1]})), damaged);
  EXPECT_EQ(storage.bytes_of(segment_path(found[0])), sound);
  check_sound(directory);
  EXPECT_EQ(saved.size(), 90U);
  repair_there();
  EXPECT_TRUE(done.moved_to.empty());
  EXPECT_EQ(done.segments_written, 0U);
}

TEST_F(RepairInPlaceTest, ReplacesCursorFilesOfWhichOneIsTorn) {
  fill(10);
  log::CursorFile cursors(storage, directory);
  ASSERT_TRUE(cursors.write(log::CursorFile::encode({{"a", {3}}})).ok());
  ASSERT_TRUE(cursors.write(log::CursorFile::encode({{"a", {5}}})).ok());
  flip(directory + "/cursors.0", 40);
  repair_there();
  log::CursorFile after(storage, directory);
  EXPECT_EQ(*after.load(), (std::vector<log::NamedCursor>{{"a", {5}}}));
  EXPECT_FALSE(after.passed_over());
  EXPECT_TRUE(storage.exists(done.moved_to + "/cursors.0"));
}

// Interrupts a repair at each call, by an error and then a power cut. A second run must save the same
// messages.
TEST_F(RepairInPlaceTest, CanBeInterruptedAnywhereAndRunAgain) {
  fill(60);
  flip(segment_path(segments()[1]), 25'000);
  ASSERT_TRUE(storage.unlink(segment_path(segments()[0])).ok());
  ASSERT_TRUE(storage.sync_directory(directory).ok());
  for (const auto& [path, bytes] : all_below(directory)) {
    ASSERT_TRUE((*storage.open(path, log::OpenMode::read_write))->sync().ok());
  }
  const auto before = all_below(directory);
  Keeper sound;
  inspect(sound);
  log.reset();
  Random random;
  bool completed = false;
  for (int stop_at = 1; !completed; ++stop_at) {
    for (const auto& path : storage.paths()) {
      ASSERT_TRUE(storage.unlink(path).ok());
      ASSERT_TRUE(storage.sync_directory(path.substr(0, path.find_last_of('/'))).ok());
    }
    for (const auto& [path, bytes] : before) {
      put(path, bytes);
      ASSERT_TRUE((*storage.open(path, log::OpenMode::read_write))->sync().ok());
    }
    ASSERT_TRUE(storage.sync_directory(directory).ok());
    int calls = 0;
    storage.on_call = [&](Call call, const std::string& /*path*/) -> FaultyStorage::Fault {
      return {call != Call::read && ++calls >= stop_at ? EIO : 0, 0};
    };
    completed = log::repair_in_place(directory, {}, storage).ok();
    storage.on_call = nullptr;
    // A repair that succeeded must be on disk.
    storage.power_cut([&] { return !completed && random.one_in(2); });
    const auto again = log::repair_in_place(directory, {}, storage);
    ASSERT_TRUE(again.ok()) << again.error().text();
    check_sound(directory);
    ASSERT_EQ(saved, sound.messages) << "stopped at call " << stop_at;
    ASSERT_EQ(reopened_next, Offset{60});
    const auto after = all_below(directory);
    for (const auto& [path, bytes] : before) {  // a repair deletes no file
      ASSERT_TRUE(
          std::any_of(after.begin(), after.end(), [&](const auto& kept) { return kept.second == bytes; }))
          << path << ", stopped at call " << stop_at;
    }
  }
}

// Damages random logs at random. The new log must have exactly the messages that an inspection finds sound,
// at the same offsets.
class RandomRepairTest : public RepairTest, public testing::WithParamInterface<int> {
 protected:
  void damage_something(Random& random) {
    const auto found = segments();
    const std::string path = segment_path(found[random.below(found.size())]);
    auto& bytes = storage.bytes_of(path);
    const std::size_t at = random.below(bytes.size());
    switch (random.below(7)) {
      case 0: flip(path, at, static_cast<int>(random.below(8))); break;
      case 1:
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at / 4096 * 4096),
                    std::min<std::size_t>(4096, bytes.size() - at / 4096 * 4096), std::byte{0});
        break;
      case 2: bytes.resize(at); break;
      case 3:
        if (found.size() > 1) static_cast<void>(storage.unlink(path));
        break;
      case 4: flip(path, random.below(128), static_cast<int>(random.below(8))); break;
      case 5: {  // overwrites a range with bytes of another file, or of another position in this file
        const auto other = storage.bytes_of(segment_path(found[random.below(found.size())]));
        if (other.empty()) break;
        const std::size_t from = random.below(other.size());
        const std::size_t count = std::min({other.size() - from, bytes.size() - at, std::size_t{20'000}});
        std::copy_n(other.begin() + static_cast<std::ptrdiff_t>(from), count,
                    bytes.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      }
      default: put(segment_path(random.below(200)), storage.bytes_of(path)); break;
    }
  }
};

TEST_P(RandomRepairTest, SavesExactlyTheSoundMessages) {
  Random random(GetParam());
  while (written.size() < 150) fill(random.between(1, 30), random.between(1, 9000), random.between(1, 12));
  log.reset();
  for (auto damages = random.between(0, 4); damages != 0; --damages) damage_something(random);
  const auto before = all_below(directory);
  Keeper sound;
  const auto totals = inspect(sound);
  const auto report = repair();
  EXPECT_EQ(all_below(directory), before);
  for (const auto& [offset, payload] : sound.messages) {
    ASSERT_TRUE(saved.contains(offset)) << "offset " << offset << " was sound\n" << sound.text();
  }
  EXPECT_EQ(report.messages, saved.size());
  EXPECT_LE(totals.next_offset, report.next_offset);
  if (totals.damages == 0) {
    EXPECT_EQ(report.lost_messages(), 0U);
  }
  const auto in_place = log::repair_in_place(directory, {}, storage);
  ASSERT_TRUE(in_place.ok()) << in_place.error().text();
  const Messages copied = saved;
  check_sound(directory);
  EXPECT_EQ(saved, copied);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomRepairTest, testing::Range(0, 200));

}  // namespace
}  // namespace lightq::test
