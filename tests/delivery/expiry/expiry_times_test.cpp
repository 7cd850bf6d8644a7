/// Tests of the times when messages expire: against a list, and their memory.
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "delivery/expiry/expiry_times.hpp"
#include "delivery/expiry/expiry_world.hpp"
#include "support/random.hpp"

namespace lightq::broker {
namespace {

using test::Random;

constexpr std::int64_t second_us = 1'000'000;
constexpr std::int64_t start_us = 1'700'000'000 * second_us;

TEST(FarTimesTest, ReturnsWhatWasAdded) {
  Random random;
  FarTimes times;
  std::vector<FarTimes::Run> added;
  Offset at{1'000};
  for (int i = 0; i < 5'000; ++i) {
    // Mostly ascending offsets; sometimes older ones, as a start finds them.
    const Offset begin = random.one_in(50) ? Offset{random.below(1'000'000'000)} : at + random.below(100);
    const FarTimes::Run run{{begin, begin + random.between(1, 5)},
                            static_cast<std::uint32_t>(random.below(7'200))};
    at = run.range.end;
    times.add(run);
    if (!added.empty() && added.back().step == run.step && added.back().range.end == run.range.begin) {
      added.back().range.end = run.range.end;
    } else {
      added.push_back(run);
    }
  }
  std::vector<FarTimes::Run> taken;
  while (!times.empty()) times.take_block(taken);
  EXPECT_EQ(times.bytes(), 0U);
  ASSERT_EQ(taken.size(), added.size());
  for (std::size_t i = 0; i < taken.size(); ++i) {
    EXPECT_EQ(taken[i].range, added[i].range);
    EXPECT_EQ(taken[i].step, added[i].step);
  }
}

TEST(FarTimesTest, ForgetsBlocksOfOldMessages) {
  FarTimes times;
  for (std::uint64_t i = 0; i < 10'000; ++i) times.add({{Offset{2 * i}, Offset{2 * i + 1}}, 7});
  const std::size_t bytes = times.bytes();
  times.forget_before(Offset{10'000});
  EXPECT_LT(times.bytes(), bytes * 6 / 10);
  times.forget_before(Offset{20'000});
  EXPECT_TRUE(times.empty());
  EXPECT_EQ(times.bytes(), 0U);
}

/// Messages with random times, in the order of their offsets, and a clock that mostly goes forward.
TEST(ExpiryTimesTest, NoMessageIsDueEarlyOrMoreThanHalfASecondLate) {
  Random random;
  for (const std::int64_t longest_s : {2LL, 600LL, 40'000LL, 300'000'000LL}) {
    ExpiryTimes times;
    std::map<Offset, std::int64_t> expiries;  // of messages that are not due yet
    Offset next{0};
    std::int64_t wall = start_us;
    for (int step = 0; step < 3'000; ++step) {
      for (std::uint64_t n = random.below(5); n != 0; --n) {
        const std::int64_t expiry =
            wall + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(longest_s * second_us)));
        times.add({next, next + 1}, {expiry}, {wall});
        expiries[next] = expiry;
        next = next + random.between(1, 3);
      }
      if (random.one_in(20)) {
        wall -= static_cast<std::int64_t>(random.below(1'000'000));
      } else {
        wall += static_cast<std::int64_t>(
            random.below(static_cast<std::uint64_t>(longest_s * second_us) / (random.one_in(10) ? 5 : 500)));
      }
      const auto expire = [&](OffsetRange range) {
        for (Offset at = range.begin; at < range.end; at = at + 1) {
          ASSERT_TRUE(expiries.contains(at)) << at.value;
          ASSERT_LE(expiries[at], wall);
          expiries.erase(at);
        }
      };
      while (times.release({wall}, expire)) {
      }
      std::int64_t earliest = ExpiryTimes::nothing_due.us;
      for (const auto& [offset, expiry] : expiries) {
        ASSERT_LT(wall, expiry + ExpiryTimes::step_us) << offset.value;
        if (expiry <= wall) {
          ASSERT_TRUE(times.may_have_expired({offset, offset + 1}, {wall}));
        }
        earliest = std::min(earliest, expiry);
      }
      if (!expiries.empty()) {
        ASSERT_LT(times.next().us, earliest + ExpiryTimes::step_us);
      }
    }
    for (const auto& [offset, expiry] : expiries) wall = std::max(wall, expiry + second_us);
    while (times.release({wall}, [&](OffsetRange range) {
      for (Offset at = range.begin; at < range.end; at = at + 1) expiries.erase(at);
    })) {
    }
    EXPECT_TRUE(expiries.empty());
    EXPECT_TRUE(times.empty());
    EXPECT_EQ(times.bytes(), 0U);
  }
}

/// Returns what the allocator has given out, or 0 if it does not tell.
std::size_t allocated_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

/// Returns the memory of a million messages, one of which is noted in each microsecond. The allocator takes
/// about as much.
std::size_t bytes_of_a_million(std::int64_t longest_s, std::size_t far_bytes_max) {
  Random random;
  const std::size_t before = allocated_bytes();
  ExpiryTimes times(far_bytes_max);
  for (std::uint64_t i = 0; i < 1'000'000; ++i) {
    const auto ttl_us =
        static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(longest_s) * second_us));
    const Timestamp wall{start_us + static_cast<std::int64_t>(i)};
    times.add({Offset{i}, Offset{i + 1}}, {wall.us + ttl_us}, wall);
  }
  const std::size_t allocated = allocated_bytes() - before;
  testing::Test::RecordProperty("allocated_of_" + std::to_string(longest_s) + "_s",
                                std::to_string(allocated));
  EXPECT_LE(allocated, times.bytes() + times.bytes() / 8) << longest_s;
  return times.bytes();
}

TEST(ExpiryTimesTest, AMillionMessagesWithRandomTimesTakeAFewMegabytes) {
  for (const auto& [longest_s, most_mib] : std::vector<std::pair<std::int64_t, std::size_t>>{
           {60, 4}, {3'600, 8}, {86'400, 12}, {3'650LL * 86'400, 64}}) {
    const std::size_t bytes = bytes_of_a_million(longest_s, 1'024 * limits::MiB);
    RecordProperty("bytes_of_" + std::to_string(longest_s) + "_s", std::to_string(bytes));
    EXPECT_LE(bytes, most_mib * limits::MiB) << longest_s;
  }
}

TEST(ExpiryTimesTest, TimesOfManyYearsTakeABoundedAmountOfMemory) {
  const std::size_t bytes = bytes_of_a_million(3'650LL * 86'400, ExpiryTimes::far_bytes_most);
  RecordProperty("bytes", std::to_string(bytes));
  EXPECT_LE(bytes, 15 * limits::MiB);
}

TEST(ExpiryTimesTest, RangesOfHoursAreForgottenWithTheirMessages) {
  ExpiryTimes times(0);
  const Timestamp wall{start_us};
  for (std::uint64_t hour = 2; hour < 500; ++hour)
    times.add({Offset{hour}, Offset{hour + 1}},
              {wall.us + static_cast<std::int64_t>(hour) * 3'600 * second_us}, wall);
  EXPECT_FALSE(times.take_unlisted(wall));
  log::OffsetSet carried;
  carried.add({Offset{100}, Offset{101}});
  for (int call = 0; call < 20; ++call) times.sweep(Offset{400}, &carried);
  EXPECT_EQ(times.bytes() % 101, 0U) << "100 messages that the log has, and one that was carried over";
  for (int call = 0; call < 20; ++call) times.sweep(Offset{501});
  EXPECT_TRUE(times.empty());
  EXPECT_EQ(times.bytes(), 0U);
}

/// An index that lists no times more than an hour ahead. It reads them from the log when their hour is near.
TEST(ExpiryIndexTest, TimesBeyondTheBoundAreReadAgainAndNoMessageIsEarlyOrLate) {
  Random random;
  test::ExpiryWorld world(0, 64 * limits::MiB);
  ExpiryIndex index(world.log, 0);
  std::multimap<std::int64_t, Offset> expiries;
  const auto tend = [&] {
    while (index.tend(world.wall, world.now)) {
    }
    ASSERT_EQ(index.next_timer(world.wall, world.now), never);
  };
  std::uint64_t has_expired = 0;
  for (int turn = 0; turn < 200 || !expiries.empty(); ++turn) {
    if (turn < 200) {
      std::vector<test::TtlMessage> messages(random.between(1, 20));
      for (test::TtlMessage& each : messages) {
        const std::uint64_t longest_ms = random.one_in(2) ? 4'000'000 : 100'000'000;
        if (!random.one_in(4)) each.ttl_ms = static_cast<std::int64_t>(random.between(1, longest_ms));
      }
      const Offset first = world.log.next_offset();
      ASSERT_EQ(world.publish(messages), PublishOutcome::accepted);
      for (std::size_t i = 0; i < messages.size(); ++i) {
        if (messages[i].ttl_ms != 0) expiries.emplace(world.wall.us + messages[i].ttl_ms * 1000, first + i);
      }
      index.note({first, world.log.next_offset()});
    }
    tend();
    if (testing::Test::HasFatalFailure()) FAIL() << turn;
    while (!expiries.empty() && expiries.begin()->first + ExpiryTimes::step_us <= world.wall.us) {
      ASSERT_TRUE(index.expired().contains(expiries.begin()->second)) << expiries.begin()->second.value;
      expiries.erase(expiries.begin());
      ++has_expired;
    }
    const auto next = std::ranges::find_if(
        expiries, [&](const auto& each) { return !index.expired().contains(each.second); });
    if (next != expiries.end()) {
      ASSERT_LT(index.next_due().us, next->first + ExpiryTimes::step_us);
    }
    const auto due = std::ranges::distance(expiries.begin(), expiries.upper_bound(world.wall.us));
    ASSERT_LE(index.expired().size(), has_expired + static_cast<std::uint64_t>(due));
    world.pass(std::chrono::milliseconds(random.below(random.one_in(20) ? 4'000'000 : 60'000)));
  }
  EXPECT_GT(has_expired, 1'000U);
}

TEST(ExpiryTimesTest, MessagesThatTheLogHasDroppedAreForgotten) {
  Random random;
  for (const std::int64_t longest_s : {600LL, 864'000LL}) {
    ExpiryTimes times;
    std::size_t most = 0;
    Timestamp wall{start_us};
    for (std::uint64_t i = 0; i < 400'000; ++i) {
      const auto ttl_us =
          static_cast<std::int64_t>(random.between(60, static_cast<std::uint64_t>(longest_s)) * second_us);
      times.add({Offset{i}, Offset{i + 1}}, {wall.us + ttl_us}, wall);
      if (i % 100 == 0) times.sweep(Offset{i});
      most = std::max(most, times.bytes());
    }
    EXPECT_LT(most, 2 * limits::MiB) << longest_s;
  }
}

}  // namespace
}  // namespace lightq::broker
