/// Tests the transient log.
#include "log/memory/ring_log.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <span>

#include "support/batches.hpp"
#include "support/random.hpp"

namespace lightq::log {
namespace {

using test::make_batch;
using test::make_batch_of;
using test::payloads_of;

constexpr Timestamp now{1'000'000};

AppendOutcome append(RingLog& log, std::vector<std::byte> batch, Timestamp at = now) {
  return log.append(batch, at).outcome;
}

TEST(RingLog, ReturnsAppendedMessagesWithOffsetAndTime) {
  RingLog log({});
  auto batch = make_batch({"a", "b"});
  EXPECT_EQ(log.append(batch, now).base, Offset{0});
  EXPECT_EQ(append(log, make_batch({"c"}), {5}), AppendOutcome::appended);
  ReadPosition place{{1}};
  const ReadResult first = log.read(place);
  ASSERT_EQ(first.outcome, ReadOutcome::batch);
  EXPECT_EQ(BatchView::check(first.batch.bytes()), std::nullopt);
  EXPECT_EQ(payloads_of(first.batch), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(first.batch.append_time(), now);
  place.offset = first.batch.end_offset();
  const ReadResult second = log.read(place);
  EXPECT_EQ(payloads_of(second.batch), (std::vector<std::string>{"c"}));
  place.offset = second.batch.end_offset();
  EXPECT_EQ(log.read(place).outcome, ReadOutcome::end);
  EXPECT_EQ(log.durable_offset(), Offset{0});
}

TEST(RingLog, IsSmallUntilItsFirstAppend) {
  EXPECT_LT(sizeof(RingLog), 1024U);
}

TEST(RingLog, RefusesABatchAboveItsCapacity) {
  RingLog log({.capacity_bytes = 65536});
  EXPECT_EQ(append(log, make_batch_of(65537)), AppendOutcome::too_large);
  EXPECT_EQ(append(log, make_batch_of(65536)), AppendOutcome::appended);
}

TEST(RingLog, AcceptsABatchAboveItsSoftLimitOnlyWhenEmpty) {
  RingLog log({.capacity_bytes = 65536, .soft_limit_bytes = 8192});
  EXPECT_EQ(append(log, make_batch_of(60'000)), AppendOutcome::appended);
  EXPECT_EQ(append(log, make_batch_of(100)), AppendOutcome::full);
  log.trim({1});
  EXPECT_EQ(append(log, make_batch_of(100)), AppendOutcome::appended);
  EXPECT_EQ(append(log, make_batch_of(8092)), AppendOutcome::appended);
  EXPECT_EQ(append(log, make_batch_of(100)), AppendOutcome::full);
}

TEST(RingLog, AcceptsABatchOfItsWholeCapacityWhenEmpty) {
  RingLog log({.capacity_bytes = 8192});
  for (std::uint64_t round = 0; round < 10; ++round) {
    ASSERT_EQ(append(log, make_batch_of(100)), AppendOutcome::appended);
    log.trim(log.next_offset());
    ASSERT_EQ(append(log, make_batch_of(8192)), AppendOutcome::appended);
    log.trim(log.next_offset());
  }
}

TEST(RingLog, StartsAtTheSamePlaceAgainWhenItWasDrained) {
  RingLog log({.capacity_bytes = 65536});
  const std::byte* start = nullptr;
  for (int round = 0; round < 100; ++round) {
    ASSERT_EQ(append(log, make_batch_of(1000)), AppendOutcome::appended);
    ReadPosition place{log.first_offset()};
    const std::byte* at = log.read(place).batch.bytes().data();
    if (round == 0) start = at;
    ASSERT_EQ(at, start);
    log.trim(log.next_offset());
  }
}

TEST(RingLog, TrimsOnlyWholeBatches) {
  RingLog log({});
  append(log, make_batch({"a", "b"}));
  append(log, make_batch({"c"}));
  log.trim({1});
  EXPECT_EQ(log.first_offset(), Offset{0});
  log.trim({2});
  EXPECT_EQ(log.first_offset(), Offset{2});
  ReadPosition place{{0}};
  const ReadResult result = log.read(place);
  EXPECT_EQ(result.outcome, ReadOutcome::trimmed);
  EXPECT_EQ(result.next, Offset{2});
}

TEST(RingLog, KeepsTheNewestWhenItIsFull) {
  RingLog log({.capacity_bytes = 8192});
  for (int i = 0; i < 8; ++i) ASSERT_EQ(append(log, make_batch_of(1024)), AppendOutcome::appended);
  EXPECT_EQ(append(log, make_batch_of(1024)), AppendOutcome::full);
  EXPECT_FALSE(log.make_room(2000, {1}));
  EXPECT_EQ(log.first_offset(), Offset{1});
  EXPECT_TRUE(log.make_room(2000, {8}));
  EXPECT_EQ(log.first_offset(), Offset{2});
  EXPECT_FALSE(log.make_room(8193, {8}));
}

TEST(RingLog, ReleasesItsMemoryAfterTenIdleSecondsAndContinues) {
  RingLog log({});
  append(log, make_batch({"before"}));
  log.trim({1});
  log.maintain({now.us + 9'000'000});
  log.maintain({now.us + 10'000'000});
  ASSERT_EQ(append(log, make_batch({"after"})), AppendOutcome::appended);
  ReadPosition place{{1}};
  EXPECT_EQ(payloads_of(log.read(place).batch), (std::vector<std::string>{"after"}));
}

TEST(RingLog, KeepsItsMessagesWhileIdle) {
  RingLog log({});
  append(log, make_batch({"kept"}));
  log.maintain({now.us + 100'000'000});
  ReadPosition place{{0}};
  EXPECT_EQ(payloads_of(log.read(place).batch), (std::vector<std::string>{"kept"}));
}

TEST(RingLog, SpaceForTheNextBatchIsNotVisibleBefore) {
  RingLog log({.capacity_bytes = 65536});
  EXPECT_EQ(append(log, make_batch({"a"})), AppendOutcome::appended);
  const auto place = log.place_for_next(30'000);
  ASSERT_EQ(place.size(), 30'000U);
  std::fill(place.begin(), place.end(), std::byte{'x'});
  ReadPosition at{{1}};
  EXPECT_EQ(log.read(at).outcome, ReadOutcome::end);
  EXPECT_EQ(log.place_for_next(30'000).data(), place.data()) << "nothing has been appended";
  const auto batch = make_batch_of(30'000);
  std::copy(batch.begin(), batch.end(), place.begin());
  EXPECT_EQ(log.append(place, now).base, Offset{1});
  const ReadResult read = log.read(at);
  ASSERT_EQ(read.outcome, ReadOutcome::batch);
  EXPECT_EQ(read.batch.bytes().data(), place.data()) << "it was copied";
  EXPECT_EQ(BatchView::check(read.batch.bytes()), std::nullopt);
  EXPECT_TRUE(log.place_for_next(40'000).empty()) << "there is no room";
  EXPECT_TRUE(log.place_for_next(65'537).empty()) << "there never is";
}

// Its new place overlaps the one where it was built.
TEST(RingLog, ABatchMovesIfMakingRoomHasFreedTheBeginning) {
  RingLog log({.capacity_bytes = 1 * limits::MiB});
  ASSERT_EQ(append(log, make_batch_of(10'000)), AppendOutcome::appended);
  const std::vector<std::string> payloads{std::string(30'000, '\xff'), std::string(30'000, '\xee'), "end"};
  const auto batch = make_batch(payloads);
  const auto place = log.place_for_next(batch.size());
  ASSERT_EQ(place.size(), batch.size());
  std::copy(batch.begin(), batch.end(), place.begin());
  ASSERT_TRUE(log.make_room(1 * limits::MiB, log.next_offset()));
  ASSERT_EQ(log.append(place, now).base, Offset{1});
  EXPECT_EQ(log.next_offset(), Offset{4});
  ReadPosition at{{1}};
  const ReadResult read = log.read(at);
  ASSERT_EQ(read.outcome, ReadOutcome::batch);
  EXPECT_NE(read.batch.bytes().data(), place.data());
  EXPECT_EQ(BatchView::check(read.batch.bytes()), std::nullopt);
  EXPECT_EQ(payloads_of(read.batch), payloads);
}

// The model: the batches that should be in the log, oldest first.
struct Model {
  struct Batch {
    Offset base;
    std::vector<std::string> payloads;
    std::size_t bytes;
    [[nodiscard]] Offset end() const { return base + payloads.size(); }
  };
  std::deque<Batch> batches;
  Offset next;
  std::uint64_t bytes = 0;

  [[nodiscard]] Offset first() const { return batches.empty() ? next : batches.front().base; }
  void drop_before(Offset offset) {
    while (!batches.empty() && batches.front().end() <= offset) {
      bytes -= batches.front().bytes;
      batches.pop_front();
    }
  }
};

void compare_read(RingLog& log, const Model& model, ReadPosition& place) {
  const ReadResult result = log.read(place);
  if (place.offset < model.first()) {
    ASSERT_EQ(result.outcome, ReadOutcome::trimmed);
    place.offset = result.next;
    return;
  }
  if (place.offset >= model.next) {
    ASSERT_EQ(result.outcome, ReadOutcome::end);
    return;
  }
  ASSERT_EQ(result.outcome, ReadOutcome::batch);
  for (const auto& batch : model.batches) {
    if (batch.end() <= place.offset) continue;
    ASSERT_EQ(result.batch.base_offset(), batch.base);
    ASSERT_EQ(payloads_of(result.batch), batch.payloads);
    ASSERT_EQ(BatchView::check(result.batch.bytes()), std::nullopt);
    break;
  }
  place.offset = result.batch.end_offset();
}

void append_some(RingLog& log, Model& model, test::Random& random) {
  std::vector<std::string> payloads(random.between(1, 5));
  for (auto& payload : payloads)
    payload.assign(random.below(random.one_in(20) ? 9000 : 400), static_cast<char>(random.below(256)));
  auto made = make_batch(payloads);
  std::span<std::byte> bytes = made;
  if (const auto place = log.place_for_next(made.size()); !place.empty() && random.one_in(2)) {
    ASSERT_EQ(place.size(), made.size());
    std::copy(made.begin(), made.end(), place.begin());
    if (random.one_in(8)) return;  // abandons the batch, as for an invalid one
    bytes = place;
    // Makes space for another batch at the same time, so that this batch may have to move.
    if (random.one_in(8) && log.make_room(random.below(60'000), model.next))
      model.drop_before(log.first_offset());
  }
  const AppendResult result = log.append(bytes, now);
  if (result.outcome == AppendOutcome::appended) {
    ASSERT_EQ(result.base, model.next);
    model.batches.push_back({result.base, payloads, bytes.size()});
    model.next = model.batches.back().end();
    model.bytes += bytes.size();
  } else if (log.make_room(bytes.size(), random.one_in(2) ? model.next : model.first() + random.below(20))) {
    model.drop_before(log.first_offset());
    ASSERT_EQ(log.append(bytes, now).outcome, AppendOutcome::appended);
    model.batches.push_back({model.next, payloads, bytes.size()});
    model.next = model.batches.back().end();
    model.bytes += bytes.size();
  } else {
    model.drop_before(log.first_offset());
  }
}

TEST(RingLog, MatchesAModelListUnderRandomOperations) {
  test::Random random;
  RingLog log({.capacity_bytes = 65536,
               .soft_limit_bytes = random.one_in(2) ? 0U : 40'000U,
               .reuse_from_bytes = random.one_in(2) ? limits::MiB : random.below(20'000)});
  Model model;
  std::vector<ReadPosition> places(4);
  for (int step = 0; step < 20'000; ++step) {
    switch (random.below(8)) {
      case 0: {
        const Offset before = model.first() + random.below(distance(model.first(), model.next) + 3);
        log.trim(before);
        model.drop_before(before);
        break;
      }
      case 1: places[random.below(4)] = {{random.below(model.next.value + 2)}}; break;
      case 2:
      case 3:
      case 4: append_some(log, model, random); break;
      default: compare_read(log, model, places[random.below(4)]);
    }
    ASSERT_FALSE(HasFatalFailure()) << "step " << step;
    ASSERT_EQ(log.first_offset(), model.first());
    ASSERT_EQ(log.next_offset(), model.next);
    ASSERT_EQ(log.stored_bytes(), model.bytes);
  }
}

}  // namespace
}  // namespace lightq::log
