/// Tests that files of a newer LightQ version are refused with their name and version, and are not changed.
#include <gtest/gtest.h>

#include <map>

#include "log/saved_state/cursor_file.hpp"
#include "log/saved_state/cursor_table.hpp"
#include "log/tools/repair.hpp"
#include "log/tools/snapshot.hpp"
#include "support/golden_files.hpp"
#include "support/segment_bytes.hpp"
#include "support/tool_fixture.hpp"

namespace lightq::log {
namespace {

using test::newer_file;

constexpr std::uint64_t incarnation = 0x0123456789ABCDEF;

struct Newer {
  const char* file;
  const char* says;  ///< a part of the error text
};

/// A directory with such a file and two files that a start would change: a segment that was never begun, and
/// a leftover of preparing one.
class NewerSegment : public test::ToolFixture, public testing::WithParamInterface<Newer> {
 protected:
  NewerSegment() {
    put(segment_path(0), newer_file(GetParam().file));
    put(segment_path(1000), std::vector<std::byte>(16384));
    put(directory + "/roll.prepared", std::vector<std::byte>(8192, std::byte{1}));
  }
  Error refused() {
    const auto opened = SegmentLog::open(options, storage, *pool, now);
    EXPECT_FALSE(opened.ok());
    return opened ? Error{} : opened.error();
  }
};

TEST_P(NewerSegment, IsRefusedAndNothingIsChanged) {
  const auto before = all_below("");
  const Error error = refused();
  EXPECT_EQ(error.code, ErrorCode::foreign_format);
  for (const std::string& said :
       {segment_path(0), std::string(GetParam().says), std::string("a newer version of LightQ wrote it")})
    EXPECT_NE(error.message.find(said), std::string::npos) << error.message;
  EXPECT_EQ(all_below(""), before);
}

TEST_P(NewerSegment, IsRefusedAsTheLastOne) {
  ASSERT_TRUE(storage.unlink(segment_path(1000)).ok());
  const auto before = all_below("");
  EXPECT_EQ(refused().code, ErrorCode::foreign_format);
  EXPECT_EQ(all_below(""), before);
}

TEST_P(NewerSegment, IsRefusedIfItWasTruncated) {
  ASSERT_TRUE(storage.unlink(segment_path(1000)).ok());
  storage.bytes_of(segment_path(0)).resize(8192);
  const auto before = all_below("");
  EXPECT_EQ(refused().code, ErrorCode::foreign_format);
  EXPECT_EQ(all_below(""), before);
}

TEST_P(NewerSegment, IsReportedByTheToolsInTheSameWords) {
  const auto before = all_below("");
  const Error error = refused();
  test::Keeper keeper;
  const auto totals = inspect(keeper);
  EXPECT_EQ(totals.damages, keeper.findings.size() - keeper.of(Kind::torn).size());
  ASSERT_EQ(keeper.of(Kind::foreign).size(), 1U) << keeper.text();
  EXPECT_EQ(keeper.of(Kind::foreign)[0].text(), error.message);
  const auto copied = repair_to(directory, "/repaired", {}, storage);
  ASSERT_FALSE(copied.ok());
  EXPECT_EQ(copied.error().text(), error.text());
  const auto replaced = repair_in_place(directory, {}, storage);
  ASSERT_FALSE(replaced.ok());
  EXPECT_EQ(replaced.error().text(), error.text());
  const auto taken = snapshot_log(directory, "/backup", storage);
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().text(), error.text());
  EXPECT_EQ(all_below(""), before);
}

INSTANTIATE_TEST_SUITE_P(
    Files, NewerSegment,
    testing::Values(Newer{"segment-version", "a segment file of version 9, not 1 or 2"},
                    Newer{"segment-flags", "with flags 0x0008 at position 56"},
                    Newer{"segment-checkpoint", "with flags 0x0008 at position 1080"},
                    Newer{"segment-seal", "with flags 0x0008 at position 112"},
                    Newer{"segment-batch-version", "is of version 2, with codec 0 and flags 0x0000"},
                    Newer{"segment-batch-codec", "is of version 1, with codec 9 and flags 0x0000"},
                    Newer{"segment-batch-flags", "is of version 1, with codec 0 and flags 0x0010"},
                    Newer{"segment-batch-first", "the batch at position 4096"}),
    [](const auto& tested) {
      std::string name = tested.param.file;
      std::erase(name, '-');
      return name;
    });

class NewerFormatTest : public test::ToolFixture {};

TEST_F(NewerFormatTest, AfterDamageIsRefusedToo) {
  auto bytes = newer_file("segment-batch-flags");
  bytes[segment_header_bytes + 70] ^= std::byte{1};  // a byte of the first batch's message
  put(segment_path(0), bytes);
  bytes = newer_file("segment-batch-flags");
  std::fill_n(bytes.begin() + segment_header_bytes, 40, std::byte{'x'});
  put("/topics/2/" + segment_name({0}), bytes);
  const auto before = all_below("");
  for (const std::string where : {"/topics/1", "/topics/2"}) {
    options.directory = where;
    EXPECT_EQ(SegmentLog::open(options, storage, *pool, now).error().code, ErrorCode::foreign_format)
        << where;
  }
  EXPECT_EQ(all_below(""), before);
}

// The same bytes inside a message are not a batch of the log.
TEST_F(NewerFormatTest, InAMessageIsAMessage) {
  open();
  const auto bytes = newer_file("segment-batch-flags");
  const std::string text(as_text(ByteView(bytes).subspan(segment_header_bytes, 1000)));
  ASSERT_EQ(append({text, "after"}), AppendOutcome::appended);
  open();
  EXPECT_EQ(test::read_everything(*log).size(), 2U);
}

/// Returns a segment in which the second batch has lost its header. The message of that batch contains a
/// whole batch of this segment as a newer version would have written it. A client may store such a message.
std::vector<std::byte> damaged_around_a_forged_batch(std::optional<Timestamp> sealed) {
  constexpr std::uint32_t epoch = 7;
  auto forged = test::make_batch({"forged"});
  store_little_endian(forged.data() + batch_layout::flags, std::uint16_t{0x0010});
  store_little_endian(forged.data() + batch_layout::body_crc, batch_body_crc(forged));
  stamp_batch(forged, Offset{1}, Timestamp{1}, epoch);
  test::SegmentBytes bytes(epoch, incarnation, {0});
  bytes.add({"before"}, Timestamp{1});
  bytes.add({std::string(as_text(forged))}, Timestamp{1});
  bytes.add({"behind"}, Timestamp{1});
  auto file = bytes.finish(limits::segment_bytes_min, sealed);
  std::fill_n(file.begin() + static_cast<std::ptrdiff_t>(bytes.batches()[1].position), 40, std::byte{'x'});
  return file;
}

TEST_F(NewerFormatTest, InAMessageAfterDamageKeepsNoLogClosed) {
  put(segment_path(0), damaged_around_a_forged_batch(std::nullopt));
  open();
  ASSERT_NE(log, nullptr);
  EXPECT_EQ(log->recovery().damaged_messages, 1U) << log->recovery().text();
  EXPECT_EQ(log->next_offset(), Offset{3});
  EXPECT_EQ(test::read_everything(*log), (std::vector<test::ReadMessage>{{{0}, "before"}, {{2}, "behind"}}));
}

TEST_F(NewerFormatTest, InAMessageAfterDamageBlocksNoReader) {
  put(segment_path(0), damaged_around_a_forged_batch(Timestamp{1}));
  test::Keeper keeper;
  inspect(keeper);
  EXPECT_TRUE(keeper.of(Kind::foreign).empty()) << keeper.text();
  open();
  ASSERT_NE(log, nullptr);
  ReadPosition place{{1}};
  const ReadResult read = log->read(place);
  EXPECT_EQ(read.outcome, ReadOutcome::damaged);
  EXPECT_EQ(read.next, Offset{2});
}

TEST_F(NewerFormatTest, WithoutANameIsRefusedToo) {
  fill(20);
  log.reset();
  auto& last = storage.bytes_of(segment_path(segments().back()));
  last.at(last.size() - 100) = std::byte{1};  // a start would wipe it
  put(directory + "/" + next_prepared_name, newer_file("segment-flags"));
  const auto before = all_below("");
  const auto opened = SegmentLog::open(options, storage, *pool, now);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::foreign_format);
  EXPECT_NE(opened.error().message.find(next_prepared_name), std::string::npos) << opened.error().message;
  EXPECT_FALSE(repair_in_place(directory, {}, storage).ok());
  EXPECT_EQ(all_below(""), before);
}

TEST_F(NewerFormatTest, OptionalContentIsIgnoredAndKept) {
  put(segment_path(0), newer_file("segment-optional"));
  open();
  ASSERT_NE(log, nullptr);
  EXPECT_EQ(test::read_everything(*log).size(), 4U);
  ReadPosition place{{3}};
  const ReadResult read = log->read(place);
  ASSERT_EQ(read.outcome, ReadOutcome::batch);
  EXPECT_EQ(read.batch.flags(), 0x0100);
  EXPECT_FALSE(read.batch.kinds().any());
  ASSERT_EQ(append({"more"}), AppendOutcome::appended);
  ASSERT_TRUE(log->close().ok());
  open();
  EXPECT_EQ(test::read_everything(*log).size(), 5U);
  auto sent = test::make_batch({"m"});
  store_little_endian(sent.data() + batch_layout::flags, std::uint16_t{0x0100});
  store_little_endian(sent.data() + batch_layout::body_crc, batch_body_crc(sent));
  EXPECT_EQ(BatchView::check_produced(sent).fault, BatchFault::bad_version)
      << "nobody sends what he does not know";
}

// A start does not read sealed segments. A read does not skip the batch either, because a later version can
// read it.
TEST_F(NewerFormatTest, InASealedSegmentIsNotSkipped) {
  put(segment_path(0), newer_file("segment-sealed-batch"));
  open();
  ASSERT_NE(log, nullptr);
  EXPECT_EQ(log->next_offset(), Offset{5});
  ReadPosition place{{2}};
  EXPECT_EQ(log->read(place).outcome, ReadOutcome::batch);
  for (int tries = 0; tries < 3; ++tries) {
    place.offset = {3};
    EXPECT_EQ(log->read(place).outcome, ReadOutcome::unavailable);
    EXPECT_EQ(log->last_error().code, ErrorCode::foreign_format);
    EXPECT_NE(log->last_error().message.find("a newer version"), std::string::npos)
        << log->last_error().text();
  }
  place.offset = {4};
  EXPECT_EQ(log->read(place).outcome, ReadOutcome::batch);
}

TEST_F(NewerFormatTest, CursorFilesAreRefusedAndStay) {
  CursorFile file(storage, directory);
  const std::vector<NamedCursor> older = {{"group:g", {1}}};
  ASSERT_TRUE(file.write(CursorFile::encode(older)).ok());
  for (const std::string name : {"/cursors.1", "/cursors.0"}) {
    put(directory + name, newer_file("cursors"));
    const auto before = all_below("");
    CursorFile found(storage, directory);
    const auto loaded = found.load();
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.error().code, ErrorCode::foreign_format);
    EXPECT_EQ(loaded.error().message.rfind(
                  directory + name + ": position 8: a cursor file of version 6, not 1 to 5", 0),
              0U)
        << loaded.error().message;
    EXPECT_FALSE(CursorFile(storage, directory).write(CursorFile::encode(older)).ok());
    EXPECT_FALSE(found.write(CursorFile::encode(older)).ok());
    test::Keeper keeper;
    inspect(keeper);
    EXPECT_NE(keeper.text().find(loaded.error().message), std::string::npos) << keeper.text();
    EXPECT_EQ(repair_in_place(directory, {}, storage).error().code, ErrorCode::foreign_format);
    EXPECT_EQ(snapshot_log(directory, "/backup", storage).error().code, ErrorCode::foreign_format);
    EXPECT_EQ(all_below(""), before);
  }
}

TEST_F(NewerFormatTest, ProducersAreRefusedAndStay) {
  fill(10);
  ASSERT_TRUE(log->close().ok());
  for (const std::string name : {"/producers.1", "/producers.0"}) {
    put(directory + name, newer_file("producers"));
    flip(segment_path(0), segment_header_bytes + 100);  // so that a repair has something to do
    const auto before = all_below("");
    const std::string said = directory + name +
                             ": position 8: a producer file of version 9, not 1 to 2: a newer version of "
                             "LightQ wrote it";
    test::Keeper keeper;
    inspect(keeper);
    const auto foreign = keeper.of(Finding::Kind::foreign);
    ASSERT_EQ(foreign.size(), 1U) << keeper.text();
    EXPECT_EQ(foreign[0].text().rfind(said, 0), 0U) << foreign[0].text();
    for (const auto& repaired :
         {repair_in_place(directory, {}, storage), repair_to(directory, "/repaired", {}, storage)}) {
      ASSERT_FALSE(repaired.ok());
      EXPECT_EQ(repaired.error().code, ErrorCode::foreign_format);
      EXPECT_EQ(repaired.error().message.rfind(said, 0), 0U) << repaired.error().text();
    }
    EXPECT_EQ(all_below(""), before);
    flip(segment_path(0), segment_header_bytes + 100);
    // A sound file, beside which a newer version of the other file must still be refused.
    put(directory + name, test::golden_file("producers.v2"));
  }
}

// A snapshot that cannot link reads the sealed segment. A link has the same bytes, so nothing is left out.
TEST_F(NewerFormatTest, ASealedSegmentIsLinkedByASnapshotOrRefused) {
  put(segment_path(0), newer_file("segment-sealed-batch"));
  const auto linked = snapshot_log(directory, "/linked", storage);
  ASSERT_TRUE(linked.ok()) << linked.error().text();
  EXPECT_EQ(linked->damages, 0U);
  storage.on_call = [](auto call, const std::string&) -> test::FaultyStorage::Fault {
    return {call == test::FaultyStorage::Call::link ? EXDEV : 0, 0};
  };
  const auto copied = snapshot_log(directory, "/copied", storage);
  ASSERT_FALSE(copied.ok());
  EXPECT_EQ(copied.error().code, ErrorCode::foreign_format) << copied.error().text();
  EXPECT_TRUE(all_below("/copied").empty());
}

// A torn cursor file says nothing about a version.
TEST_F(NewerFormatTest, ATornCursorFileIsNoNewerOne) {
  CursorFile file(storage, directory);
  const std::vector<NamedCursor> older = {{"group:g", {1}}};
  ASSERT_TRUE(file.write(CursorFile::encode(older)).ok());
  auto torn = newer_file("cursors");
  torn.back() ^= std::byte{1};
  put(directory + "/cursors.1", torn);
  const auto loaded = CursorFile(storage, directory).load();
  ASSERT_TRUE(loaded.ok()) << loaded.error().text();
  EXPECT_EQ(*loaded, older);
}

TEST_F(NewerFormatTest, CursorTablesAreRefusedAndStay) {
  const std::string path = directory + "/" + std::string(CursorTable::file_name);
  for (const auto& [name, says] : std::map<std::string, std::string>{
           {"cursor-table-version", "a cursor table of version 2, not 1"},
           {"cursor-table-flags", "a cursor table of version 1 with flags 0x0008 at position 24"},
           {"cursor-table-cursor", "with a cursor at position 5632 of a kind"}}) {
    put(path, newer_file(name));
    const auto before = all_below("");
    const auto known = CursorTable::check_known(storage, directory);
    ASSERT_FALSE(known.ok()) << name;
    EXPECT_EQ(known.error().code, ErrorCode::foreign_format);
    EXPECT_NE(known.error().message.find(path), std::string::npos) << known.error().message;
    EXPECT_NE(known.error().message.find(says), std::string::npos) << known.error().message;
    EXPECT_EQ(CursorTable::open(storage, directory, incarnation).error().text(), known.error().text());
    test::Keeper keeper;
    inspect(keeper);
    EXPECT_NE(keeper.text().find(known.error().message), std::string::npos) << keeper.text();
    EXPECT_EQ(repair_in_place(directory, {}, storage).error().text(), known.error().text());
    EXPECT_EQ(repair_to(directory, "/repaired", {}, storage).error().text(), known.error().text());
    EXPECT_EQ(snapshot_log(directory, "/backup", storage).error().text(), known.error().text());
    EXPECT_EQ(all_below(""), before);
  }
  put(path, newer_file("cursor-table-optional"));
  EXPECT_TRUE(CursorTable::check_known(storage, directory).ok());
  const auto table = CursorTable::open(storage, directory, incarnation);
  ASSERT_TRUE(table.ok()) << table.error().text();
  const auto cursor = (*table)->find("billing");
  ASSERT_TRUE(cursor.ok() && *cursor != nullptr);
  EXPECT_EQ((*cursor)->committed(), Offset{2});
}

}  // namespace
}  // namespace lightq::log
