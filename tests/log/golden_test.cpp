/// Tests that today's code reads a file of every format version that was ever written, and still writes the
/// same bytes. The files are kept for ever in tests/golden. LIGHTQ_WRITE_GOLDEN=1 writes the missing ones.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "log/format/segment_index_file.hpp"
#include "log/saved_state/cursor_file.hpp"
#include "log/saved_state/cursor_table.hpp"
#include "support/log_fixture.hpp"
#include "support/segment_bytes.hpp"

namespace lightq::log {
namespace {

using test::FaultyStorage;

constexpr std::uint64_t incarnation = 0x0123456789ABCDEF;

class GoldenTest : public test::LogFixture {
 protected:
  /// Returns the golden file. Writes it first if it is missing and LIGHTQ_WRITE_GOLDEN is set.
  std::vector<std::byte> golden(const std::string& name, const std::vector<std::byte>& made_today) {
    const std::string golden_path = std::string(LIGHTQ_GOLDEN_DIR) + "/" + name;
    if (std::getenv("LIGHTQ_WRITE_GOLDEN") != nullptr && !std::filesystem::exists(golden_path)) {
      std::ofstream(golden_path, std::ios::binary)
          .write(reinterpret_cast<const char*>(made_today.data()),
                 static_cast<std::streamsize>(made_today.size()));
    }
    std::ifstream file(golden_path, std::ios::binary);
    EXPECT_TRUE(file.good()) << golden_path;
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const ByteView bytes = as_byte_view(text);
    return {bytes.begin(), bytes.end()};
  }
  void put(const std::string& path, const std::vector<std::byte>& bytes) {
    ASSERT_TRUE(storage.open(path, OpenMode::create).ok());
    storage.bytes_of(path) = bytes;
  }
  static void expect_same(const std::vector<std::byte>& one, const std::vector<std::byte>& other) {
    ASSERT_EQ(one.size(), other.size());
    const auto [at, ignored] = std::ranges::mismatch(one, other);
    EXPECT_EQ(at, one.end()) << "they differ from position " << at - one.begin() << " on";
  }
};

test::SegmentBytes some_segment() {
  test::SegmentBytes segment(0xA1B2C3D4, incarnation, {42});
  segment.add({"first", "", std::string("\0\xFF\n", 3)}, {1'000'000});
  segment.add({std::string(300, 'x')}, {999'000});  // the clock was set back
  segment.add({"last"}, {1'000'500});
  return segment;
}

/// Returns a segment file as versions without checkpoints wrote it: the first page has only the header and
/// the seal.
std::vector<std::byte> segment_without_checkpoints(bool sealed) {
  auto segment = some_segment();
  auto bytes = segment.finish(8192, sealed ? std::optional(Timestamp{1'000'500}) : std::nullopt);
  std::fill(bytes.begin() + 128, bytes.begin() + segment_header_bytes, std::byte{0});
  return bytes;
}

TEST_F(GoldenTest, ReadsAndWritesSegmentsOfVersion1Unchanged) {
  for (const bool sealed : {false, true}) {
    const auto today = segment_without_checkpoints(sealed);
    const auto kept = golden(sealed ? "segment-sealed.v1" : "segment-open.v1", today);
    expect_same(kept, today);
    put(segment_path(42), kept);
    open();
    ASSERT_FALSE(HasFatalFailure());
    EXPECT_TRUE(log->recovery().clean()) << log->recovery().text();
    const std::vector<test::ReadMessage> expected = {{{42}, "first"},
                                                     {{43}, ""},
                                                     {{44}, std::string("\0\xFF\n", 3)},
                                                     {{45}, std::string(300, 'x')},
                                                     {{46}, "last"}};
    EXPECT_EQ(test::read_everything(*log, {42}), expected);
    EXPECT_EQ(log->next_offset(), Offset{47});
    EXPECT_EQ(append({"more"}), AppendOutcome::appended);
    log.reset();
    for (const auto& path : storage.paths()) ASSERT_TRUE(storage.unlink(path).ok());
  }
}

class GoldenCursorTest : public GoldenTest {
 protected:
  void check(const std::string& name, const std::vector<NamedCursor>& cursors);
};

void GoldenCursorTest::check(const std::string& name, const std::vector<NamedCursor>& cursors) {
  {
    CursorFile file(storage, "/made");
    ASSERT_TRUE(file.write(CursorFile::encode({})).ok());
    ASSERT_TRUE(file.write(CursorFile::encode(cursors)).ok());
  }
  const auto kept = golden(name, storage.bytes_of("/made/cursors.1"));
  expect_same(kept, storage.bytes_of("/made/cursors.1"));
  put("/kept/cursors.1", kept);
  const auto loaded = CursorFile(storage, "/kept").load();
  ASSERT_TRUE(loaded.ok()) << loaded.error().text();
  EXPECT_EQ(*loaded, cursors);
}

TEST_F(GoldenCursorTest, ReadsAndWritesCursorFilesOfVersion1Unchanged) {
  check("cursors.v1", {{"group:default", {7}}, {"sub:12", {~std::uint64_t{0}}}, {"", {0}}});
}

TEST_F(GoldenCursorTest, ReadsCursorFilesOfVersion2) {
  put("/kept/cursors.1", golden("cursors.v2", {}));
  const auto loaded = CursorFile(storage, "/kept").load();
  ASSERT_TRUE(loaded.ok()) << loaded.error().text();
  EXPECT_EQ(*loaded,
            (std::vector<NamedCursor>{
                {"group:default", {7}, unfinished_between({7}, {{{8}, {9}}, {{300}, {~std::uint64_t{0}}}})},
                {"sub:12", {~std::uint64_t{0}}},
                {"own:", {0}, unfinished_between({0}, {{{1}, {2}}})}}));
}

TEST_F(GoldenCursorTest, ReadsAndWritesCursorFilesOfVersion3Unchanged) {
  Unfinished unfinished = unfinished_between({7}, {{{8}, {9}}, {{300}, {1'000'000}}});
  unfinished.next = {std::uint64_t{1} << 40};
  unfinished.messages.add({{5'000'000}, unfinished.next});
  OffsetSet later;
  later.add({{200}, {300}});
  later.add({{std::uint64_t{1} << 39}, unfinished.next});
  OffsetSet soon;
  soon.add({{7}, {8}});
  unfinished.delayed = {{{1'700'000'000'000'000}, soon}, {{1'700'000'000'500'000}, later}};
  unfinished.delivery_bits = {unfinished.messages, {}, soon};
  check("cursors.v3", {{"group:default", {7}, unfinished},
                       {"sub:12", {~std::uint64_t{0}}},
                       {"own:", {0}, unfinished_between({0}, {{{1}, {2}}})}});
}

TEST_F(GoldenCursorTest, ReadsAndWritesCursorFilesOfVersion4Unchanged) {
  Unfinished unfinished{{2'000}, {}};
  unfinished.messages.add({{7}, {300}});
  unfinished.messages.add({{1'000}, {1'500}});
  OffsetSet delayed;
  delayed.add({{20}, {30}});
  unfinished.delayed = {{{1'700'000'000'000'000}, delayed}};
  unfinished.delivery_bits = {unfinished.messages, delayed};
  SavedDead& dead = unfinished.dead;
  dead.parked.add({{40}, {45}});
  dead.parked.add({{1'100}, {1'101}});
  dead.rejected.add({{44}, {45}});
  dead.outbox.add({{60}, {62}});
  dead.outbox.add({{1'499}, {1'500}});
  dead.under_way = {{1'499}, {60}};
  dead.first_number = 300;
  dead.incarnation = 0xF123'4567'89AB'CDEF;
  dead.target = 77;
  const Timestamp first{1'690'000'000'000'000};
  dead.records = {{{44}, first, {first.us + 1'500'000}, "not for me"}, {{1'499}, first, first, ""}};
  dead.first_failures = {{first, delayed}};
  check("cursors.v4", {{"group:default", {7}, unfinished}, {"group:other", {9}}, {"paused:other", {0}}});
  dead.expired.add({{60}, {61}});
  dead.expired.add({{1'100}, {1'101}});
  check("cursors.v5", {{"group:default", {7}, unfinished}, {"group:other", {9}}, {"ttl:", {300}}});
}

TEST_F(GoldenTest, ReadsAndWritesCursorTablesOfVersion1Unchanged) {
  {
    auto table = CursorTable::make(storage, "/made", incarnation);
    ASSERT_TRUE(table.ok());
    TableCursor& orders = **(*table)->create("orders", {5});
    ASSERT_TRUE((*table)->create("gone", {6}).ok());
    TableCursor& longest = **(*table)->create(std::string(128, 'n'), {0});
    for (const std::uint64_t offset : {6, 9, 100}) orders.commit({offset});
    longest.commit({~std::uint64_t{0}});
    ASSERT_TRUE((*table)->flush().ok());
    ASSERT_TRUE((*table)->remove("gone").ok());
    orders.commit({80});
    orders.note_delivered({90});
  }
  const std::string made = "/made/cursors.table";
  const auto kept = golden("cursors-table.v1", storage.bytes_of(made));
  expect_same(kept, storage.bytes_of(made));
  put("/kept/cursors.table", kept);
  auto table = CursorTable::open(storage, "/kept", incarnation);
  ASSERT_TRUE(table.ok()) << table.error().text();
  EXPECT_TRUE((*table)->passed_over().empty() && (*table)->damaged().empty());
  EXPECT_EQ((*table)->list().size(), 2U);
  EXPECT_EQ((**(*table)->find("orders")).committed(), Offset{80});
  EXPECT_EQ((**(*table)->find("orders")).delivered(), Offset{90});
  EXPECT_EQ((**(*table)->find(std::string(128, 'n'))).committed(), Offset{~std::uint64_t{0}});
  EXPECT_EQ(*(*table)->find("gone"), nullptr);
}

TEST_F(GoldenTest, ReadsAndWritesSegmentIndexesOfVersion1Unchanged) {
  const IndexedSegment segment{0xA1B2C3D4, incarnation, {42}, {1042}, 300'000};
  const std::vector<IndexedBatch> entries = {
      {{42}, 4096, {1000}}, {{300}, 70'000, {2500}}, {{301}, 200'000, {2500}}};
  SegmentIndex index(segment.end_position);
  for (const auto& entry : entries) index.note(entry.offset, entry.position, entry.newest);
  // An entry only because it is the newest; it is too close to the one before.
  index.note({1041}, 250'000, {2600});
  const auto today = SegmentIndexFile::encode(segment, index);
  const auto kept = golden("segment-index.v1", today);
  expect_same(kept, today);
  const auto loaded = SegmentIndexFile::decode(kept, segment, "segment-index.v1");
  ASSERT_TRUE(loaded.ok()) << loaded.error().text();
  EXPECT_TRUE(std::ranges::equal((*loaded)->entries(), entries));
  EXPECT_EQ((*loaded)->newest(), Timestamp{2600});
}

}  // namespace
}  // namespace lightq::log
