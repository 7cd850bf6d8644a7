/// Tests inspecting and repairing the files beside the segments of an embedded queue: its cursor table and
/// its indexes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "log/format/segment_index_file.hpp"
#include "log/saved_state/cursor_table.hpp"
#include "log/tools/cursor_survey.hpp"
#include "log/tools/repair.hpp"
#include "support/tool_fixture.hpp"

namespace lightq::test {
namespace {

using log::CursorTable;
using log::Finding;
using Places = std::map<std::string, std::uint64_t>;

class SideFilesTest : public ToolFixture {
 protected:
  const std::string table_path = directory + "/cursors.table";

  /// Creates cursors a, b and c, with a removed cursor between a and b. All copies of each cursor are
  /// written.
  void make_cursors(const Places& places = {{"a", 3}, {"b", 7}, {"c", 11}}) {
    auto table = CursorTable::make(storage, directory, log->incarnation());
    ASSERT_TRUE(table.ok()) << table.error().text();
    for (const auto& [name, place] : places) {
      if (name == "b") {
        ASSERT_TRUE((*table)->create("gone", {1}).ok());
      }
      const auto cursor = (*table)->create(name, {0});
      ASSERT_TRUE(cursor.ok());
      for (const std::uint64_t at : {place / 2, place}) {
        (*cursor)->commit({at});
        ASSERT_TRUE((*table)->flush().ok());
      }
      (*cursor)->note_delivered({place + 2});
    }
    if (places.contains("b")) {
      ASSERT_TRUE((*table)->remove("gone").ok());
    }
  }
  static Places places_of(const log::CursorSurvey& survey) {
    Places places;
    for (const auto& cursor : survey.cursors) places[cursor.name] = cursor.committed.value;
    return places;
  }
  Places survey(const std::string& where = "/topics/1") {
    return places_of(log::survey_cursor_table(where, storage, log_incarnation));
  }
  /// Returns the cursors that the queue finds when it opens the table there. The table must be sound.
  Places opened(const std::string& where) {
    auto table = CursorTable::open(storage, where, log_incarnation);
    EXPECT_TRUE(table.ok()) << table.error().text();
    Places places;
    if (!table) return places;
    EXPECT_TRUE((*table)->damaged().empty() && (*table)->passed_over().empty());
    for (const auto& cursor : (*table)->list()) places[cursor.name] = cursor.committed.value;
    return places;
  }
  void make_log(std::uint64_t messages = 100) {
    fill(messages);
    log_incarnation = log->incarnation();
  }
  std::string index_path(std::uint64_t first) { return directory + "/" + log::segment_index_name({first}); }
  log::IndexedSegment indexed(std::uint64_t first) {
    log::SegmentPage page{};
    std::copy_n(storage.bytes_of(segment_path(first)).begin(), page.size(), page.begin());
    const auto header = log::decode_segment_header(page).header;
    const auto seal = log::decode_any_seal(page, *header);
    EXPECT_TRUE(seal.has_value());
    return {header->epoch,    header->incarnation, {first},
            seal->end_offset, seal->end_position,  header->batch_mask};
  }
  void make_index(std::uint64_t first) {
    const auto file = storage.open(segment_path(first), log::OpenMode::read_only);
    const auto segment = indexed(first);
    const auto index = log::SegmentIndexFile::rebuild(**file, segment);
    ASSERT_TRUE(log::SegmentIndexFile::store(storage, index_path(first), segment, *index).ok());
  }
  log::RepairReport repair_there() {
    log.reset();
    const auto report = log::repair_in_place(directory, {}, storage);
    EXPECT_TRUE(report.ok()) << report.error().text();
    return report ? *report : log::RepairReport{};
  }
  void lose_cursor(std::size_t block) {
    for (const std::size_t copy : {0U, 32U, 512U, 1024U}) flip(table_path, 4096 + block * 2048 + copy + 3);
  }

  std::uint64_t log_incarnation = 0;
};

// --- Cursor table ------------------------------------------------------------------------------------------

TEST_F(SideFilesTest, ListsTheCursorsOfASoundTable) {
  make_log();
  make_cursors();
  EXPECT_EQ(survey(), (Places{{"a", 3}, {"b", 7}, {"c", 11}}));
  Keeper keeper;
  EXPECT_EQ(inspect(keeper).cursors, 3U);
  EXPECT_TRUE(keeper.findings.empty()) << keeper.text();
  EXPECT_EQ(log::survey_cursor_table(directory, storage, 0).cursors[0].delivered, Offset{5});
}

// The tool reports every flipped bit in the parts that the queue reads: the first page's header, and the
// blocks of existing cursors. No code ever reads the other bytes, such as a removed cursor's copies. In both
// cases the tool and the queue agree about each cursor.
TEST_F(SideFilesTest, ReportsEveryFlippedBitThatMattersInATable) {
  make_log(10);
  make_cursors();
  constexpr std::array<bool, 5> active = {true, false, true, true, false};  // a, removed, b, c, blank
  const auto is_read = [&](std::size_t position) {
    if (position < 4096) return position < 64 || (512 <= position && position < 576);
    const std::size_t at = position % 2048;
    if (1536 <= at && at < 1792) return true;
    const bool in_copy = at < 20 || (32 <= at && at < 52) || (64 <= at && at < 80) ||
                         (512 <= at && at < 532) || (1024 <= at && at < 1044);
    return in_copy && active.at((position - 4096) / 2048);
  };
  const Places before = survey();
  const auto sound = storage.bytes_of(table_path);
  for (std::size_t position = 0; position < 4096 + active.size() * 2048; ++position) {
    for (int bit = 0; bit < 8; ++bit) {
      flip(table_path, position, bit);
      const auto found = log::survey_cursor_table(directory, storage, log_incarnation);
      ASSERT_EQ(!found.sound(), is_read(position)) << "position " << position << " bit " << bit;
      const bool damage = std::any_of(found.findings.begin(), found.findings.end(),
                                      [](const auto& finding) { return finding.is_damage(); });
      const Places places = places_of(found);
      if (found.sound()) {
        ASSERT_EQ(places, before);
      }
      for (const auto& [name, place] : places) ASSERT_LE(place, before.at(name));
      ASSERT_TRUE(damage || places.size() == before.size());
      if (is_read(position)) {
        const auto table = CursorTable::open(storage, directory, log_incarnation);
        const bool refused = !table.ok() || !(*table)->damaged().empty();
        ASSERT_EQ(refused, damage) << "position " << position << " bit " << bit;
        if (table) {
          ASSERT_EQ((*table)->list().size(), places.size());
          for (const auto& cursor : (*table)->list())
            ASSERT_EQ(cursor.committed.value, places.at(cursor.name));
        }
      }
      storage.bytes_of(table_path) = sound;
    }
  }
}

TEST_F(SideFilesTest, ReportsALostCursorATableOfAnotherLogAndACursorPastTheEnd) {
  make_log();
  make_cursors({{"a", 3}, {"z", 150}});
  lose_cursor(0);
  Keeper keeper;
  EXPECT_EQ(inspect(keeper).damages, 1U) << keeper.text();
  ASSERT_EQ(keeper.of(Kind::cursor).size(), 1U) << keeper.text();
  EXPECT_NE(keeper.text().find("'a'"), std::string::npos) << keeper.text();
  EXPECT_EQ(keeper.of(Kind::ahead).size(), 1U) << keeper.text();
  storage.bytes_of(table_path).resize(2000);
  Keeper cut;
  EXPECT_EQ(inspect(cut).damages, 1U) << cut.text();
  EXPECT_EQ(cut.of(Kind::cursors).size(), 1U) << cut.text();
  ASSERT_TRUE(storage.unlink(table_path).ok());
  ASSERT_TRUE(CursorTable::make(storage, directory, log_incarnation + 1).ok());
  Keeper stranger;
  EXPECT_EQ(inspect(stranger).damages, 1U) << stranger.text();
  EXPECT_NE(stranger.text().find("another log"), std::string::npos) << stranger.text();
}

TEST_F(SideFilesTest, KeepsTheSoundCursorsWhenItRepairsInPlace) {
  make_log();
  make_cursors();
  lose_cursor(2);
  const auto damaged = storage.bytes_of(table_path);
  const auto report = repair_there();
  EXPECT_EQ(report.cursors, 2U);
  ASSERT_EQ(report.lost_cursors.size(), 1U);
  EXPECT_NE(report.lost_cursors[0].find("'b'"), std::string::npos) << report.lost_cursors[0];
  EXPECT_EQ(opened(directory), (Places{{"a", 3}, {"c", 11}}));
  EXPECT_EQ(storage.bytes_of(report.moved_to + "/cursors.table"), damaged);
  EXPECT_EQ(report.segments_written, 0U);
  EXPECT_TRUE(repair_there().moved_to.empty());
}

TEST_F(SideFilesTest, KeepsTheCursorsOfATableWithoutItsFirstPage) {
  make_log();
  make_cursors();
  auto& bytes = storage.bytes_of(table_path);
  std::fill_n(bytes.begin(), 4096, std::byte{0});
  repair_there();
  EXPECT_EQ(opened(directory), (Places{{"a", 3}, {"b", 7}, {"c", 11}}));
}

TEST_F(SideFilesTest, WritesASoundTableBesideASoundLogAndSetsCursorsBack) {
  make_log();
  make_cursors({{"a", 3}, {"b", 7}, {"z", 150}});
  lose_cursor(0);
  const auto before = all_below(directory);
  const auto report = log::repair_to(directory, "/new", {}, storage);
  ASSERT_TRUE(report.ok()) << report.error().text();
  EXPECT_EQ(all_below(directory), before);
  EXPECT_EQ(opened("/new"), (Places{{"b", 7}, {"z", 100}}));
  EXPECT_EQ(report->clamped_cursors, std::vector<std::string>{"z"});
  EXPECT_EQ(report->lost_cursors.size(), 1U);
  Keeper keeper;
  EXPECT_EQ(inspect(keeper, "/new").cursors, 2U);
  EXPECT_TRUE(keeper.findings.empty()) << keeper.text();
}

// Found by the fuzzer: an empty log left no file that says which log the table belongs to.
TEST_F(SideFilesTest, KeepsTheIdentityOfALogWithCursorsAndNoMessages) {
  open();
  ASSERT_TRUE(log->settle().ok());
  log_incarnation = log->incarnation();
  make_cursors({{"a", 0}});
  ASSERT_TRUE(log::repair_to(directory, "/new", {}, storage).ok());
  read_back("/new");
  EXPECT_EQ(segments("/new"), std::vector<std::uint64_t>{0});
  EXPECT_EQ(opened("/new"), (Places{{"a", 0}}));
  EXPECT_TRUE(repair_there().moved_to.empty());
  EXPECT_EQ(opened(directory), (Places{{"a", 0}}));
}

TEST_F(SideFilesTest, LeavesATableOfAnotherVersionUnchanged) {
  make_log();
  make_cursors();
  auto& bytes = storage.bytes_of(table_path);
  store_little_endian(bytes.data() + 8, std::uint32_t{2});
  store_little_endian(bytes.data() + 60, crc32c({bytes.data(), 60}));
  const auto before = all_below(directory);
  log.reset();
  const auto report = log::repair_in_place(directory, {}, storage);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, ErrorCode::foreign_format);
  EXPECT_EQ(all_below(directory), before);
}

// Stops a repair at each call and then cuts the power. No sound cursor may be lost, and a second run
// completes the repair.
TEST_F(SideFilesTest, LosesNoSoundCursorWhenARepairIsInterruptedAnywhere) {
  make_log(60);
  make_cursors();
  make_index(0);
  flip(index_path(0), 30);
  lose_cursor(2);
  log.reset();
  const auto before = all_below(directory);
  Random random;
  bool completed = false;
  for (int stop_at = 1; !completed; ++stop_at) {
    for (const auto& path : storage.paths()) ASSERT_TRUE(storage.unlink(path).ok());
    for (const auto& [path, bytes] : before) {
      put(path, bytes);
      ASSERT_TRUE((*storage.open(path, log::OpenMode::read_write))->sync().ok());
    }
    ASSERT_TRUE(storage.sync_directory(directory).ok());
    int calls = 0;
    storage.on_call = [&](FaultyStorage::Call call, const std::string& /*path*/) -> FaultyStorage::Fault {
      return {call != FaultyStorage::Call::read && ++calls >= stop_at ? EIO : 0, 0};
    };
    completed = log::repair_in_place(directory, {}, storage).ok();
    storage.on_call = nullptr;
    storage.power_cut([&] { return !completed && random.one_in(2); });
    const auto again = log::repair_in_place(directory, {}, storage);
    ASSERT_TRUE(again.ok()) << again.error().text();
    ASSERT_EQ(opened(directory), (Places{{"a", 3}, {"c", 11}})) << "stopped at call " << stop_at;
    Keeper keeper;
    inspect(keeper);
    ASSERT_TRUE(keeper.findings.empty()) << keeper.text();
  }
}

// --- Indexes -----------------------------------------------------------------------------------------------

TEST_F(SideFilesTest, AcceptsSoundIndexesAndMissesNone) {
  make_log();
  make_index(0);
  Keeper keeper;
  EXPECT_EQ(inspect(keeper).damages, 0U);
  EXPECT_TRUE(keeper.findings.empty()) << keeper.text();
}

TEST_F(SideFilesTest, ReportsEveryFlippedBitOfAnIndexAndNoLoss) {
  make_log();
  make_index(0);
  const std::size_t bytes = storage.bytes_of(index_path(0)).size();
  for (std::size_t position = 0; position < bytes; ++position) {
    for (int bit = 0; bit < 8; ++bit) {
      flip(index_path(0), position, bit);
      Keeper keeper;
      const auto totals = inspect(keeper);
      ASSERT_EQ(totals.damages, 0U);
      ASSERT_EQ(totals.messages, 100U);
      ASSERT_EQ(keeper.findings.size(), 1U) << "position " << position << " bit " << bit;
      ASSERT_EQ(keeper.findings[0].kind, Kind::index);
      flip(index_path(0), position, bit);
    }
  }
}

// The indexes are valid by themselves but contradict the batches.
TEST_F(SideFilesTest, ReportsAWrongIndexAndOneWithoutASegment) {
  make_log();
  const auto segment = indexed(0);
  log::SegmentIndex lying(segment.end_position);
  lying.note({5}, log::segment_header_bytes, now);
  ASSERT_TRUE(log::SegmentIndexFile::store(storage, index_path(0), segment, lying).ok());
  put(index_path(7777), storage.bytes_of(index_path(0)));
  Keeper keeper;
  EXPECT_EQ(inspect(keeper).damages, 0U);
  ASSERT_EQ(keeper.of(Kind::index).size(), 2U) << keeper.text();
  EXPECT_NE(keeper.text().find("index: rebuilt when the log is opened"), std::string::npos);
  EXPECT_NE(keeper.text().find("disagrees"), std::string::npos) << keeper.text();
  EXPECT_NE(keeper.text().find("belongs to no segment"), std::string::npos) << keeper.text();
}

TEST_F(SideFilesTest, DropsIndexesThatDoNotFitAndThoseOfFilesItReplaces) {
  make_log();
  const auto found = segments();
  ASSERT_GT(found.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) make_index(found[i]);
  flip(index_path(found[0]), 30);
  flip(segment_path(found[1]), 5000);
  put(index_path(7777), {});
  const auto report = repair_there();
  EXPECT_EQ(report.indexes_dropped, 3U);
  EXPECT_FALSE(storage.exists(index_path(found[0])) || storage.exists(index_path(found[1])) ||
               storage.exists(index_path(7777)));
  EXPECT_TRUE(storage.exists(index_path(found[2])));
  EXPECT_TRUE(storage.exists(report.moved_to + "/" + log::segment_index_name({found[0]})));
  EXPECT_TRUE(repair_there().moved_to.empty());
}

}  // namespace
}  // namespace lightq::test
