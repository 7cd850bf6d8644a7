/// Tests how a durable log opens a directory that a crash, or worse damage, has left behind.
#include "log/segment/recovery.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "log/format/segment_index_file.hpp"
#include "support/log_fixture.hpp"
#include "support/random.hpp"

namespace lightq::log {
namespace {

using test::FaultyStorage;
using test::read_everything;
using test::ReadMessage;

class RecoveryTest : public test::LogFixture {
 protected:
  RecoveryTest() { options.segment_bytes = limits::segment_bytes_min; }

  /// Creates a segment of five batches with offsets 0–1, 2, 3–5, 6 and 7, then drops the log as the end of a
  /// process does.
  void make_small_segment() {
    open();
    for (const auto& payloads : batches) ASSERT_EQ(append(payloads), AppendOutcome::appended);
    log.reset();
  }
  std::vector<ReadMessage> expected() const {
    std::vector<ReadMessage> messages;
    for (const auto& payloads : batches) {
      for (const auto& payload : payloads) messages.push_back({{messages.size()}, payload});
    }
    return messages;
  }
  std::uint64_t end_of_batches() const {
    std::uint64_t end = segment_header_bytes;
    for (const auto& payloads : batches) end += test::make_batch(payloads).size();
    return end;
  }
  std::uint64_t position_of_batch(std::size_t index) const {
    std::uint64_t position = segment_header_bytes;
    for (std::size_t i = 0; i < index; ++i) position += test::make_batch(batches[i]).size();
    return position;
  }
  std::vector<std::byte>& segment() { return storage.bytes_of(segment_path(0)); }

  /// Checks that every readable message is the one appended at its offset, and that the log stores one more
  /// message and reads it again.
  void expect_nothing_wrong(const std::string& what) {
    const auto all = expected();
    for (const ReadMessage& message : read_everything(*log)) {
      ASSERT_LT(message.offset.value, all.size()) << what;
      ASSERT_EQ(message.payload, all[message.offset.value].payload) << what;
    }
    const Offset next = log->next_offset();
    ASSERT_EQ(append({"one more"}), AppendOutcome::appended) << what;
    open();
    const auto after = read_everything(*log);
    ASSERT_FALSE(after.empty()) << what;
    ASSERT_EQ(after.back(), (ReadMessage{next, "one more"})) << what;
  }

  const std::vector<std::vector<std::string>> batches = {
      {"first", "second"}, {"third"}, {"a", "", "c"}, {std::string(300, 'x')}, {"last"}};
};

TEST_F(RecoveryTest, NeverDeliversAWrongMessageWhicheverByteWasFlipped) {
  make_small_segment();
  const auto good = segment();
  for (std::uint64_t at = 0; at < end_of_batches() + 100; ++at) {
    if (at > 200 && at < segment_header_bytes) continue;  // unused zeros in the header's page
    storage.bytes_of(segment_path(0)) = good;
    segment()[at] ^= std::byte{0x41};
    auto opened = SegmentLog::open(options, storage, *pool, now);
    if (!opened) {
      ASSERT_EQ(opened.error().code, ErrorCode::foreign_format) << "byte " << at;
      ASSERT_LT(at, 12U);
      ASSERT_NE(opened.error().message.find(segment_path(0)), std::string::npos);
      continue;
    }
    log = std::move(*opened);
    // If the first bytes of the last batch are lost, recovery cannot distinguish the batch from the earlier
    // content of a recycled file.
    const bool is_last_magic = position_of_batch(4) <= at && at < position_of_batch(4) + 4;
    const bool in_batches = segment_header_bytes <= at && at < end_of_batches();
    const bool in_header = at < 64 || (128 <= at && at < 136);  // the batch mask is part of the header
    ASSERT_EQ(log->recovery().clean(), is_last_magic || (!in_batches && !in_header))
        << "byte " << at << ": " << log->recovery().text();
    if (!in_batches && !in_header) {
      ASSERT_EQ(read_everything(*log), expected()) << "byte " << at;
    }
    expect_nothing_wrong("byte " + std::to_string(at));
    if (HasFatalFailure()) return;
    log.reset();
    for (const auto& path : storage.paths()) {
      if (path != segment_path(0)) {
        ASSERT_TRUE(storage.unlink(path).ok());
      }
    }
  }
}

TEST_F(RecoveryTest, KeepsEveryCompleteBatchAtAnyCut) {
  make_small_segment();
  const auto good = segment();
  for (std::uint64_t size = 0; size <= end_of_batches() + 10; ++size) {
    if (size > 200 && size + 100 < segment_header_bytes) continue;
    auto& bytes = storage.bytes_of(segment_path(0));
    bytes.assign(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
    open();
    std::size_t whole = 0;
    for (std::size_t i = 0;
         i < batches.size() && position_of_batch(i) + test::make_batch(batches[i]).size() <= size; ++i) {
      whole += batches[i].size();
    }
    if (size >= 136) {  // the header reaches up to the batch mask
      ASSERT_EQ(read_everything(*log).size(), whole) << "size " << size;
      ASSERT_EQ(log->next_offset().value, whole);
    }
    expect_nothing_wrong("size " + std::to_string(size));
    if (HasFatalFailure()) return;
    log.reset();
    for (const auto& path : storage.paths()) {
      if (path != segment_path(0)) {
        ASSERT_TRUE(storage.unlink(path).ok());
      }
    }
    if (!storage.exists(segment_path(0))) {
      ASSERT_TRUE(storage.open(segment_path(0), OpenMode::create).ok());
    }
  }
}

// The segment's name will be used again by another segment, which may never get an index.
TEST_F(RecoveryTest, ASegmentThatNeverCameToTheDiskGoesWithItsIndex) {
  make_small_segment();
  const std::string index = directory + "/" + segment_index_name({8});
  for (const std::string& path : {segment_path(8), index})
    ASSERT_TRUE(storage.open(path, OpenMode::create).value_or_throw()->allocate(8192).ok());
  open();
  EXPECT_EQ(Offset{8}, log->next_offset());
  EXPECT_FALSE(storage.exists(segment_path(8)));
  EXPECT_FALSE(storage.exists(index));
}

TEST_F(RecoveryTest, CutsATornTailAndWipesIt) {
  make_small_segment();
  const std::uint64_t last = position_of_batch(4);
  segment()[end_of_batches() - 1] ^= std::byte{1};
  open();
  EXPECT_EQ(log->recovery().bytes_cut, end_of_batches() - last);
  EXPECT_TRUE(log->recovery().damaged.empty());
  EXPECT_NE(log->recovery().text().find("unfinished append"), std::string::npos);
  EXPECT_EQ(log->next_offset(), Offset{7});
  log.reset();
  for (std::uint64_t at = last; at < end_of_batches(); ++at) ASSERT_EQ(segment()[at], std::byte{0}) << at;
}

TEST_F(RecoveryTest, AnAppendWithoutItsFirstSectorIsNotCompletedByTheNextOne) {
  open();
  // Makes the next batch's first 8 bytes, which are the same in each batch, end a sector.
  append({std::string(436, 'x')});
  append({"never became durable"});
  const auto tail = static_cast<std::ptrdiff_t>(segment_header_bytes + 504);
  const std::vector<std::byte> first_sector(segment().begin() + tail, segment().begin() + tail + 8);
  std::fill_n(segment().begin() + tail, 8, std::byte{0});
  open();
  EXPECT_EQ(log->next_offset(), Offset{1});
  std::copy(first_sector.begin(), first_sector.end(), segment().begin() + tail);
  open();
  EXPECT_EQ(log->next_offset(), Offset{1}) << "all that came of the next append are 8 bytes";
}

TEST_F(RecoveryTest, DoesNotTakeUnreadableSectorsForTheEnd) {
  open();
  append({"a", std::string(8000, 'b')});
  append({"c"});
  ASSERT_TRUE(log->flush().ok());
  const auto whole = segment();
  log.reset();
  // The first reads get the page with the header and succeed; all later reads fail.
  storage.on_call = [reads = 0](FaultyStorage::Call call, const std::string&) mutable {
    if (call != FaultyStorage::Call::read) return FaultyStorage::Fault{};
    return FaultyStorage::Fault{++reads > 2 ? EIO : 0, 0};
  };
  const auto opened = SegmentLog::open(options, storage, *pool, now);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::io_error);
  EXPECT_NE(opened.error().text().find(segment_path(0)), std::string::npos);
  storage.on_call = nullptr;
  EXPECT_TRUE(segment() == whole) << "nothing is wiped";
  open();
  EXPECT_EQ(log->next_offset(), Offset{3});
}

TEST_F(RecoveryTest, DamageBeforeSoundBatchesIsNotATornTail) {
  make_small_segment();
  segment()[position_of_batch(2) + 70] ^= std::byte{1};
  open();
  ASSERT_EQ(log->recovery().damaged.size(), 1U);
  const DamagedRange& range = log->recovery().damaged[0];
  EXPECT_EQ(range.file, segment_path(0));
  EXPECT_EQ(range.begin_position, position_of_batch(2));
  EXPECT_EQ(range.end_position, position_of_batch(3));
  EXPECT_EQ(range.first, Offset{3});
  EXPECT_EQ(range.next, Offset{6});
  EXPECT_EQ(log->recovery().bytes_cut, 0U);
  EXPECT_EQ(log->recovery().messages, 5U);
  EXPECT_EQ(log->next_offset(), Offset{8});
  ReadPosition place{{3}};
  const ReadResult result = log->read(place);
  EXPECT_EQ(result.outcome, ReadOutcome::damaged);
  EXPECT_EQ(result.next, Offset{6});
  EXPECT_NE(log->last_error().message.find(segment_path(0)), std::string::npos);
  append({"after"});
  const auto messages = read_everything(*log);
  ASSERT_EQ(messages.size(), 6U);
  EXPECT_EQ(messages.back(), (ReadMessage{{8}, "after"}));
}

TEST_F(RecoveryTest, FindsTheNextBatchAfterALostHeader) {
  make_small_segment();
  std::fill_n(segment().begin() + static_cast<std::ptrdiff_t>(position_of_batch(1)), 64, std::byte{0});
  open();
  ASSERT_EQ(log->recovery().damaged.size(), 1U);
  EXPECT_EQ(log->recovery().damaged_messages, 1U);
  EXPECT_EQ(read_everything(*log).size(), 7U);
}

// A message may contain bytes that look like a batch of the log that stores the message.
TEST_F(RecoveryTest, IsNotFooledByABatchInsideAMessage) {
  make_small_segment();
  const std::uint64_t first = position_of_batch(0);
  const std::string copy(as_text(ByteView(segment()).subspan(first, position_of_batch(1) - first)));
  open();
  append({copy});
  append({"end"});
  log.reset();
  segment()[end_of_batches() + 64 + 4 + copy.size() - 1] ^= std::byte{1};  // the message's last byte
  open();
  const auto messages = read_everything(*log);
  ASSERT_EQ(messages.size(), 9U);
  EXPECT_EQ(messages.back(), (ReadMessage{{9}, "end"}));
  EXPECT_EQ(log->recovery().damaged_messages, 1U);
}

class ManySegmentsTest : public RecoveryTest {
 protected:
  /// Appends 40 messages of 10,000 bytes, six in each segment. All segments except the last are sealed.
  void make_segments() {
    open();
    for (int i = 0; i < 40; ++i) ASSERT_EQ(append({payload(i)}), AppendOutcome::appended);
    ASSERT_TRUE(log->flush().ok());
    ASSERT_TRUE(storage.exists(segment_path(6)) && storage.exists(segment_path(12)));
    log.reset();
  }
  static std::string payload(int i) { return std::to_string(i) + std::string(10'000, 'p'); }
};

TEST_F(ManySegmentsTest, OpensSealedSegmentsWithoutReadingThem) {
  make_segments();
  auto reads = std::make_shared<std::map<std::string, int>>();
  storage.on_call = [=](FaultyStorage::Call call, const std::string& path) {
    if (call == FaultyStorage::Call::read) ++(*reads)[path];
    return FaultyStorage::Fault{};
  };
  open();
  EXPECT_TRUE(log->recovery().clean());
  EXPECT_EQ((*reads)[segment_path(6)], 1) << "the header's page";
  EXPECT_EQ(read_everything(*log).size(), 40U);
}

TEST_F(ManySegmentsTest, ReportsAMissingFileAndNeverMakesItAgain) {
  make_segments();
  ASSERT_TRUE(storage.unlink(segment_path(12)).ok());
  open();
  ASSERT_EQ(log->recovery().damaged.size(), 1U);
  EXPECT_EQ(log->recovery().damaged[0].first, Offset{12});
  EXPECT_EQ(log->recovery().damaged[0].next, Offset{18});
  ReadPosition place{{13}};
  const ReadResult result = log->read(place);
  EXPECT_EQ(result.outcome, ReadOutcome::damaged);
  EXPECT_EQ(result.next, Offset{18});
  EXPECT_NE(log->last_error().message.find("missing"), std::string::npos);
  EXPECT_EQ(read_everything(*log).size(), 34U);
  EXPECT_FALSE(storage.exists(segment_path(12)));
}

TEST_F(ManySegmentsTest, FindsDamageInASealedSegmentWhenItIsRead) {
  make_segments();
  storage.bytes_of(segment_path(6))[segment_header_bytes + 25'000] ^= std::byte{1};
  open();
  EXPECT_TRUE(log->recovery().clean());
  for (const bool directly : {false, true}) {
    ReadPosition place{{directly ? 8U : 7U}};
    if (!directly) {
      ASSERT_EQ(log->read(place).outcome, ReadOutcome::batch);
      place.offset = {8};
    }
    const ReadResult result = log->read(place);
    ASSERT_EQ(result.outcome, ReadOutcome::damaged);
    EXPECT_EQ(result.next, Offset{9});
    EXPECT_NE(log->last_error().message.find(segment_path(6)), std::string::npos);
  }
  EXPECT_EQ(read_everything(*log).size(), 39U);
}

TEST_F(ManySegmentsTest, ReportsASegmentWithoutASoundHeaderAndKeepsItsOffsets) {
  make_segments();
  storage.bytes_of(segment_path(6))[20] ^= std::byte{1};
  storage.bytes_of(segment_path(36))[20] ^= std::byte{1};
  open();
  EXPECT_EQ(log->recovery().damaged_messages, 10U) << log->recovery().text();
  EXPECT_EQ(log->next_offset(), Offset{40}) << "the offsets of unreadable messages are not given away again";
  EXPECT_EQ(read_everything(*log).size(), 30U);
  append({"after"});
  open();
  EXPECT_EQ(read_everything(*log).back(), (ReadMessage{{40}, "after"}));
}

TEST_F(ManySegmentsTest, RefusesTwoFilesThatClaimTheSameOffsets) {
  make_segments();
  const std::string path = segment_path(12);
  SegmentPage page{};
  std::copy_n(storage.bytes_of(path).begin(), page.size(), page.begin());
  SegmentHeader header = *decode_segment_header(page).header;
  header.first_offset = {11};
  page = encode_segment_header(header);
  ASSERT_TRUE(storage.rename(path, segment_path(11)).ok());
  std::copy(page.begin(), page.end(), storage.bytes_of(segment_path(11)).begin());
  const auto opened = SegmentLog::open(options, storage, *pool, now);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::corrupt);
}

TEST_F(RecoveryTest, RefusesAFileOfAnotherByteOrderOrVersion) {
  make_small_segment();
  const auto good = segment();
  std::reverse(segment().begin(), segment().begin() + 8);
  EXPECT_EQ(SegmentLog::open(options, storage, *pool, now).error().code, ErrorCode::foreign_format);
  segment() = good;
  segment()[8] = std::byte{2};
  EXPECT_EQ(SegmentLog::open(options, storage, *pool, now).error().code, ErrorCode::foreign_format);
}

TEST_F(RecoveryTest, ForgetsAFileThatAnUnfinishedAppendHadMade) {
  ASSERT_TRUE(storage.open(segment_path(0), OpenMode::create).ok());
  storage.bytes_of(segment_path(0)).resize(65536);
  open();
  EXPECT_FALSE(storage.exists(segment_path(0)));
  EXPECT_EQ(append({"a"}), AppendOutcome::appended);
}

/// A log whose last segment is full. A power cut removed the segment that was begun behind it.
class FullLastSegmentTest : public RecoveryTest, public testing::WithParamInterface<bool> {
 protected:
  FullLastSegmentTest() {
    options.flush_interval_ms = 0;
    options.mapped_writes = GetParam();
    open();
    while (log->segments().size() < 2) add();
    const std::string last = log->segments().active().path();
    messages.pop_back();
    log.reset();
    EXPECT_TRUE(storage.unlink(last).ok());
  }
  void add() {
    messages.push_back(
        {log->next_offset(), std::string(20'000, static_cast<char>('a' + messages.size() % 26))});
    ASSERT_EQ(append({messages.back().payload}), AppendOutcome::appended);
  }
  /// Opens the log and counts its reads of segments, its syncs and its writes.
  void open_counting() {
    log.reset();
    storage.on_call = [this](FaultyStorage::Call call, const std::string& path) {
      reads += call == FaultyStorage::Call::read && path.ends_with(".seg") ? 1 : 0;
      const bool syncs_any = call == FaultyStorage::Call::sync || call == FaultyStorage::Call::sync_directory;
      syncs += syncs_any ? 1 : 0;
      writes += call == FaultyStorage::Call::write ? 1 : 0;
      return FaultyStorage::Fault{};
    };
    open();
    storage.on_call = nullptr;
  }

  std::vector<ReadMessage> messages;
  std::size_t reads = 0;
  std::size_t syncs = 0;
  std::size_t writes = 0;
};

INSTANTIATE_TEST_SUITE_P(Writing, FullLastSegmentTest, testing::Bool(),
                         [](const auto& param) { return param.param ? "mapped" : "written"; });

TEST_P(FullLastSegmentTest, IsMarkedByItsSealWhenItIsClosed) {
  open();
  EXPECT_FALSE(log->recovery().closed) << "its seal is of this boot only";
  ASSERT_TRUE(log->segments().active().sealed);
  ASSERT_TRUE(log->close().ok());
  log.reset();
  storage.power_cut([] { return false; });
  open_counting();
  EXPECT_TRUE(log->recovery().closed);
  EXPECT_EQ(log->recovery().scanned_bytes, 0U);
  EXPECT_EQ(log->durable_offset(), log->next_offset());
  EXPECT_EQ(reads, log->segments().size() + 1) << "a page of each, the last one's twice";
  EXPECT_EQ(syncs, 0U);
  EXPECT_EQ(writes, 0U);
  EXPECT_EQ(read_everything(*log), messages);
}

// The seal may be in memory only, if its writer ended before the seal was on disk.
TEST_P(FullLastSegmentTest, AProcessThatFoundItClosedClosesItForGoodToo) {
  open();
  ASSERT_TRUE(log->flush().ok());
  open();
  ASSERT_TRUE(log->recovery().closed);
  ASSERT_TRUE(log->close().ok());
  log.reset();
  storage.power_cut([] { return false; });
  open_counting();
  EXPECT_TRUE(log->recovery().closed);
  EXPECT_EQ(syncs, 0U);
  EXPECT_EQ(read_everything(*log), messages);
}

TEST_P(FullLastSegmentTest, ContinuesInAnotherSegmentAfterAReopen) {
  open();
  ASSERT_TRUE(log->close().ok());
  open();
  ASSERT_TRUE(log->recovery().closed);
  add();
  open();
  EXPECT_FALSE(log->recovery().closed);
  EXPECT_EQ(read_everything(*log), messages);
  add();
  ASSERT_TRUE(log->flush().ok());
  log.reset();
  storage.power_cut([] { return false; });
  open();
  EXPECT_EQ(read_everything(*log), messages);
  ASSERT_TRUE(log->close().ok());
  open_counting();
  EXPECT_TRUE(log->recovery().closed);
  EXPECT_EQ(syncs, 0U);
}

// A power cut undid an earlier segment's seal, which is not synced, and that segment ends in a broken batch.
// The bytes cut there say nothing about the end of the log.
TEST_P(FullLastSegmentTest, IsClosedIfAnEarlierSegmentHasLostItsSealAndItsEnd) {
  open();
  while (log->segments().size() < 3) add();
  const std::string last = log->segments().active().path();
  messages.pop_back();
  log.reset();
  ASSERT_TRUE(storage.unlink(last).ok());
  open();
  ASSERT_TRUE(log->close().ok());
  const auto end_position = static_cast<std::ptrdiff_t>(log->segments().oldest().end_position());
  log.reset();
  std::vector<std::byte>& first = storage.bytes_of(segment_path(0));
  std::fill_n(first.begin() + segment_seal_position, segment_seal_bytes, std::byte{0});
  *(first.begin() + end_position - 1) ^= std::byte{1};
  open();
  EXPECT_NE(log->recovery().bytes_cut, 0U);
  EXPECT_EQ(log->recovery().damaged_messages, 1U);
  EXPECT_TRUE(log->recovery().closed);
  EXPECT_EQ(log->durable_offset(), log->next_offset());
}

}  // namespace
}  // namespace lightq::log
