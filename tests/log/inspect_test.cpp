/// Tests reading a log that may be broken, may contain files of another log, or changes meanwhile.
#include "log/tools/inspect.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "log/saved_state/cursor_file.hpp"
#include "support/tool_fixture.hpp"

namespace lightq::test {
namespace {

using log::Finding;

class InspectTest : public ToolFixture {};

TEST_F(InspectTest, FindsNothingInASoundLog) {
  fill(100);
  Keeper keeper;
  const auto totals = inspect(keeper);
  EXPECT_TRUE(keeper.findings.empty()) << keeper.text();
  EXPECT_EQ(keeper.messages, written);
  EXPECT_EQ(totals.messages, 100U);
  EXPECT_EQ(totals.next_offset, Offset{100});
  EXPECT_EQ(totals.segments, segments().size());
  ASSERT_GT(totals.segments, 3U);
  EXPECT_EQ(totals.batches, 20U);
}

TEST_F(InspectTest, ReadsARangeOfOffsetsWithoutReadingOthers) {
  fill(100);
  flip(segment_path(0), 5000);
  log::InspectOptions how;
  how.from = {51};
  how.to = {58};
  Keeper keeper;
  ASSERT_TRUE(log::inspect_log(directory, storage, how, keeper).ok());
  EXPECT_TRUE(keeper.findings.empty()) << keeper.text();
  ASSERT_FALSE(keeper.messages.empty());
  EXPECT_EQ(keeper.messages.begin()->first, 50U);  // whole batches
  EXPECT_EQ(keeper.messages.rbegin()->first, 59U);
}

TEST_F(InspectTest, NamesFilePositionAndOffsetsOfAFlippedBit) {
  fill(100);
  const std::uint64_t second = segments()[1];
  flip(segment_path(second), log::segment_header_bytes + 100);
  Keeper keeper;
  const auto totals = inspect(keeper);
  ASSERT_EQ(keeper.findings.size(), 1U) << keeper.text();
  const Finding& found = keeper.findings[0];
  EXPECT_EQ(found.kind, Kind::damaged);
  EXPECT_EQ(found.file, segment_path(second));
  EXPECT_EQ(found.begin_position, log::segment_header_bytes);
  EXPECT_EQ(found.first, Offset{second});
  EXPECT_EQ(found.next, Offset{second + 5});
  EXPECT_EQ(totals.lost_messages, 5U);
  EXPECT_EQ(totals.messages, 95U);
}

TEST_F(InspectTest, FindsDamageAtTheVeryEndOfASealedSegment) {
  fill(100);
  const std::uint64_t second = segments()[1];
  const auto third = segments()[2];
  const auto& bytes = storage.bytes_of(segment_path(0));
  const auto seal_end = load_little_endian<std::uint64_t>(bytes.data() + log::segment_seal_position + 8);
  flip(segment_path(second), seal_end - 1);
  Keeper keeper;
  inspect(keeper);
  ASSERT_EQ(keeper.findings.size(), 1U) << keeper.text();
  EXPECT_EQ(keeper.findings[0].next, Offset{third});
}

TEST_F(InspectTest, DistinguishesATornTailFromDamage) {
  fill(12);
  auto& bytes = storage.bytes_of(segment_path(0));
  const auto end = static_cast<std::size_t>(log::segment_header_bytes + 2 * (64 + 5 * 3004) + 64 + 2 * 3004);
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(end - 100),
            bytes.begin() + static_cast<std::ptrdiff_t>(end), std::byte{0});
  Keeper keeper;
  const auto totals = inspect(keeper);
  EXPECT_EQ(totals.damages, 0U);
  EXPECT_EQ(totals.messages, 10U);
  EXPECT_EQ(totals.torn_bytes, 64U + 2 * 3004);
  EXPECT_EQ(keeper.of(Kind::torn).size(), 1U) << keeper.text();
}

TEST_F(InspectTest, ReportsAMissingFileATruncatedOneAndOneOfAnotherLog) {
  fill(140);
  const auto found = segments();
  ASSERT_TRUE(storage.unlink(segment_path(found[1])).ok());
  storage.bytes_of(segment_path(found[3])).resize(20'000);
  auto header = log::decode_segment_header([&] {
    log::SegmentPage page{};
    std::copy_n(storage.bytes_of(segment_path(found[5])).begin(), page.size(), page.begin());
    return page;
  }());
  header.header->incarnation ^= 1;
  const auto page = log::encode_segment_header(*header.header);
  std::copy(page.begin(), page.end(), storage.bytes_of(segment_path(found[5])).begin());
  Keeper keeper;
  const auto totals = inspect(keeper);
  ASSERT_EQ(keeper.findings.size(), 3U) << keeper.text();
  EXPECT_EQ(keeper.findings[0].kind, Kind::missing);
  EXPECT_EQ(keeper.findings[0].file, segment_path(found[0]));
  EXPECT_EQ(keeper.findings[0].first, Offset{found[1]});
  EXPECT_EQ(keeper.findings[0].next, Offset{found[2]});
  EXPECT_EQ(keeper.findings[1].kind, Kind::damaged);
  EXPECT_EQ(keeper.findings[1].file, segment_path(found[3]));
  EXPECT_EQ(keeper.findings[1].next, Offset{found[4]});
  EXPECT_EQ(keeper.findings[2].kind, Kind::stranger);
  EXPECT_EQ(keeper.findings[2].file, segment_path(found[5]));
  EXPECT_EQ(totals.messages + totals.lost_messages, 140U);
}

TEST_F(InspectTest, ReportsFilesUnderWrongNamesAndTwice) {
  fill(100);
  const auto found = segments();
  put(segment_path(7), storage.bytes_of(segment_path(found[2])));
  Keeper keeper;
  const auto totals = inspect(keeper);
  EXPECT_EQ(keeper.of(Kind::misnamed).size(), 1U) << keeper.text();
  EXPECT_EQ(keeper.of(Kind::overlap).size(), 1U) << keeper.text();
  EXPECT_EQ(keeper.messages, written);
  EXPECT_EQ(totals.lost_messages, 0U);
}

// The file belongs to a dropped segment and was used again. A power cut undid all of the new segment except
// its name.
TEST_F(InspectTest, TakesAFileOfAnEarlierLifeForATornEnd) {
  fill(100);
  const auto found = segments();
  const auto dropped = storage.bytes_of(segment_path(found[0]));
  ASSERT_TRUE(storage.unlink(segment_path(found[0])).ok());
  put(segment_path(1000), dropped);
  Keeper keeper;
  const auto totals = inspect(keeper);
  ASSERT_EQ(keeper.findings.size(), 1U) << keeper.text();
  EXPECT_EQ(keeper.findings[0].kind, Kind::torn);
  EXPECT_EQ(keeper.findings[0].file, segment_path(1000));
  EXPECT_EQ(totals.lost_messages, 0U);
  EXPECT_EQ(totals.messages, 100U - found[1]);
}

TEST_F(InspectTest, ReportsUnreadableSectors) {
  fill(100);
  const std::string path = segment_path(segments()[1]);
  const std::size_t bad = log::segment_header_bytes + 4096;
  Keeper keeper;
  storage.on_read = [&](const std::string& where, std::uint64_t position, std::size_t bytes) {
    return where == path && position < bad + 4096 && bad < position + bytes;
  };
  inspect(keeper);
  ASSERT_EQ(keeper.findings.size(), 1U) << keeper.text();
  EXPECT_EQ(keeper.findings[0].kind, Kind::unreadable);
  EXPECT_EQ(keeper.findings[0].begin_position, bad);
  EXPECT_EQ(keeper.messages.size(), 95U);
}

TEST_F(InspectTest, DoesNotTakeABatchBeingWrittenForDamage) {
  fill(10);
  const std::string path = segment_path(0);
  const std::size_t second = log::segment_header_bytes + 64 + 5 * 3004;
  const std::byte whole = storage.bytes_of(path).at(second + 70);
  // The last bytes of this batch have not arrived yet.
  storage.bytes_of(path).at(second + 70) ^= std::byte{1};
  int reads = 0;
  storage.on_call = [&](FaultyStorage::Call call, const std::string& where) -> FaultyStorage::Fault {
    // The earlier reads get the page and the window with the incomplete batch. From this read on the batch
    // is complete, and another batch follows it.
    if (call == FaultyStorage::Call::read && where == path && ++reads == 4) {
      storage.bytes_of(path).at(second + 70) = whole;
      fill(5);
    }
    return {};
  };
  Keeper keeper;
  const auto totals = inspect(keeper);
  EXPECT_EQ(totals.damages, 0U) << keeper.text();
  EXPECT_GE(reads, 4);
  EXPECT_EQ(keeper.messages, written);
}

TEST_F(InspectTest, SkipsASegmentThatIsDroppedAndRecycledDuringTheRead) {
  fill(100);
  const std::string path = segment_path(segments()[0]);
  int reads = 0;
  storage.on_call = [&](FaultyStorage::Call call, const std::string& where) -> FaultyStorage::Fault {
    if (call != FaultyStorage::Call::read || where != path || ++reads != 2) return {};
    auto& bytes = storage.bytes_of(path);
    std::fill(bytes.begin() + 4096, bytes.end(), std::byte{0x55});
    EXPECT_TRUE(storage.rename(path, "/pool/9.free").ok());
    return {};
  };
  Keeper keeper;
  const auto totals = inspect(keeper);
  EXPECT_EQ(totals.damages, 0U) << keeper.text();
  ASSERT_FALSE(keeper.summaries.empty());
  EXPECT_TRUE(keeper.summaries[0].dropped);
  EXPECT_EQ(keeper.messages.rbegin()->first, 99U);
}

/// A log that changes while it is inspected.
class InspectLiveTest : public InspectTest {
 protected:
  InspectLiveTest() {
    options.flush_interval_ms = 0;
    fill(40);
  }
  /// Drops everything that the log contains and uses the files again.
  void replace_all() {
    const Offset all = log->next_offset();
    fill(60);
    log->drop_before(all);
    work();
    fill(5);
  }
};

/// Records batches and findings in a Keeper. Runs a function of the test before each segment is read.
class LiveVisitor final : public log::LogVisitor {
 public:
  explicit LiveVisitor(std::function<void()> before_segment = {})
      : before_segment_(std::move(before_segment)) {}
  bool on_segment(const log::SurveyedSegment& /*segment*/) override {
    if (before_segment_) before_segment_();
    return true;
  }
  bool on_batch(const log::ScannedBatch& batch, const BatchView& view) override {
    return keeper.on_batch(batch, view);
  }
  bool on_finding(const Finding& finding) override { return keeper.on_finding(finding); }
  bool on_restart() override { return ++restarts < restarts_max; }

  Keeper keeper;
  int restarts = 0;
  int restarts_max = 1000;

 private:
  const std::function<void()> before_segment_;
};

// At any moment of the inspection, the result is the log as it is then: without a hole and up to its end.
TEST_F(InspectLiveTest, RetriesIfTheLastSegmentWasDroppedInTheMeantime) {
  int restarts = 0;
  bool replaced = true;
  for (int at = 1; replaced; ++at) {
    replaced = false;
    const Offset before = log->next_offset();
    storage.on_call = [&, calls = 0](FaultyStorage::Call, const std::string&) mutable {
      if (++calls == at) {
        replaced = true;
        replace_all();
      }
      return FaultyStorage::Fault{};
    };
    LiveVisitor visitor;
    const auto totals = log::inspect_log(directory, storage, {}, visitor);
    storage.on_call = nullptr;
    ASSERT_TRUE(totals.ok()) << totals.error().text();
    ASSERT_EQ(totals->damages, 0U) << visitor.keeper.text();
    ASSERT_LE(before, totals->next_offset) << at;
    ASSERT_EQ(totals->messages, distance(totals->first_offset, totals->next_offset)) << at;
    for (const auto& [offset, payload] : visitor.keeper.messages) ASSERT_EQ(payload, written[offset]) << at;
    restarts += visitor.restarts;
  }
  EXPECT_LT(0, restarts);
}

TEST_F(InspectLiveTest, ReportsThatTheLogDropsSegmentsTooFast) {
  LiveVisitor visitor([&] { replace_all(); });
  const auto totals = log::inspect_log(directory, storage, {}, visitor);
  ASSERT_FALSE(totals.ok());
  EXPECT_EQ(totals.error().code, ErrorCode::busy);
  EXPECT_NE(totals.error().message.find(directory), std::string::npos);
  EXPECT_LT(1, visitor.restarts);
}

TEST_F(InspectLiveTest, EndsIfTheVisitorWantsNoOtherAttempt) {
  LiveVisitor visitor([&] { replace_all(); });
  visitor.restarts_max = 2;
  EXPECT_TRUE(log::inspect_log(directory, storage, {}, visitor).ok());
  EXPECT_EQ(2, visitor.restarts);
}

TEST_F(InspectTest, ChecksTheCursorFiles) {
  fill(10);
  log::CursorFile cursors(storage, directory);
  ASSERT_TRUE(cursors.write(log::CursorFile::encode({{"a", {3}}})).ok());
  ASSERT_TRUE(cursors.write(log::CursorFile::encode({{"a", {11}}})).ok());
  Keeper keeper;
  EXPECT_EQ(inspect(keeper).cursors, 1U);
  EXPECT_EQ(keeper.of(Kind::ahead).size(), 1U) << keeper.text();
  ASSERT_TRUE(cursors
                  .write(log::CursorFile::encode({{"a", {3}, log::unfinished_between({3}, {{{4}, {10}}})},
                                                  {"b", {3}, log::unfinished_between({3}, {{{4}, {11}}})}}))
                  .ok());
  Keeper acknowledged;
  EXPECT_EQ(inspect(acknowledged).damages, 0U);
  EXPECT_EQ(acknowledged.of(Kind::ahead).size(), 1U) << acknowledged.text();
  ASSERT_TRUE(cursors.write(log::CursorFile::encode({{"a", {11}}})).ok());
  flip(directory + "/cursors.1", 40);
  Keeper torn;
  EXPECT_EQ(inspect(torn).damages, 0U);
  EXPECT_EQ(torn.of(Kind::torn).size(), 1U) << torn.text();
  flip(directory + "/cursors.0", 40);
  Keeper lost;
  EXPECT_EQ(inspect(lost).damages, 1U);
  EXPECT_EQ(lost.of(Kind::cursors).size(), 1U) << lost.text();
}

// Flips each bit in turn. The inspection must return no wrong message and must report each missing one.
TEST_F(InspectTest, DetectsEveryFlippedBitOfASmallLog) {
  fill(6, 20, 2);
  const std::string path = segment_path(0);
  const std::size_t end = log::segment_header_bytes + 3 * (64 + 2 * 24);
  const std::size_t last = log::segment_header_bytes + 2 * (64 + 2 * 24);
  for (std::size_t position = 0; position < end; ++position) {
    if (position == log::segment_seal_position + log::segment_seal_bytes)
      position = log::segment_header_bytes;
    for (int bit = 0; bit < 8; ++bit) {
      flip(path, position, bit);
      Keeper keeper;
      const auto totals = inspect(keeper);
      for (const auto& [offset, payload] : keeper.messages) ASSERT_EQ(payload, written.at(offset));
      if (position < last) {
        ASSERT_GE(totals.damages, 1U) << "position " << position << " bit " << bit;
      } else if (position >= last + 4) {  // a fault in the first 4 bytes looks like unused bytes
        ASSERT_TRUE(totals.torn_bytes != 0 && totals.damages == 0)
            << "position " << position << " bit " << bit;
      }
      flip(path, position, bit);
    }
  }
}

}  // namespace
}  // namespace lightq::test
