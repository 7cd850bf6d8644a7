/// Tests gaps that a repair has stated, and files that a snapshot shares with the log. The format is in
/// docs/log_format.md, "Gaps that a repair leaves".
#include <gtest/gtest.h>

#include <algorithm>

#include "support/log_fixture.hpp"

namespace lightq::test {
namespace {

using log::AppendOutcome;
using log::OpenMode;
using log::ReadOutcome;

class SegmentGap : public LogFixture {
 protected:
  SegmentGap() { options.segment_bytes = limits::segment_bytes_min; }

  /// Creates segments for 0..9 and 10..19 with one batch each. The batch of the first ends early: 5..9 are
  /// missing.
  void make_gap(std::uint64_t stated_from) {
    write_segment({0}, {"a", "b", "c", "d", "e"}, {});
    write_segment({10}, {"k", "l"}, {stated_from});
  }
  void write_segment(Offset first, const std::vector<std::string>& payloads, Offset gap_begin) {
    auto batch = make_batch(payloads);
    stamp_batch(batch, first, now, epoch);
    log::SegmentHeader header{epoch, first, incarnation, log::segment_header_bytes + batch.size(), gap_begin};
    auto page = log::encode_segment_header(header);
    const auto seal = log::encode_segment_seal({header.file_bytes, first + payloads.size(), now}, header);
    std::copy(seal.begin(), seal.end(), page.begin() + log::segment_seal_position);
    put(segment_path(first.value), {page.begin(), page.end()}, batch);
  }
  void write_empty_segment(Offset first, Offset gap_begin) {
    log::SegmentHeader header{epoch, first, incarnation, log::segment_header_bytes, gap_begin};
    auto page = log::encode_segment_header(header);
    const auto seal = log::encode_segment_seal({header.file_bytes, first, {}}, header);
    std::copy(seal.begin(), seal.end(), page.begin() + log::segment_seal_position);
    put(segment_path(first.value), {page.begin(), page.end()}, {});
  }
  void put(const std::string& path, std::vector<std::byte> page, const std::vector<std::byte>& batch) {
    ASSERT_TRUE(storage.open(path, OpenMode::create).ok());
    page.insert(page.end(), batch.begin(), batch.end());
    storage.bytes_of(path) = page;
  }

  static constexpr std::uint32_t epoch = 7;
  static constexpr std::uint64_t incarnation = 99;
};

TEST_F(SegmentGap, IsNotDamageIfTheHeaderStatesIt) {
  make_gap(5);
  open();
  EXPECT_TRUE(log->recovery().clean()) << log->recovery().text();
  EXPECT_EQ(log->recovery().gap_messages, 5U);
  EXPECT_EQ(log->recovery().messages, 7U);
  log::ReadPosition place{{7}};
  const auto result = log->read(place);
  EXPECT_EQ(result.outcome, ReadOutcome::trimmed);
  EXPECT_EQ(result.next, Offset{10});
  EXPECT_EQ(read_everything(*log).size(), 7U);
}

TEST_F(SegmentGap, IsDamageIfNoHeaderStatesIt) {
  make_gap(0);
  open();
  ASSERT_EQ(log->recovery().damaged.size(), 1U);
  EXPECT_EQ(log->recovery().damaged_messages, 5U);
  EXPECT_EQ(log->recovery().gap_messages, 0U);
}

TEST_F(SegmentGap, IsDamageAsFarAsItIsNotStated) {
  make_gap(8);
  open();
  ASSERT_EQ(log->recovery().damaged.size(), 1U);
  EXPECT_EQ(log->recovery().damaged[0].first, Offset{5});
  EXPECT_EQ(log->recovery().damaged[0].next, Offset{8});
  EXPECT_EQ(log->recovery().gap_messages, 2U);
  log::ReadPosition place{{6}};
  const auto damaged = log->read(place);
  EXPECT_EQ(damaged.outcome, ReadOutcome::damaged);
  EXPECT_EQ(damaged.next, Offset{8});
  place.offset = {8};
  EXPECT_EQ(log->read(place).outcome, ReadOutcome::trimmed);
}

TEST_F(SegmentGap, IsDamageIfThePreviousFileHasMoreMessagesThanStated) {
  make_gap(3);  // states that 3 and 4 are lost too, but they exist: another file was lost, or one was added
  open();
  EXPECT_EQ(log->recovery().damaged_messages, 5U);
}

TEST_F(SegmentGap, AtTheEndOfTheLogOutlivesTheNextAppends) {
  write_segment({0}, {"a", "b"}, {});
  write_empty_segment({10}, {2});
  open();
  EXPECT_TRUE(log->recovery().clean()) << log->recovery().text();
  EXPECT_EQ(log->next_offset(), Offset{10});
  EXPECT_EQ(append({"new"}), AppendOutcome::appended);
  ASSERT_TRUE(log->flush().ok());
  open();
  EXPECT_TRUE(log->recovery().clean()) << log->recovery().text();
  EXPECT_EQ(log->recovery().gap_messages, 8U);
  const auto messages = read_everything(*log);
  ASSERT_EQ(messages.size(), 3U);
  EXPECT_EQ(messages[2], (ReadMessage{{10}, "new"}));
}

// Tests files that a snapshot has linked. The log must never write to them again, because the snapshot would
// change.
class LinkedSegment : public LogFixture {
 protected:
  LinkedSegment() {
    options.segment_bytes = limits::segment_bytes_min;
    options.retention_messages = 1;
  }
  void fill() {
    for (int i = 0; i < 3; ++i) ASSERT_EQ(append({std::string(40'000, 'x')}), AppendOutcome::appended);
    ASSERT_TRUE(log->flush().ok());
  }
};

TEST_F(LinkedSegment, IsUnlinkedRatherThanRecycled) {
  open();
  fill();
  const auto before = storage.bytes_of(segment_path(0));
  ASSERT_TRUE(storage.link(segment_path(0), "/snapshot/0").ok());
  log->maintain(now);
  while (work()) now.us += 1'000'000;
  EXPECT_FALSE(storage.exists(segment_path(0)));
  for (const auto& path : storage.paths()) {
    if (path.starts_with("/pool/")) {
      EXPECT_EQ(*storage.link_count(path), 1U) << path;
    }
  }
  for (int i = 0; i < 6; ++i) ASSERT_EQ(append({std::string(40'000, 'y')}), AppendOutcome::appended);
  EXPECT_EQ(storage.bytes_of("/snapshot/0"), before);
  EXPECT_EQ(*storage.link_count("/snapshot/0"), 1U);
}

TEST_F(LinkedSegment, IsNotTakenFromThePoolOfAnEndedProcess) {
  open();
  fill();
  log->maintain(now);
  while (work()) now.us += 1'000'000;
  ASSERT_GT(pool->files(), 0U);
  // As if a snapshot had linked a file that the log had moved into the pool, after the log's check for links.
  for (const auto& path : storage.paths()) {
    if (path.starts_with("/pool/")) {
      ASSERT_TRUE(storage.link(path, "/snapshot" + path).ok());
    }
  }
  std::vector<std::pair<std::string, std::vector<std::byte>>> kept;
  for (const auto& path : storage.paths()) {
    if (path.starts_with("/snapshot/")) kept.emplace_back(path, storage.bytes_of(path));
  }
  ASSERT_FALSE(kept.empty());
  log.reset();
  pool = std::make_unique<log::SegmentPool>(log::SegmentPoolOptions{"/pool"}, storage);
  open();
  for (int i = 0; i < 6; ++i) ASSERT_EQ(append({std::string(40'000, 'y')}), AppendOutcome::appended);
  for (const auto& [path, bytes] : kept) EXPECT_EQ(storage.bytes_of(path), bytes) << path;
}

}  // namespace
}  // namespace lightq::test
