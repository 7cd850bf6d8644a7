/// Tests the parts of a segment log that hold its state: the list of segments, the directory, the mapped
/// segments, the dropped segments, and the mark of a closed log.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "log/segment_log/segment_log.hpp"
#include "support/faulty_storage.hpp"

namespace lightq::log {
namespace {

constexpr std::uint64_t batch_bytes = 100;

/// Returns a segment of one batch with the offsets [first, end).
std::unique_ptr<SegmentFile> make_segment(std::uint64_t first, std::uint64_t end,
                                          const std::string& path = "") {
  const SegmentHeader header{.epoch = 1, .first_offset = {first}, .incarnation = 1, .file_bytes = 8192};
  auto segment = std::make_unique<SegmentFile>(path, header, header.file_bytes, nullptr);
  segment->note_batch({segment_header_bytes, batch_bytes, {first}, {end}, {1000}, 1, 0});
  return segment;
}

SegmentList::Segments three_segments() {
  SegmentList::Segments segments;
  segments.push_back(make_segment(0, 100));
  segments.push_back(make_segment(100, 240));
  segments.push_back(make_segment(250, 260));
  return segments;
}

TEST(SegmentListTest, KeepsTheNumbersOfSegmentsWhenOlderOnesLeave) {
  SegmentList list(three_segments());
  EXPECT_EQ(list.next_offset(), Offset{260});
  EXPECT_EQ(list.stored_bytes(), 3 * batch_bytes);
  EXPECT_EQ(list.index_of(2), 2U);
  EXPECT_EQ(list.take_oldest()->first_offset(), Offset{0});
  EXPECT_EQ(list.first_offset(), Offset{100});
  EXPECT_EQ(list.stored_bytes(), 2 * batch_bytes);
  EXPECT_FALSE(list.index_of(0).has_value());
  EXPECT_EQ(list.index_of(1), 0U);
  EXPECT_EQ(list.index_of(2), 1U);
  EXPECT_FALSE(list.index_of(3).has_value());
  EXPECT_EQ(list.end_number(), 3U);
}

TEST(SegmentListTest, CountsLostMessagesAsThoseOfTheSegmentBefore) {
  SegmentList list(three_segments());
  EXPECT_EQ(list.segment_of({99}), 0U);
  EXPECT_EQ(list.segment_of({100}), 1U);
  EXPECT_EQ(list.segment_of({245}), 1U) << "240 to 249 are missing";
  EXPECT_EQ(list.segment_of({259}), 2U);
  list.take_oldest();
  EXPECT_EQ(list.end_of_oldest(), Offset{250});
  list.take_oldest();
  EXPECT_EQ(list.end_of_oldest(), Offset{260}) << "the last one ends with its batches";
}

TEST(SegmentListTest, KeepsItsNextOffsetWithoutSegments) {
  SegmentList list(three_segments());
  while (!list.empty()) list.take_oldest();
  EXPECT_EQ(list.first_offset(), Offset{260});
  EXPECT_EQ(list.next_offset(), Offset{260});
  EXPECT_EQ(list.stored_bytes(), 0U);
  EXPECT_EQ(list.node_of({0}), nullptr);
}

class LogPartsTest : public testing::Test {
 protected:
  static std::vector<std::string> paths_of(const std::vector<RetiredSegment>& files) {
    std::vector<std::string> paths;
    for (const RetiredSegment& file : files) paths.push_back(file.path);
    return paths;
  }
  static RetiredSegment dropped_file(const std::string& path, std::uint64_t end) {
    RetiredSegment file;
    file.path = path;
    file.bytes = 1000;
    file.end_offset = {end};
    return file;
  }

  test::FaultyStorage storage;
  SegmentPool pool{{"/pool"}, storage};
  SegmentLogOptions options{.directory = "/log"};
  SegmentList segments{three_segments()};
};

TEST_F(LogPartsTest, TheDirectoryIsSyncedAfterEachNewSegment) {
  LogDirectory directory(options.directory, storage, false, false);
  EXPECT_TRUE(directory.is_synced());
  ASSERT_TRUE(directory.make().ok());
  directory.note_roll();
  EXPECT_FALSE(directory.is_synced());
  SegmentWork first = directory.new_work();
  directory.add_syncs(first);
  EXPECT_EQ(first.sync_directories, (std::vector<std::string>{"/log", "/"}));
  directory.note_roll();  // while the first work is done
  directory.note_synced(first);
  EXPECT_FALSE(directory.is_synced()) << "the second segment's name is not on disk";
  SegmentWork second = directory.new_work();
  directory.add_syncs(second);
  EXPECT_EQ(second.sync_directories, (std::vector<std::string>{"/log"}));
  directory.note_synced(second);
  EXPECT_TRUE(directory.is_synced());
}

TEST_F(LogPartsTest, TheDirectoryGivesAPendingNameOnce) {
  ASSERT_TRUE(storage.open("/log/next.prepared", OpenMode::create).ok());
  LogDirectory directory(options.directory, storage, true, true);
  EXPECT_TRUE(directory.give_name().ok()) << "nothing is pending";
  directory.name_later("/log/next.prepared", "/log/5.seg");
  EXPECT_TRUE(directory.lacks_name());
  EXPECT_NE(directory.new_work().name, nullptr);
  ASSERT_TRUE(directory.give_name().ok());
  EXPECT_FALSE(directory.lacks_name());
  EXPECT_TRUE(storage.exists("/log/5.seg"));
  EXPECT_TRUE(directory.give_name().ok());
}

TEST_F(LogPartsTest, MapsSixteenSegmentsAtATime) {
  SegmentList::Segments many;
  for (std::uint64_t i = 0; i < 17; ++i) {
    const std::string path = "/" + std::to_string(i) + ".seg";
    auto file = storage.open(path, OpenMode::create);
    ASSERT_TRUE(file.ok() && (*file)->allocate(8192).ok());
    many.push_back(make_segment(i, i + 1, path));
    many.back()->synced_position = many.back()->end_position();
  }
  ReadViews views(storage);
  for (std::size_t i = 0; i < 16; ++i) ASSERT_TRUE(views.open(*many[i]).ok());
  ASSERT_TRUE(views.open(*many[0]).ok()) << "it is the most recently used one now";
  ASSERT_TRUE(views.open(*many[16]).ok());
  EXPECT_TRUE(many[0]->is_mapped());
  EXPECT_FALSE(many[1]->is_mapped());
  EXPECT_TRUE(many[16]->is_mapped());
  views.forget(*many[2]);
  views.release();
  EXPECT_FALSE(many[0]->is_mapped());
  EXPECT_TRUE(many[2]->is_mapped()) << "a forgotten segment is not touched";
}

TEST_F(LogPartsTest, UnmapsOtherSegmentsIfDescriptorsRunOut) {
  for (const char* const path : {"/a.seg", "/b.seg"}) {
    auto file = storage.open(path, OpenMode::create);
    ASSERT_TRUE(file.ok() && (*file)->allocate(8192).ok());
  }
  const auto first = make_segment(0, 1, "/a.seg");
  const auto second = make_segment(1, 2, "/b.seg");
  first->synced_position = first->end_position();
  ReadViews views(storage);
  ASSERT_TRUE(views.open(*first).ok());
  storage.on_call = [&](test::FaultyStorage::Call call, const std::string&) {
    const bool fails = call == test::FaultyStorage::Call::open && first->is_mapped();
    return test::FaultyStorage::Fault{fails ? EMFILE : 0, 0};
  };
  EXPECT_TRUE(views.open(*second).ok());
  EXPECT_FALSE(first->is_mapped());
}

TEST_F(LogPartsTest, RetiresDroppedFilesInOrderUpToTheFirstThatIsKept) {
  DroppedSegments dropped(options, segments, pool);
  dropped.add(dropped_file("/log/a", 100));
  dropped.add(dropped_file("/log/b", 250));
  dropped.add(dropped_file("/log/c", 300));
  EXPECT_EQ(dropped.bytes(), 3000U);
  EXPECT_EQ(dropped.end(), Offset{300});
  dropped.keep_from({120});
  EXPECT_EQ(paths_of(dropped.ready({})), (std::vector<std::string>{"/log/a"}));
  EXPECT_EQ(dropped.ready({}, DroppedSegments::Reason::disk_is_full).size(), 3U);
  dropped.keep_from({~std::uint64_t{0}});
  EXPECT_EQ(dropped.ready({}).size(), 3U);
  // A failed sync keeps durable_offset at 250, which /log/b records.
  EXPECT_EQ(paths_of(dropped.ready(Offset{250})), (std::vector<std::string>{"/log/a"}));
  EXPECT_EQ(dropped.ready(Offset{250}, DroppedSegments::Reason::disk_is_full).size(), 1U);
}

TEST_F(LogPartsTest, TriesToRetireAgainAfterASecond) {
  options.retire_gather_us = 100;
  DroppedSegments dropped(options, segments, pool);
  const Timestamp now{5'000'000};
  dropped.note_try(now);
  dropped.add(dropped_file("/log/a", 100));
  dropped.add(dropped_file("/log/b", 250));
  EXPECT_TRUE(dropped.gathers({}));
  EXPECT_FALSE(dropped.are_due({now.us + 99}));
  EXPECT_TRUE(dropped.are_due({now.us + 100}));
  SegmentWork work;
  work.retire = dropped.ready({});
  dropped.note_try(now);
  dropped.note_retired(work, 1);
  EXPECT_EQ(dropped.oldest_path(), "/log/b");
  EXPECT_EQ(dropped.bytes(), 1000U);
  EXPECT_FALSE(dropped.gathers({})) << "the last job could not retire all";
  EXPECT_FALSE(dropped.are_due({now.us + 999'999}));
  EXPECT_TRUE(dropped.are_due({now.us + 1'000'000}));
}

TEST_F(LogPartsTest, ManyDroppedFilesAreRetiredWithoutWaiting) {
  options.retire_gather_us = 1'000'000;
  DroppedSegments dropped(options, segments, pool);
  const Timestamp now{5'000'000};
  dropped.note_try(now);
  for (std::uint64_t i = 0; i < DroppedSegments::unsynced_open_max; ++i) {
    EXPECT_FALSE(dropped.are_due(now)) << i;
    EXPECT_FALSE(dropped.are_many());
    dropped.add(dropped_file("/log/" + std::to_string(i), i + 1));
  }
  EXPECT_TRUE(dropped.are_many());
  EXPECT_TRUE(dropped.are_due(now));
}

TEST_F(LogPartsTest, FilesGrowWithTheLog) {
  options.first_segment_bytes = 64 * limits::KiB;
  options.segment_bytes = 4 * limits::MiB;
  LogDirectory directory(options.directory, storage, false, false);
  DroppedSegments dropped(options, segments, pool);
  Error error;
  SegmentList list({});
  SegmentSync sync(options, storage, pool, list, directory, dropped, error, {});
  const LogIdentity identity{1, 1};
  const NextSegment next(options, pool, list, dropped, sync, identity, nullptr);
  std::vector<std::uint64_t> sizes;
  for (int i = 0; i < 6; ++i) {
    sizes.push_back(next.next_bytes(0) / limits::KiB);
    const SegmentHeader header{
        .epoch = 1, .first_offset = {}, .incarnation = 1, .file_bytes = next.next_bytes(0)};
    list.add(std::make_unique<SegmentFile>("", header, header.file_bytes, nullptr));
  }
  EXPECT_EQ(sizes, (std::vector<std::uint64_t>{64, 256, 1024, 2048, 4096, 4096}));
  const NextSegment in_new_log(options, pool, segments, dropped, sync, identity, nullptr);
  EXPECT_EQ(in_new_log.next_bytes(3 * limits::MiB), 4 * limits::MiB);
  EXPECT_GT(in_new_log.next_bytes(5 * limits::MiB), 5 * limits::MiB) << "a batch above segment_bytes";
}

TEST_F(LogPartsTest, TheMarkOfAClosedLogIsRemovedFromTheDisk) {
  auto file = storage.open("/1.seg", OpenMode::create);
  ASSERT_TRUE(file.ok() && (*file)->allocate(8192).ok());
  const auto segment = make_segment(0, 1, "/1.seg");
  CloseMark mark(storage, RecoveryReport{});
  EXPECT_FALSE(mark.may_be_on_disk());
  int writes = 0;
  int syncs = 0;
  storage.on_call = [&](test::FaultyStorage::Call call, const std::string&) {
    writes += call == test::FaultyStorage::Call::write;
    syncs += call == test::FaultyStorage::Call::sync;
    return test::FaultyStorage::Fault{};
  };
  ASSERT_TRUE(mark.write(*segment).ok());
  EXPECT_TRUE(mark.may_be_on_disk());
  EXPECT_TRUE(segment->marks().checkpoint().clean);
  EXPECT_EQ(writes, 2) << "one into each slot";
  EXPECT_EQ(syncs, 1);
  ASSERT_TRUE(mark.write(*segment).ok());
  EXPECT_EQ(writes, 2) << "nothing has changed";
  ASSERT_TRUE(mark.remove(*segment).ok());
  EXPECT_FALSE(segment->marks().checkpoint().clean);
  EXPECT_EQ(syncs, 2);
  EXPECT_FALSE(mark.may_be_on_disk());
}

}  // namespace
}  // namespace lightq::log
