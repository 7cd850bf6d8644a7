/// Tests of the times when messages expire: against a list, and their memory.
#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "delivery/expiry/expiry_times.hpp"
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

/// Returns the memory of a million messages, one of which is noted in each millisecond.
std::size_t bytes_of_a_million(std::int64_t longest_s) {
  Random random;
  ExpiryTimes times;
  for (std::uint64_t i = 0; i < 1'000'000; ++i) {
    const auto ttl_us =
        static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(longest_s) * second_us));
    const Timestamp wall{start_us + static_cast<std::int64_t>(i)};
    times.add({Offset{i}, Offset{i + 1}}, {wall.us + ttl_us}, wall);
  }
  return times.bytes();
}

TEST(ExpiryTimesTest, AMillionMessagesWithRandomTimesTakeAFewMegabytes) {
  for (const auto& [longest_s, most_mib] : std::vector<std::pair<std::int64_t, std::size_t>>{
           {60, 4}, {3'600, 8}, {86'400, 12}, {3'650LL * 86'400, 64}}) {
    const std::size_t bytes = bytes_of_a_million(longest_s);
    RecordProperty("bytes_of_" + std::to_string(longest_s) + "_s", std::to_string(bytes));
    EXPECT_LE(bytes, most_mib * limits::MiB) << longest_s;
  }
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
