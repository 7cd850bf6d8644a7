/// Tests the log that reads from memory and writes its segment files later.
#include "log/memory/write_behind_log.hpp"

#include <gtest/gtest.h>

#include <map>

#include "support/log_fixture.hpp"
#include "support/random.hpp"

namespace lightq::log {
namespace {

using test::FaultyStorage;
using test::make_batch;
using test::make_batch_of;
using test::read_everything;
using test::ReadMessage;

class WriteBehindTest : public test::LogFixture {
 protected:
  void open_behind() {
    behind.reset();
    open();
    ASSERT_NE(log, nullptr);
    behind = std::make_unique<WriteBehindLog>(write_behind, std::move(log));
  }
  AppendOutcome append_behind(std::vector<std::byte> batch) { return behind->append(batch, now).outcome; }
  void write_all_now() {
    now.us += 100'000;
    do {
      behind->maintain(now);
    } while (behind->more_to_write());
  }

  WriteBehindOptions write_behind{.ring = {.capacity_bytes = limits::MiB}};
  std::unique_ptr<WriteBehindLog> behind;
};

TEST_F(WriteBehindTest, DeliversFromMemoryAndWritesAfterItsInterval) {
  open_behind();
  append_behind(make_batch({"a", "b"}));
  behind->maintain(now);
  EXPECT_TRUE(storage.paths().empty());
  EXPECT_EQ(behind->next_offset(), Offset{2});
  EXPECT_EQ(behind->written_offset(), Offset{0});
  EXPECT_EQ(read_everything(*behind).size(), 2U);
  write_all_now();
  EXPECT_EQ(behind->written_offset(), Offset{2});
  EXPECT_FALSE(storage.paths().empty());
  EXPECT_EQ(read_everything(*behind).size(), 2U);
}

TEST_F(WriteBehindTest, ContainsTheWrittenMessagesAfterAKill) {
  open_behind();
  append_behind(make_batch({"written"}));
  write_all_now();
  append_behind(make_batch({"lost"}));
  open_behind();
  EXPECT_EQ(read_everything(*behind), (std::vector<ReadMessage>{{{0}, "written"}}));
  append_behind(make_batch({"next"}));
  EXPECT_EQ(read_everything(*behind), (std::vector<ReadMessage>{{{0}, "written"}, {{1}, "next"}}));
}

TEST_F(WriteBehindTest, KeepsTheTimeOfTheAppendInTheFile) {
  open_behind();
  append_behind(make_batch({"a"}));
  const Timestamp appended = now;
  write_all_now();
  open_behind();
  ReadPosition place;
  EXPECT_EQ(behind->read(place).batch.append_time(), appended);
}

TEST_F(WriteBehindTest, WritesAMegabyteAtATimeAndReportsWhetherThereIsMore) {
  write_behind.ring.capacity_bytes = 8 * limits::MiB;
  write_behind.unwritten_bytes = 3 * limits::MiB;
  open_behind();
  for (int i = 0; i < 30; ++i) ASSERT_EQ(append_behind(make_batch_of(100'000)), AppendOutcome::appended);
  behind->maintain(now);
  EXPECT_FALSE(behind->more_to_write()) << "below 3 MiB and not old enough";
  for (int i = 0; i < 10; ++i) append_behind(make_batch_of(100'000));
  behind->maintain(now);
  EXPECT_TRUE(behind->more_to_write());
  EXPECT_EQ(behind->written_offset(), Offset{11});
  int calls = 1;
  for (; behind->more_to_write(); ++calls) behind->maintain(now);
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(behind->written_offset(), Offset{40});
}

TEST_F(WriteBehindTest, ReadsMessagesFromTheFileThatMemoryNoLongerHas) {
  open_behind();
  for (int i = 0; i < 50; ++i)
    ASSERT_EQ(append_behind(make_batch({std::to_string(i) + std::string(99'000, 'w')})),
              AppendOutcome::appended);
  const auto messages = read_everything(*behind);
  ASSERT_EQ(messages.size(), 50U);
  for (std::size_t i = 0; i < 50; ++i) EXPECT_TRUE(messages[i].payload.starts_with(std::to_string(i) + "w"));
}

TEST_F(WriteBehindTest, WritesABatchAboveItsRingDirectlyToTheFile) {
  open_behind();
  append_behind(make_batch({"before"}));
  ASSERT_EQ(append_behind(make_batch_of(3'000'000)), AppendOutcome::appended);
  ASSERT_EQ(append_behind(make_batch({"after"})), AppendOutcome::appended);
  const auto messages = read_everything(*behind);
  ASSERT_EQ(messages.size(), 3U);
  EXPECT_EQ(messages[1].payload.size(), 3'000'000U - 68);
  EXPECT_EQ(messages[2], (ReadMessage{{2}, "after"}));
}

TEST_F(WriteBehindTest, KeepsUnwrittenMessagesWhileTheDiskIsFull) {
  storage.disk_bytes = 0;
  open_behind();
  int count = 0;
  while (append_behind(make_batch_of(100'000)) == AppendOutcome::appended) ++count;
  EXPECT_EQ(count, 10);
  EXPECT_EQ(append_behind(make_batch_of(100'000)), AppendOutcome::no_space);
  EXPECT_EQ(behind->last_error().code, ErrorCode::no_space);
  write_all_now();
  EXPECT_EQ(read_everything(*behind).size(), 10U);
  storage.disk_bytes = 100 * limits::MiB;
  EXPECT_EQ(append_behind(make_batch_of(100'000)), AppendOutcome::appended);
  ASSERT_TRUE(behind->flush().ok());
  EXPECT_EQ(behind->durable_offset(), Offset{11});
  EXPECT_EQ(read_everything(*behind).size(), 11U);
}

TEST_F(WriteBehindTest, FreesSpaceWithinItsCapacityByDroppingSegments) {
  write_behind.capacity_bytes = 2 * limits::MiB;
  options.segment_bytes = 512 * limits::KiB;
  open_behind();
  while (append_behind(make_batch_of(100'000)) == AppendOutcome::appended) {
  }
  EXPECT_FALSE(behind->make_room(100'000, {0}));
  EXPECT_EQ(behind->first_offset(), Offset{0});
  EXPECT_TRUE(behind->make_room(100'000, behind->next_offset()));
  EXPECT_GT(behind->first_offset(), Offset{0});
  EXPECT_EQ(append_behind(make_batch_of(100'000)), AppendOutcome::appended);
  EXPECT_EQ(read_everything(*behind).size(), distance(behind->first_offset(), behind->next_offset()));
}

TEST_F(WriteBehindTest, MatchesAModelMapUnderRandomOperations) {
  test::Random random;
  write_behind.ring.capacity_bytes = 128 * limits::KiB;
  options.segment_bytes = limits::segment_bytes_min;
  options.retention_messages = 100;
  open_behind();
  std::map<std::uint64_t, std::string> model;
  std::vector<ReadPosition> places(3);
  for (int step = 0; step < 5000; ++step) {
    now.us += 20'000;
    if (random.one_in(10)) behind->maintain(now);
    if (random.one_in(500)) {
      open_behind();
      model.erase(model.lower_bound(behind->next_offset().value), model.end());
      for (ReadPosition& place : places) place = {std::min(place.offset, behind->next_offset())};
    }
    if (random.one_in(2)) {
      const std::string payload =
          std::to_string(step) + std::string(random.below(random.one_in(50) ? 200'000 : 5000), 'q');
      const Offset at = behind->next_offset();
      ASSERT_EQ(append_behind(make_batch({payload})), AppendOutcome::appended);
      model[at.value] = payload;
      continue;
    }
    ReadPosition& place = places[random.below(3)];
    const ReadResult result = behind->read(place);
    if (result.outcome == ReadOutcome::batch) {
      ASSERT_TRUE(test::payloads_of(result.batch)[0] == model.at(place.offset.value)) << "step " << step;
      place.offset = result.batch.end_offset();
    } else if (result.outcome == ReadOutcome::trimmed) {
      ASSERT_EQ(result.next, behind->first_offset());
      place.offset = result.next;
    } else {
      ASSERT_EQ(result.outcome, ReadOutcome::end);
      place = {{random.below(behind->next_offset().value + 1)}};
    }
  }
}

}  // namespace
}  // namespace lightq::log
