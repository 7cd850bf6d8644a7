/// Tests a segment's index: its searches, the files it refuses, and that it can always be rebuilt from the
/// segment.
#include "log/format/segment_index.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "log/format/segment_index_file.hpp"
#include "support/faulty_storage.hpp"
#include "support/random.hpp"
#include "support/segment_bytes.hpp"

namespace lightq::log {
namespace {

using test::FaultyStorage;

const std::string path = "/log/00000000000000000042.idx";

/// Returns a segment of about `batches` batches of up to 40 KB. The clock is set back now and then between
/// appends.
test::SegmentBytes some_segment(test::Random& random, int batches) {
  test::SegmentBytes segment(7, 99, {42});
  Timestamp time{1'000'000};
  for (int i = 0; i < batches; ++i) {
    time.us += random.one_in(8) ? -static_cast<std::int64_t>(random.below(5000))
                                : static_cast<std::int64_t>(random.below(1000));
    segment.add(std::vector<std::string>(random.between(1, 5), std::string(random.below(8000), 'm')), time);
  }
  return segment;
}

std::unique_ptr<SegmentIndex> index_of(const test::SegmentBytes& segment) {
  auto index = std::make_unique<SegmentIndex>(segment.segment().end_position);
  for (const auto& batch : segment.batches()) index->note(batch.offset, batch.position, batch.time);
  return index;
}

/// Searches batch by batch, beginning at `from`. Returns the index of the first batch at or after `time`, or
/// the number of batches if there is none.
std::size_t first_since(const test::SegmentBytes& segment, std::optional<IndexedBatch> from, Timestamp time) {
  const auto& batches = segment.batches();
  std::size_t at = 0;
  while (from && batches[at].position != from->position) ++at;
  while (at != batches.size() && batches[at].time < time) ++at;
  return at;
}

class SegmentIndexTest : public testing::TestWithParam<int> {
 protected:
  test::Random random{GetParam()};
};

TEST_P(SegmentIndexTest, FindsByOffsetTheLastEntryAtOrBefore) {
  const auto segment = some_segment(random, 200);
  const auto index = index_of(segment);
  for (std::uint64_t offset = 42; offset < segment.segment().end_offset.value; ++offset) {
    const auto found = index->find(Offset{offset});
    ASSERT_TRUE(found.has_value());
    ASSERT_LE(found->offset.value, offset);
    // The entry found is at most the spacing and one batch's size away from the batch.
    for (const auto& batch : segment.batches()) {
      if (batch.offset.value > offset) break;
      ASSERT_LT(batch.position, found->position + SegmentIndex::spacing_bytes + 41'000);
    }
  }
  EXPECT_FALSE(index->find(Offset{41}).has_value());
}

TEST_P(SegmentIndexTest, FindsTheFirstBatchSinceATimeAlthoughClocksAreSetBack) {
  const auto segment = some_segment(random, 200);
  const auto index = index_of(segment);
  std::int64_t newest = 0;
  for (const auto& batch : segment.batches()) newest = std::max(newest, batch.time.us);
  EXPECT_EQ(index->newest().us, newest);
  for (int i = 0; i < 300; ++i) {
    const Timestamp time{static_cast<std::int64_t>(990'000 + random.below(200'000))};
    ASSERT_EQ(first_since(segment, index->find(time), time), first_since(segment, std::nullopt, time));
  }
  for (const auto& batch : segment.batches()) {
    ASSERT_EQ(first_since(segment, index->find(batch.time), batch.time),
              first_since(segment, std::nullopt, batch.time));
  }
}

TEST_P(SegmentIndexTest, IsTheSameAfterAStoreAndLoadAndAfterARebuild) {
  auto segment = some_segment(random, static_cast<int>(random.below(200)));
  const auto index = index_of(segment);
  FaultyStorage storage;
  ASSERT_TRUE(SegmentIndexFile::store(storage, path, segment.segment(), *index).ok());
  const auto loaded = SegmentIndexFile::load(storage, path, segment.segment());
  ASSERT_TRUE(loaded.ok()) << loaded.error().text();
  auto file = storage.open("/log/segment", OpenMode::create);
  storage.bytes_of("/log/segment") = segment.finish(1 << 20);
  file = storage.open("/log/segment", OpenMode::read_only);
  const auto rebuilt = SegmentIndexFile::rebuild(**file, segment.segment());
  for (const SegmentIndex* other : {loaded->get(), rebuilt.get()}) {
    EXPECT_TRUE(std::ranges::equal(other->entries(), index->entries()));
    EXPECT_EQ(other->newest(), index->newest());
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SegmentIndexTest, testing::Range(0, 4));

TEST(SegmentIndexFile, RefusesEveryFlippedBitEveryLengthAndEveryOtherSegment) {
  test::Random random;
  const auto segment = some_segment(random, 40);
  const auto index = index_of(segment);
  const auto good = SegmentIndexFile::encode(segment.segment(), *index);
  ASSERT_GT(index->entries().size(), 3U);
  ASSERT_TRUE(SegmentIndexFile::decode(good, segment.segment(), path).ok());
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto bytes = good;
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    const auto decoded = SegmentIndexFile::decode(bytes, segment.segment(), path);
    ASSERT_FALSE(decoded.ok()) << bit;
    ASSERT_EQ(decoded.error().code, bit < 96 ? ErrorCode::foreign_format : ErrorCode::corrupt) << bit;
    ASSERT_NE(decoded.error().message.find(path), std::string::npos);
  }
  auto longer = good;
  longer.resize(good.size() + 24);
  EXPECT_FALSE(SegmentIndexFile::decode(longer, segment.segment(), path).ok());
  for (std::size_t size = 0; size < good.size(); ++size) {
    ASSERT_FALSE(SegmentIndexFile::decode(ByteView(good).first(size), segment.segment(), path).ok()) << size;
  }
  const IndexedSegment mine = segment.segment();
  for (int field = 0; field < 5; ++field) {
    IndexedSegment other = mine;
    if (field == 0) ++other.epoch;
    if (field == 1) ++other.incarnation;
    if (field == 2) ++other.first_offset.value;
    if (field == 3) ++other.end_offset.value;
    if (field == 4) ++other.end_position;
    EXPECT_EQ(SegmentIndexFile::decode(good, other, path).error().code, ErrorCode::corrupt) << field;
  }
}

// The checksum is right but the entries are invalid: the writer had a bug, or was another program.
TEST(SegmentIndexFile, RefusesEntriesInDisorder) {
  const IndexedSegment segment{7, 99, {0}, {100}, 1'000'000};
  const auto encoded = [&](const std::vector<IndexedBatch>& entries) {
    SegmentIndex index(segment.end_position);
    for (const auto& entry : entries) index.note(entry.offset, entry.position, entry.newest);
    auto bytes = SegmentIndexFile::encode(segment, index);
    return SegmentIndexFile::decode(bytes, segment, path).ok();
  };
  EXPECT_TRUE(encoded({{{0}, 4096, {5}}, {{9}, 70'000, {6}}}));
  EXPECT_FALSE(encoded({{{0}, 4095, {5}}}));
  EXPECT_FALSE(encoded({{{0}, 4096, {5}}, {{100}, 70'000, {6}}}));
  EXPECT_FALSE(encoded({{{0}, 4096, {5}}, {{9}, 1'000'000, {6}}}));
  EXPECT_FALSE(encoded({{{9}, 4096, {5}}, {{9}, 70'000, {6}}}));
}

TEST(SegmentIndexFile, SkipsDamageWhenItIsRebuilt) {
  test::Random random;
  auto segment = some_segment(random, 60);
  FaultyStorage storage;
  auto file = storage.open("/log/segment", OpenMode::create);
  auto bytes = segment.finish(1 << 20);
  bytes[segment.batches()[20].position + 20] ^= std::byte{4};
  storage.bytes_of("/log/segment") = bytes;
  const auto rebuilt = SegmentIndexFile::rebuild(**file, segment.segment());
  const auto whole = index_of(segment);
  ASSERT_FALSE(rebuilt->entries().empty());
  EXPECT_GT(rebuilt->entries().back().position, segment.batches()[21].position);
  for (const auto& entry : rebuilt->entries()) {
    EXPECT_NE(entry.position, segment.batches()[20].position);
    EXPECT_TRUE(std::ranges::any_of(segment.batches(), [&](const auto& batch) {
      return batch.position == entry.position && batch.offset == entry.offset;
    }));
  }
}

TEST(SegmentIndexFile, IsCompleteOrRefusedAfterAnyPowerCut) {
  test::Random random;
  const auto segment = some_segment(random, 200);
  const auto index = index_of(segment);
  for (int round = 0; round < 200; ++round) {
    FaultyStorage storage;
    ASSERT_TRUE(SegmentIndexFile::store(storage, path, segment.segment(), *index).ok());
    storage.power_cut([&] { return random.one_in(2); });
    const auto loaded = SegmentIndexFile::load(storage, path, segment.segment());
    ASSERT_TRUE(!loaded || std::ranges::equal((*loaded)->entries(), index->entries()));
  }
}

TEST(SegmentIndexFile, KeepsTheOldFileIfItCannotStoreTheNew) {
  const IndexedSegment segment{7, 99, {0}, {100}, 1'000'000};
  SegmentIndex index(segment.end_position);
  index.note({0}, 4096, {5});
  FaultyStorage storage;
  ASSERT_TRUE(SegmentIndexFile::store(storage, path, segment, index).ok());
  storage.on_call = [](FaultyStorage::Call call, const std::string&) {
    return FaultyStorage::Fault{call == FaultyStorage::Call::write ? ENOSPC : 0, 0};
  };
  EXPECT_EQ(SegmentIndexFile::store(storage, path, segment, index).error().code, ErrorCode::no_space);
  storage.on_call = nullptr;
  EXPECT_TRUE(SegmentIndexFile::load(storage, path, segment).ok());
  ASSERT_TRUE(storage.unlink(path).ok());
  EXPECT_TRUE(is_missing(SegmentIndexFile::load(storage, path, segment).error()));
}

TEST(SegmentIndexFile, IsNamedAsItsSegment) {
  EXPECT_EQ(segment_index_name({42}), "00000000000000000042.idx");
  EXPECT_EQ(segment_index_name_offset("00000000000000000042.idx"), Offset{42});
  EXPECT_EQ(segment_index_name_offset("00000000000000000042.seg"), std::nullopt);
  EXPECT_EQ(segment_index_name_offset("42.idx"), std::nullopt);
  EXPECT_EQ(segment_index_name_offset("00000000000000000042.idx.new"), std::nullopt);
}

TEST(SegmentIndex, ContinuesFromAKnownNewestTime) {
  SegmentIndex index(1'000'000, {500});
  index.note({10}, 200'000, {400});
  EXPECT_EQ(index.find(Timestamp{450}), std::nullopt) << "a batch before the first entry may be the one";
  EXPECT_EQ(index.find(Timestamp{501})->offset, Offset{10});
  EXPECT_EQ(index.newest(), Timestamp{500});
}

TEST(SegmentIndex, StaysWithinTheSpaceOfItsSegment) {
  SegmentIndex index(4096);
  for (std::uint64_t i = 0; i < 10; ++i) index.note({i}, 4096 + i * SegmentIndex::spacing_bytes, {1});
  EXPECT_EQ(index.entries().size(), 1U);
}

TEST(SegmentIndex, IsSearchedWhileItGrows) {
  constexpr std::uint64_t batches = 20'000;
  SegmentIndex index(4096 + batches * SegmentIndex::spacing_bytes);
  std::atomic<std::uint64_t> noted = 0;
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&] {
      for (std::uint64_t end = 0; end != batches;) {
        end = noted.load(std::memory_order_acquire);
        if (end == 0) continue;
        const Offset wanted{(end - 1) * 10 + 3};
        const auto found = index.find(wanted);
        ASSERT_TRUE(found.has_value());
        ASSERT_EQ(found->offset.value % 10, 0U);
        ASSERT_EQ(found->position, 4096 + found->offset.value / 10 * SegmentIndex::spacing_bytes);
        ASSERT_EQ(found->offset.value, (end - 1) * 10);
        const auto older = index.find(Timestamp{static_cast<std::int64_t>(end - 1)});
        ASSERT_EQ(older.has_value(), end > 1);
        ASSERT_TRUE(!older || older->offset.value == (end - 2) * 10);
      }
    });
  }
  for (std::uint64_t i = 0; i < batches; ++i) {
    index.note({i * 10}, 4096 + i * SegmentIndex::spacing_bytes, {static_cast<std::int64_t>(i)});
    noted.store(i + 1, std::memory_order_release);
  }
  for (auto& reader : readers) reader.join();
}

}  // namespace
}  // namespace lightq::log
