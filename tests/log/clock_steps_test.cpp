/// Tests logs after the clock was set forward or back: which message a time finds, and which segments
/// retention drops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "log/elapsed.hpp"
#include "log/memory/write_behind_log.hpp"
#include "support/log_fixture.hpp"
#include "support/random.hpp"
#include "support/storage_keys.hpp"

namespace lightq::log {
namespace {

using test::make_batch;
using test::make_batch_of;

constexpr std::int64_t hour_us = 3'600'000'000;
constexpr std::int64_t day_us = 24 * hour_us;

enum class Kind { ring, segments, encrypted, written_behind };

/// Tests `first_since` on a log of each kind. The test chooses the time of each append.
class FirstSince : public test::LogFixture, public testing::WithParamInterface<Kind> {
 protected:
  FirstSince() {
    options.segment_bytes = 256 * limits::KiB;
    if (GetParam() == Kind::encrypted) options.ciphers = keys.get();
    open_all();
  }
  void open_all() {
    if (GetParam() == Kind::ring) {
      any = std::make_unique<RingLog>(RingLogOptions{.capacity_bytes = 16 * limits::MiB});
      return;
    }
    any.reset();
    open();
    any = std::move(log);
    if (GetParam() != Kind::written_behind) return;
    auto* segments = static_cast<SegmentLog*>(any.release());
    any = std::make_unique<WriteBehindLog>(WriteBehindOptions{.ring = {.capacity_bytes = 256 * limits::KiB}},
                                           std::unique_ptr<SegmentLog>(segments));
  }
  void reopen() {
    if (GetParam() == Kind::ring) return;
    ASSERT_TRUE(any->flush().ok());
    open_all();
  }
  void append_at(Timestamp time, std::size_t bytes = 100) {
    auto batch = make_batch_of(bytes);
    ASSERT_EQ(any->append(batch, time).outcome, AppendOutcome::appended);
    times.push_back(time);
  }
  [[nodiscard]] std::uint64_t expected(Timestamp time) const {
    const auto from = times.begin() + static_cast<std::ptrdiff_t>(any->first_offset().value);
    return static_cast<std::uint64_t>(
        std::find_if(from, times.end(), [&](Timestamp each) { return time <= each; }) - times.begin());
  }
  std::uint64_t found(Timestamp time) { return any->first_since(time).offset.value; }

  std::unique_ptr<rest::StorageKeys> keys = test::storage_keys({7});
  std::unique_ptr<Log> any;
  std::vector<Timestamp> times;  // the append time of each offset
};

TEST_P(FirstSince, SkipsNothingAfterTheClockWasSetBack) {
  append_at(now);
  append_at({now.us - hour_us});
  append_at({now.us + 1});
  for (int life = 0; life < 2; ++life) {
    EXPECT_EQ(found({now.us - 60'000'000}), 0U);
    EXPECT_EQ(found({now.us + 1}), 2U);
    EXPECT_EQ(found({now.us + 2}), 3U);
    reopen();
  }
}

TEST_P(FirstSince, FindsAMessageAheadOfTheClock) {
  append_at(now);
  append_at({now.us + 2 * hour_us});
  append_at({now.us + 1});
  for (int life = 0; life < 2; ++life) {
    EXPECT_EQ(found({now.us + hour_us}), 1U);
    EXPECT_EQ(found({now.us + 1}), 1U);
    EXPECT_EQ(found({now.us + 3 * hour_us}), 3U);
    reopen();
  }
}

TEST_P(FirstSince, FindsTheFirstInOrderWithAnyClock) {
  test::Random random;
  Timestamp time = now;
  for (int i = 0; i < 3000; ++i) {
    time.us += random.one_in(40) ? -static_cast<std::int64_t>(random.below(hour_us))
                                 : static_cast<std::int64_t>(random.below(2'000'000));
    if (random.one_in(100)) time.us += static_cast<std::int64_t>(random.below(hour_us));
    append_at(time, random.one_in(10) ? random.between(1000, 30'000) : random.between(68, 300));
    if (random.one_in(300)) reopen();
    if (random.one_in(200)) any->drop_before({random.between(any->first_offset().value, times.size())});
    if (random.one_in(50)) {
      ReadPosition place{{random.between(any->first_offset().value, times.size())}};
      // A jump to a later offset must not hide earlier messages from first_since.
      static_cast<void>(any->read_header(place));
    }
    if (!random.one_in(10)) continue;
    const Timestamp asked{times[random.below(times.size())].us + static_cast<std::int64_t>(random.below(3)) -
                          1};
    ASSERT_EQ(found(asked), expected(asked)) << i;
  }
}

TEST_P(FirstSince, LooksAtFewBatches) {
  constexpr int batches = 20'000;
  for (int i = 0; i < batches; ++i) append_at({now.us + i});
  for (const int wanted : {0, 1, batches / 3, batches / 2, batches - 1}) {
    const FoundByTime result = any->first_since({now.us + wanted});
    EXPECT_EQ(result.offset.value, static_cast<std::uint64_t>(wanted));
    EXPECT_LE(result.batches_passed, 64 * limits::KiB / 100 + 2);
  }
  EXPECT_LE(any->first_since({now.us + batches}).batches_passed, 64 * limits::KiB / 100 + 2)
      << "nothing is that new";
}

TEST_P(FirstSince, ReportsTheNumberOfSkippedSegments) {
  constexpr std::int64_t batches = 200;
  for (std::int64_t i = 0; i < batches; ++i) append_at({now.us + i}, 10'000);
  const std::uint64_t segments = any->first_since({now.us + batches - 1}).segments_passed;
  if (GetParam() == Kind::ring) {
    EXPECT_EQ(segments, 0U);
  } else {
    EXPECT_GE(segments, 6U) << "of 256 KiB each";
  }
}

INSTANTIATE_TEST_SUITE_P(Logs, FirstSince,
                         testing::Values(Kind::ring, Kind::segments, Kind::encrypted, Kind::written_behind));

using FirstSinceOnDisk = test::LogFixture;

TEST_F(FirstSinceOnDisk, BeginsAtAFileThatCannotBeOpened) {
  options.segment_bytes = limits::segment_bytes_min;
  open();
  for (int i = 0; i < 20; ++i) {
    auto batch = make_batch_of(20'000);
    now.us += 1000;
    ASSERT_EQ(log->append(batch, now).outcome, AppendOutcome::appended);
  }
  ASSERT_TRUE(log->flush().ok());
  open();
  const Offset second = log->segments().at(1).first_offset();
  const Timestamp asked = log->segments().at(1).times().newest();
  ASSERT_TRUE(storage.unlink(segment_path(second.value)).ok());
  EXPECT_EQ(log->first_since(asked).offset, second) << "nothing that may be meant is left out";
}

/// Tests retention by age in a log after the clock was ahead for a time.
class RetentionAndTheClock : public test::LogFixture {
 protected:
  RetentionAndTheClock() {
    options.segment_bytes = limits::segment_bytes_min;
    options.retention_ms = 1000;
    open();
  }
  void fill(Timestamp time, int batches = 4) {
    for (int i = 0; i < batches; ++i) {
      auto batch = make_batch_of(20'000);
      ASSERT_EQ(log->append(batch, time).outcome, AppendOutcome::appended);
    }
  }
  [[nodiscard]] std::uint64_t kept() const { return distance(log->first_offset(), log->next_offset()); }
};

TEST_F(RetentionAndTheClock, CountsATimeInTheFutureAsNow) {
  for (const std::int64_t ahead : {day_us, 3650 * day_us}) {
    fill({now.us + ahead}, 12);
    log->maintain({now.us + ahead});  // no error is visible while the clock is ahead
    log->maintain(now);
    EXPECT_EQ(kept(), 12U);
    log->maintain({now.us + 1'000'000});
    EXPECT_EQ(kept(), 12U) << "each is kept for as long as was asked";
    now.us += 1'000'001;
    log->maintain(now);
    EXPECT_EQ(kept(), 0U);
  }
}

TEST_F(RetentionAndTheClock, KeepsYoungerMessagesForAnyRetentionTime) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t for_ever :
       {most, most / 1000, most / 1000 + 1, std::int64_t{18'446'744'073'709'552}}) {
    log.reset();
    options.retention_ms = for_ever;
    open();
    fill(now, 12);
    const std::uint64_t before = kept();
    now.us += 3650 * day_us;
    log->maintain(now);
    EXPECT_EQ(kept(), before) << for_ever;
  }
}

TEST(Elapsed, ASpanOfAnyLengthIsLongerThanAnyOther) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(in_us(0), 0);
  EXPECT_EQ(in_us(250), 250'000);
  EXPECT_EQ(in_us(most / 1000), most / 1000 * 1000);
  EXPECT_EQ(in_us(most / 1000 + 1), most);
  EXPECT_EQ(in_us(most), most);
  EXPECT_FALSE(has_passed({}, in_us(most), {3650 * day_us}));
}

TEST_F(RetentionAndTheClock, DoesSoAfterARestart) {
  for (const bool closed : {false, true}) {
    fill({now.us + day_us}, 12);
    if (closed) {
      ASSERT_TRUE(log->close().ok());
    }
    open();
    log->maintain({now.us + 1'000'000});
    EXPECT_EQ(kept(), 12U);
    now.us += 1'000'001;
    log->maintain(now);
    EXPECT_EQ(kept(), 0U);
  }
}

TEST_F(RetentionAndTheClock, UsesTheTimeOfLaterMessages) {
  fill({now.us + day_us}, 12);
  fill(now, 12);
  now.us += 1'000'001;
  open();  // this life of the log never saw the clock that was ahead
  log->maintain(now);
  EXPECT_EQ(kept(), 0U) << "the first twelve are older than those behind them";
}

TEST_F(RetentionAndTheClock, KeepsMessagesAppendedAfterTheClockWasSetBack) {
  fill({now.us + day_us}, 12);
  log->maintain(now);
  now.us += 500'000;
  fill(now, 12);
  log->maintain({now.us + 600'000});
  EXPECT_LE(kept(), 15U);
  EXPECT_GE(kept(), 12U);
  log->maintain({now.us + 1'000'000});
  EXPECT_GE(kept(), 12U);
  log->maintain({now.us + 1'000'001});
  EXPECT_EQ(kept(), 0U);
}

// Tests that messages written while the clock was behind are not dropped early.
TEST_F(RetentionAndTheClock, KeepsMessagesOfAClockThatWasBehind) {
  fill(now, 12);
  fill({now.us - day_us}, 12);
  for (int life = 0; life < 2; ++life) {
    log->maintain({now.us + 1'000'000});
    EXPECT_EQ(kept(), 24U);
    open();
  }
  log->maintain({now.us + 1'000'001});
  EXPECT_EQ(kept(), 0U);
}

TEST(RingAndTheClock, ReleasesIdleMemoryAfterTheClockWasSetBack) {
  RingLog log({.capacity_bytes = limits::MiB});
  const Timestamp ahead{1'000'000'000'000};
  auto batch = make_batch({"m"});
  ASSERT_EQ(log.append(batch, ahead).outcome, AppendOutcome::appended);
  log.trim(log.next_offset());
  log.maintain({ahead.us - day_us});
  EXPECT_EQ(log.stored_bytes(), 0U);
  auto next = make_batch({"n"});
  EXPECT_EQ(log.append(next, {ahead.us - day_us}).base, Offset{1});
  EXPECT_EQ(log.first_since({0}).offset, Offset{1});
}

}  // namespace
}  // namespace lightq::log
