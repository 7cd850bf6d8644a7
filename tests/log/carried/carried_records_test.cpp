/// Tests of carried records in memory and in files: what they find, restarts, power cuts, damage and the
/// space that they give back.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "log/carried/carried_log.hpp"
#include "log/carried/carried_memory.hpp"
#include "support/batches.hpp"
#include "support/faulty_storage.hpp"
#include "support/golden_files.hpp"
#include "support/random.hpp"

namespace lightq::log {
namespace {

using test::FaultyStorage;
using test::Random;

/// Returns a copy of one message as CarriedRecords::add takes it.
std::vector<std::byte> copy_of(std::uint64_t offset, const std::string& payload) {
  auto batch = test::make_batch({payload});
  stamp_batch(batch, {offset}, {static_cast<std::int64_t>(1000 + offset)}, 0);
  return batch;
}

/// Returns the payload at `offset`, or the outcome's number.
std::string found_at(CarriedRecords& carried, std::uint64_t offset, Offset first = {1'000'000}) {
  const ReadResult found = carried.find({offset}, first);
  if (found.outcome != ReadOutcome::batch)
    return "#" + std::to_string(static_cast<int>(found.outcome)) + ">" + std::to_string(found.next.value);
  EXPECT_EQ(found.batch.base_offset(), Offset{offset});
  EXPECT_EQ(found.batch.append_time().us, static_cast<std::int64_t>(1000 + offset));
  EXPECT_EQ(BatchView::check(found.batch.bytes()), std::nullopt);
  return test::payloads_of(found.batch).at(0);
}

TEST(CarriedMemory, FindsCopiesAndTheNextOneBehindAGap) {
  CarriedMemory carried(10'000);
  EXPECT_EQ(found_at(carried, 3), "#2>1000000");
  ASSERT_TRUE(carried.add(copy_of(3, "three")));
  ASSERT_TRUE(carried.add(copy_of(7, "seven")));
  EXPECT_EQ(found_at(carried, 0), "#2>3");
  EXPECT_EQ(found_at(carried, 3), "three");
  EXPECT_EQ(found_at(carried, 4), "#2>7");
  EXPECT_EQ(found_at(carried, 7), "seven");
  EXPECT_EQ(found_at(carried, 8), "#2>1000000");
  EXPECT_EQ(found_at(carried, 0, {5}), "#2>3");
  EXPECT_EQ(found_at(carried, 4, {5}), "#2>5") << "the log itself has 7";
  carried.remove({{0}, {5}});
  EXPECT_EQ(found_at(carried, 3), "#2>7");
  carried.remove({{0}, {100}});
  EXPECT_TRUE(carried.offsets().empty());
  EXPECT_EQ(carried.bytes(), 0U);
}

// The example of docs/log_format.md, "Carried messages".
TEST(CarriedMemory, ACopyIsABatchOfOneRecord) {
  const auto golden = test::golden_file("carried-copy.v1");
  EXPECT_EQ(golden.size(), 73U);
  EXPECT_EQ(copy_of(3, "three"), golden);
  CarriedMemory carried(10'000);
  ASSERT_TRUE(carried.add(golden));
  EXPECT_EQ(found_at(carried, 3), "three");
}

TEST(CarriedMemory, HasALimitAndReplacesACopy) {
  const auto copy = copy_of(1, "message");
  CarriedMemory carried(2 * (copy.size() + CarriedMemory::bytes_each));
  ASSERT_TRUE(carried.add(copy));
  ASSERT_TRUE(carried.add(copy));
  ASSERT_TRUE(carried.add(copy_of(2, "message")));
  EXPECT_FALSE(carried.add(copy_of(3, "message")));
  EXPECT_EQ(carried.last_error().code, ErrorCode::limit_reached);
  EXPECT_EQ(carried.offsets().size(), 2U);
  carried.remove({{1}, {2}});
  EXPECT_TRUE(carried.add(copy_of(3, "message")));
}

class CarriedLogTest : public testing::Test {
 protected:
  CarriedLogTest() { options.directory = "/topics/1"; }

  /// Opens the copies. Those that were open before end without closing, as by SIGKILL.
  void open(Offset first = {1'000'000}, std::uint64_t bytes_max = 0,
            std::size_t messages_max = limits::carried_messages_max) {
    carried.reset();
    auto opened = CarriedLog::open(options, bytes_max, first, storage, *pool, now, messages_max);
    ASSERT_TRUE(opened.ok()) << opened.error().text();
    carried = std::move(*opened);
  }
  void work() {
    now.us += 200'000;
    carried->maintain(now);
    for (auto job = carried->take_disk_job(now); job != nullptr; job = carried->take_disk_job(now)) {
      job->run();
      job->finish();
      now.us += 200'000;
    }
  }
  [[nodiscard]] std::vector<std::string> files() {
    auto paths = storage.paths();
    std::erase_if(paths, [](const std::string& path) { return !path.starts_with("/topics/1/carried/"); });
    return paths;
  }

  FaultyStorage storage;
  std::optional<SegmentPool> pool{std::in_place, SegmentPoolOptions{"/pool"}, storage};
  SegmentLogOptions options;
  Timestamp now{1'000'000'000'000};
  std::unique_ptr<CarriedLog> carried;
};

constexpr Offset all_durable{~std::uint64_t{0}};

TEST_F(CarriedLogTest, HasNoFilesBeforeTheFirstCopy) {
  open();
  work();
  EXPECT_TRUE(storage.paths().empty());
  EXPECT_EQ(carried->log(), nullptr);
  EXPECT_EQ(found_at(*carried, 3), "#2>1000000");
  EXPECT_EQ(carried->undurable_from(), all_durable);
  EXPECT_FALSE(carried->wants_work());
  EXPECT_TRUE(carried->close().ok());
}

TEST_F(CarriedLogTest, KeepsCopiesOverAKill) {
  open();
  ASSERT_TRUE(carried->add(copy_of(3, "three")));
  ASSERT_TRUE(carried->add(copy_of(700, std::string(100'000, 's'))));
  EXPECT_EQ(found_at(*carried, 3), "three");
  open();
  EXPECT_EQ(found_at(*carried, 3), "three");
  EXPECT_EQ(found_at(*carried, 4), "#2>700");
  EXPECT_EQ(found_at(*carried, 700).size(), 100'000U);
  open({700});
  EXPECT_EQ(carried->offsets().size(), 1U) << "the log still has message 700";
}

// The main log has lost its end, or a crash came before it removed the originals. A start forgets the copies
// for good, because the offset may belong to another message later.
TEST_F(CarriedLogTest, ACopyOfAMessageThatTheLogHasDoesNotComeBack) {
  open();
  for (std::uint64_t i = 0; i < 3000; ++i) ASSERT_TRUE(carried->add(copy_of(i, std::string(2000, 'm'))));
  open({2500});
  EXPECT_EQ(carried->offsets().size(), 2500U);
  open({1'000'000});
  EXPECT_EQ(carried->offsets().size(), 2500U);
  EXPECT_EQ(found_at(*carried, 2499).size(), 2000U);
  EXPECT_EQ(found_at(*carried, 2500), "#2>1000000");
}

TEST_F(CarriedLogTest, SaysWhichCopiesAPowerCutCouldTake) {
  open();
  ASSERT_TRUE(carried->add(copy_of(30, "a")));
  EXPECT_EQ(carried->undurable_from(), Offset{30});
  const auto job = carried->take_disk_job(now);
  ASSERT_NE(job, nullptr) << "copies are synced without a wait";
  ASSERT_TRUE(carried->add(copy_of(20, "b")));
  ASSERT_TRUE(carried->add(copy_of(40, "c")));
  EXPECT_EQ(carried->undurable_from(), Offset{20});
  job->run();
  job->finish();
  EXPECT_EQ(carried->undurable_from(), Offset{20});
  ASSERT_TRUE(carried->flush().ok());
  EXPECT_EQ(carried->undurable_from(), all_durable);
  carried.reset();
  storage.power_cut([] { return false; });
  open();
  EXPECT_EQ(carried->offsets().size(), 3U);
}

TEST_F(CarriedLogTest, AFailedSyncKeepsTheOriginals) {
  open();
  ASSERT_TRUE(carried->add(copy_of(30, "a")));
  storage.on_call = [](FaultyStorage::Call call, const std::string&) {
    return FaultyStorage::Fault{call == FaultyStorage::Call::sync ? EIO : 0};
  };
  work();
  storage.on_call = nullptr;
  EXPECT_EQ(carried->undurable_from(), Offset{30});
  EXPECT_FALSE(carried->add(copy_of(31, "b"))) << "it would not become durable";
  EXPECT_EQ(found_at(*carried, 30), "a");
}

TEST_F(CarriedLogTest, GivesItsFilesBack) {
  open();
  for (std::uint64_t i = 0; i < 4000; ++i) ASSERT_TRUE(carried->add(copy_of(i, std::string(4000, 'm'))));
  work();
  const std::uint64_t full = carried->held_bytes();
  EXPECT_GT(full, 16'000'000U);
  // Every hundredth stays.
  for (std::uint64_t i = 0; i < 4000; ++i)
    if (i % 100 != 0) carried->remove({{i}, {i + 1}});
  for (int i = 0; i < 100; ++i) work();
  EXPECT_LT(carried->held_bytes(), 12'000'000U);
  for (std::uint64_t i = 0; i < 4000; i += 100) EXPECT_EQ(found_at(*carried, i).size(), 4000U);
  open();
  for (std::uint64_t i = 0; i < 4000; i += 100) EXPECT_EQ(found_at(*carried, i).size(), 4000U);
  carried->remove({{0}, {4000}});
  for (int i = 0; i < 10; ++i) work();
  EXPECT_EQ(carried->log()->stored_bytes(), 0U);
  EXPECT_EQ(carried->bytes(), 0U);
  open();
  EXPECT_TRUE(carried->offsets().empty());
}

TEST_F(CarriedLogTest, DamageCostsOneCopy) {
  open();
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(carried->add(copy_of(i, "payload " + std::to_string(i))));
  ASSERT_TRUE(carried->close().ok());
  carried.reset();
  for (const std::string& path : files()) {
    auto& bytes = storage.bytes_of(path);
    const std::string wanted = "payload 2";
    const auto at =
        std::search(bytes.begin(), bytes.end(), as_byte_view(wanted).begin(), as_byte_view(wanted).end());
    if (at != bytes.end()) *at = std::byte{'X'};
  }
  open();
  EXPECT_EQ(carried->offsets().size(), 4U);
  EXPECT_EQ(found_at(*carried, 1), "payload 1");
  EXPECT_EQ(found_at(*carried, 2), "#2>3");
  EXPECT_EQ(found_at(*carried, 3), "payload 3");
}

TEST_F(CarriedLogTest, DamageWhileItIsOpenCostsOneCopy) {
  open();
  ASSERT_TRUE(carried->add(copy_of(1, "payload 1")));
  ASSERT_TRUE(carried->add(copy_of(2, "payload 2")));
  for (const std::string& path : files()) {
    auto& bytes = storage.bytes_of(path);
    const std::string wanted = "payload 1";
    const auto at =
        std::search(bytes.begin(), bytes.end(), as_byte_view(wanted).begin(), as_byte_view(wanted).end());
    if (at != bytes.end()) *at = std::byte{'X'};
  }
  EXPECT_EQ(found_at(*carried, 1), "#3>2");
  EXPECT_EQ(found_at(*carried, 2), "payload 2");
}

TEST_F(CarriedLogTest, HasALimitInBytes) {
  open({1'000'000}, 500);
  ASSERT_TRUE(carried->add(copy_of(1, "message")));
  EXPECT_FALSE(carried->add(copy_of(2, std::string(400, 'm'))));
  EXPECT_EQ(carried->last_error().code, ErrorCode::limit_reached);
}

TEST_F(CarriedLogTest, HasALimitOfMessages) {
  open({1'000'000}, 0, 2);
  ASSERT_TRUE(carried->add(copy_of(1, "one")));
  ASSERT_TRUE(carried->add(copy_of(2, "two")));
  ASSERT_TRUE(carried->add(copy_of(2, "two again"))) << "it replaces a copy";
  EXPECT_FALSE(carried->add(copy_of(3, "three")));
  EXPECT_EQ(carried->last_error().code, ErrorCode::limit_reached);
  EXPECT_EQ(carried->offsets().size(), 2U);
  // A start has as many copies as the files have.
  open({1'000'000}, 0, 1);
  EXPECT_EQ(carried->offsets().size(), 2U);
  EXPECT_FALSE(carried->add(copy_of(3, "three")));
  carried->remove({{1}, {3}});
  EXPECT_TRUE(carried->add(copy_of(3, "three")));
}

TEST_F(CarriedLogTest, AFullDiskRefusesACopy) {
  open();
  ASSERT_TRUE(carried->add(copy_of(1, "message")));
  storage.disk_bytes = 0;
  EXPECT_FALSE(carried->add(copy_of(2, std::string(100'000, 'm'))));
  EXPECT_EQ(carried->last_error().code, ErrorCode::no_space);
  EXPECT_EQ(found_at(*carried, 1), "message");
}

/// Random copies, removals, kills and power cuts, compared with a map. A power cut may bring removed copies
/// back, and takes none that undurable_from() has called durable.
class CarriedLogModel : public CarriedLogTest, public testing::WithParamInterface<int> {};

TEST_P(CarriedLogModel, KeepsWhatTheModelKeeps) {
  Random random(GetParam());
  open();
  std::map<std::uint64_t, std::string> expected;
  std::uint64_t next = 0;
  for (int step = 0; step < 1500; ++step) {
    const std::uint64_t choice = random.below(100);
    if (choice < 45) {
      next += random.between(1, 50);
      expected[next] =
          std::string(random.one_in(50) ? 90'000 : random.below(3000), static_cast<char>('a' + next % 26));
      ASSERT_TRUE(carried->add(copy_of(next, expected[next])));
    } else if (choice < 75) {
      const OffsetRange range{{random.below(next + 1)}, {random.below(next + 100)}};
      if (range.end <= range.begin) continue;
      carried->remove(range);
      expected.erase(expected.lower_bound(range.begin.value), expected.lower_bound(range.end.value));
    } else if (choice < 96) {
      work();
    } else {
      const bool cut = choice >= 98;
      const Offset durable = carried->undurable_from();
      carried.reset();
      if (cut) storage.power_cut([&] { return random.one_in(2); });
      open();
      for (const auto& [offset, payload] : expected) {
        if (cut && durable <= Offset{offset}) continue;
        ASSERT_TRUE(carried->offsets().contains({offset})) << offset << " step " << step;
      }
      std::erase_if(expected, [&](const auto& each) { return !carried->offsets().contains({each.first}); });
      // Copies that were removed may be back: their owner removes them again.
      std::vector<OffsetRange> back;
      carried->offsets().for_each([&](OffsetRange run) {
        for (Offset at = run.begin; at < run.end; at = at + 1)
          if (!expected.contains(at.value)) back.push_back({at, at + 1});
      });
      for (const OffsetRange& range : back) carried->remove(range);
    }
    ASSERT_EQ(carried->offsets().size(), expected.size());
    if (step % 50 != 0) continue;
    for (const auto& [offset, payload] : expected) ASSERT_EQ(found_at(*carried, offset), payload);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, CarriedLogModel, testing::Range(0, 8));

}  // namespace
}  // namespace lightq::log
