/// Tests of the parts of a group's state: numbers of deliveries, due times, and sets of waiting messages.
/// Each is compared with a plain map.
#include "delivery/state/waiting_messages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "delivery/state/set_merge.hpp"
#include "support/random.hpp"

namespace lightq::broker {
namespace {

using std::chrono::milliseconds;
using test::Random;
using testing::ElementsAre;

constexpr SteadyTime start{std::chrono::hours(100)};

log::OffsetSet set_of(const std::vector<OffsetRange>& runs) {
  log::OffsetSet set;
  for (const OffsetRange& run : runs) set.add(run);
  return set;
}
std::vector<OffsetRange> runs_of(const log::OffsetSet& set) {
  std::vector<OffsetRange> runs;
  set.for_each([&](OffsetRange run) { runs.push_back(run); });
  return runs;
}
OffsetRange random_range(Random& random, std::uint64_t below) {
  const std::uint64_t begin = random.below(below);
  return {{begin}, {begin + random.below(9)}};
}

// --- Sums and differences ---

TEST(SetMerge, IsTheSumAndTheDifferenceOfSets) {
  const auto odd = set_of({{{1}, {2}}, {{3}, {5}}, {{9}, {20}}});
  const auto even = set_of({{{2}, {3}}, {{4}, {6}}, {{12}, {14}}});
  EXPECT_THAT(runs_of(merged({&odd, &even})), ElementsAre(OffsetRange{{1}, {6}}, OffsetRange{{9}, {20}}));
  EXPECT_THAT(runs_of(without(odd, even)), ElementsAre(OffsetRange{{1}, {2}}, OffsetRange{{3}, {4}},
                                                       OffsetRange{{9}, {12}}, OffsetRange{{14}, {20}}));
  const log::OffsetSet none;
  EXPECT_TRUE(merged({&none, &odd, &none}).shares_all_with(odd));
  EXPECT_TRUE(without(odd, none).shares_all_with(odd));
  EXPECT_TRUE(merged({}).empty());
}

TEST(SetMerge, AgreesWithPlainSets) {
  Random random;
  for (int run = 0; run < 300; ++run) {
    std::vector<log::OffsetSet> sets(random.between(1, 5));
    std::vector<std::set<std::uint64_t>> plain(sets.size());
    for (std::size_t i = 0; i < sets.size(); ++i) {
      for (std::uint64_t left = random.below(20); left != 0; --left) {
        const OffsetRange range = random_range(random, 100);
        sets[i].add(range);
        for (std::uint64_t at = range.begin.value; at < range.end.value; ++at) plain[i].insert(at);
      }
    }
    std::vector<const log::OffsetSet*> all;
    std::set<std::uint64_t> sum;
    for (std::size_t i = 0; i < sets.size(); ++i) {
      all.push_back(&sets[i]);
      sum.insert(plain[i].begin(), plain[i].end());
    }
    const auto together = merged(all);
    const auto left = without(sets.front(), sets.back());
    for (std::uint64_t at = 0; at < 110; ++at) {
      ASSERT_EQ(together.contains({at}), sum.contains(at)) << at;
      ASSERT_EQ(left.contains({at}), plain.front().contains(at) && !plain.back().contains(at)) << at;
    }
  }
}

/// Returns ranges that ascend and do not overlap, some of which touch.
std::vector<OffsetRange> ascending_ranges(Random& random, std::uint64_t count, std::uint64_t gap_max) {
  std::vector<OffsetRange> ranges;
  for (Offset at{random.below(50)}; count != 0; --count) {
    ranges.push_back({at, at + random.between(1, 4)});
    at = ranges.back().end + random.below(gap_max);
  }
  return ranges;
}

TEST(SetMerge, AddsManyRangesAsIfOneByOne) {
  Random random;
  for (int run = 0; run < 200; ++run) {
    const std::uint64_t gap = random.between(1, 60);
    auto set = set_of(ascending_ranges(random, random.below(2000), gap));
    const auto added = ascending_ranges(random, random.below(run % 2 == 0 ? 8 : 800), gap);
    auto expected = set;
    for (const OffsetRange& range : added) expected.add(range);
    auto other = set;
    add_all(other, set_of(added));
    EXPECT_EQ(other, expected);
    other = set_of(added);
    add_all(other, set);
    EXPECT_EQ(other, expected);
    add_ranges(set, added);
    ASSERT_EQ(set, expected);
    clip(set, {{500}, {1000}});
    expected.remove({{0}, {500}});
    expected.remove({{1000}, {1'000'000}});
    ASSERT_EQ(set, expected);
  }
}

TEST(SetMerge, FindsRunsWithAnyNumberOfSearches) {
  Random random;
  for (int run = 0; run < 100; ++run) {
    const auto set = set_of(ascending_ranges(random, random.below(3000), 9));
    const std::size_t finds = random.one_in(2) ? 10 : 10'000;
    RunFinder finder(set, finds);
    for (Offset at{random.below(9)}; at < Offset{12'000}; at = at + random.below(40))
      ASSERT_EQ(finder.behind(at), set.first_behind(at)) << at.value;
  }
}

// --- Numbers of deliveries ---

TEST(DeliveryCounts, AgreesWithAMap) {
  constexpr std::uint32_t most = std::numeric_limits<std::uint32_t>::max();
  constexpr std::uint64_t offsets = 200;
  Random random;
  DeliveryCounts counts;
  std::map<std::uint64_t, std::uint32_t> plain;
  const auto number_at = [&](std::uint64_t at) {
    return plain.contains(at) ? plain[at] : DeliveryCounts::by_default;
  };
  for (int step = 0; step < 5000; ++step) {
    const OffsetRange range = random_range(random, offsets);
    const bool sets = !random.one_in(3);
    const std::uint32_t number = random.one_in(20) ? most - static_cast<std::uint32_t>(random.below(3))
                                                   : static_cast<std::uint32_t>(random.below(20));
    sets ? counts.set(range, number) : counts.remove(range);
    for (std::uint64_t at = range.begin.value; at < range.end.value; ++at)
      plain[at] = sets ? number : DeliveryCounts::by_default;
    const std::uint64_t at = random.below(offsets);
    ASSERT_EQ(counts.of({at}), number_at(at));
    const std::uint64_t end = at + random.between(1, 50);
    std::uint64_t equal = at + 1;
    while (equal < end && number_at(equal) == number_at(at)) ++equal;
    ASSERT_EQ(counts.end_of_equal({{at}, {end}}), Offset{equal});
    ASSERT_LE(counts.sets().size(), log::Unfinished::delivery_bits_max);
    ASSERT_TRUE(counts.sets().empty() || !counts.sets().back().empty());
    ASSERT_EQ(DeliveryCounts(counts.sets()).of({at}), number_at(at));
  }
  counts.remove({{0}, {offsets + 10}});
  EXPECT_TRUE(counts.empty());
  EXPECT_EQ(counts.bytes(), 0U);
}

TEST(DeliveryCounts, MessagesThatWereDeliveredOnceTakeNoMemory) {
  DeliveryCounts counts;
  for (std::uint64_t at = 0; at < 1000; at += 2) counts.set({{at}, {at + 1}}, 1);
  EXPECT_EQ(counts.bytes(), 0U);
  EXPECT_EQ(counts.of({4}), 1U);
}

// --- Due times ---

TEST(DueTimes, RoundsUpByAtMostAHundredAndTwentyEighthAndEightMilliseconds) {
  Random random;
  for (int i = 0; i < 10'000; ++i) {
    const SteadyTime now = start + std::chrono::nanoseconds(random.below(1'000'000'000'000));
    const auto ms = static_cast<std::uint32_t>(random.below(std::uint64_t{1} << random.between(1, 32)));
    const SteadyTime due = DueTimes::after(now, ms);
    ASSERT_GE(due, now + milliseconds(ms));
    ASSERT_LT(due, now + milliseconds(ms) + milliseconds(std::max<std::int64_t>(8, ms / 128)));
  }
}

/// Adds messages with the delays that `next_delay` returns, and lets time pass. Returns the most due times
/// that there were at once.
template <typename NextDelay>
std::size_t most_due_times(Random& random, int steps, NextDelay&& next_delay) {
  DueTimes times;
  SteadyTime now = start;
  std::size_t most = 0;
  std::uint64_t offset = 0;
  for (int step = 0; step < steps; ++step, ++offset) {
    times.add({{offset}, {offset + 1}}, DueTimes::after(now, next_delay(step)));
    most = std::max(most, times.sets().size());
    if (random.one_in(4)) now += std::chrono::microseconds(random.below(20'000));
    times.release(now, 1000, [](OffsetRange) {});
  }
  return most;
}

TEST(DueTimes, ThereAreFewWhateverDelaysAreAskedFor) {
  Random random;
  const auto any = [&](int) { return static_cast<std::uint32_t>(random.below(std::uint64_t{1} << 32)); };
  const auto any_size = [&](int) {
    return static_cast<std::uint32_t>(random.below(std::uint64_t{1} << random.between(1, 32)));
  };
  // Each next delay has a due time of its own, if it is possible at all.
  const auto ascending = [](int step) {
    std::uint64_t ms = 0;
    for (int i = 0; i < step % 3200; ++i) ms += std::max<std::uint64_t>(8, ms / 128);
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(ms, std::numeric_limits<std::uint32_t>::max()));
  };
  for (const std::size_t most :
       {most_due_times(random, 50'000, any), most_due_times(random, 50'000, any_size),
        most_due_times(random, 10'000, ascending)}) {
    EXPECT_LE(most, DueTimes::rounded_max);
    EXPECT_GT(most, 100U);
  }
}

TEST(DueTimes, RestartsKeepTimesExactUntilThereAreManyAndThenRoughly) {
  const SteadyTime due = start + std::chrono::hours(1) + std::chrono::microseconds(1);
  const SteadyTime exact = DueTimes::restored(start, due, false);
  EXPECT_GE(exact, due);
  EXPECT_LT(exact, due + milliseconds(8));
  const SteadyTime rough = DueTimes::restored(start, due, true);
  EXPECT_GE(rough, due);
  EXPECT_LT(rough, due + std::chrono::seconds(30));
  EXPECT_EQ(DueTimes::restored(start, start - milliseconds(5), true), start);
}

TEST(ClockReading, NoTimeIsEarly) {
  const ClockReading saved{start, {1'000'000'000}};
  const SteadyTime due = start + std::chrono::nanoseconds(5'000'001);
  EXPECT_EQ(saved.wall_time_of(due).us, 1'000'005'001);
  EXPECT_EQ(saved.wall_time_of(start - std::chrono::nanoseconds(1)).us, 1'000'000'000);
  const ClockReading restored{SteadyTime{std::chrono::hours(1)}, {1'000'002'000}};
  EXPECT_EQ(restored.steady_time_of({1'000'005'001}), restored.steady + std::chrono::microseconds(3'001));
  EXPECT_EQ(restored.steady_time_of({5}), restored.steady) << "it is due";
  constexpr std::int64_t latest = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(restored.steady_time_of({latest}), restored.steady + milliseconds(std::int64_t{1} << 32));
  const ClockReading early{start, {std::numeric_limits<std::int64_t>::min()}};
  EXPECT_EQ(early.steady_time_of({latest}), start + milliseconds(std::int64_t{1} << 32));
}

// --- Waiting messages ---

TEST(WaitingMessages, TheFrontHasOneNumberOfDeliveries) {
  WaitingMessages waiting;
  waiting.add({{10}, {20}}, 3);
  waiting.add({{20}, {30}}, 4);
  EXPECT_EQ(waiting.front().range, (OffsetRange{{10}, {20}}));
  EXPECT_EQ(waiting.front().deliveries, 3U);
  waiting.remove_ready({{10}, {15}});
  EXPECT_EQ(waiting.front().range, (OffsetRange{{15}, {20}}));
  waiting.remove_ready({{15}, {20}});
  EXPECT_EQ(waiting.front().deliveries, 4U);
  waiting.add({{15}, {20}}, 4);
  EXPECT_EQ(waiting.front().range, (OffsetRange{{15}, {30}}));
}

TEST(WaitingMessages, ReleasesALimitedNumberOfRangesInACall) {
  constexpr std::uint64_t messages = 5000;
  WaitingMessages waiting;
  const SteadyTime due = DueTimes::after(start, 1000);
  for (std::uint64_t at = 0; at < messages; ++at) waiting.add_delayed({{2 * at}, {2 * at + 1}}, 2, due);
  EXPECT_EQ(waiting.release(start), due);
  EXPECT_EQ(waiting.ready().size(), 0U);
  int calls = 0;
  while (waiting.release(due) == due) {
    ++calls;
    ASSERT_LE(waiting.ready().size(), 1024U * static_cast<unsigned>(calls));
    ASSERT_EQ(waiting.ready().size() + waiting.delayed().size(), messages);
  }
  EXPECT_GE(calls, 4);
  EXPECT_EQ(waiting.ready().size(), messages);
  EXPECT_EQ(waiting.release(due), never);
  EXPECT_EQ(waiting.front().deliveries, 2U);
}

TEST(WaitingMessages, AMessageThatWasGivenUpIsIgnoredAndNeverReady) {
  WaitingMessages waiting;
  waiting.add_delayed({{0}, {10}}, 1, start + milliseconds(8));
  waiting.add({{10}, {12}}, 1);
  EXPECT_EQ(waiting.give_up_before({5}), 5U);
  EXPECT_EQ(waiting.give_up_before({5}), 0U);
  EXPECT_EQ(waiting.add_delayed({{3}, {5}}, 1, start + milliseconds(800)), 2U);
  EXPECT_EQ(waiting.add({{0}, {5}}, 1), 5U);
  waiting.release(start + milliseconds(8));
  EXPECT_THAT(runs_of(waiting.ready()), ElementsAre(OffsetRange{{5}, {12}}));
}

TEST(WaitingMessages, CarriedMessagesKeepTheirDueTimesAndThoseGivenUpHaveNone) {
  WaitingMessages waiting;
  waiting.add_delayed({{0}, {10}}, 1, start + milliseconds(8));
  waiting.add_delayed({{10}, {100}}, 1, start + milliseconds(16));
  EXPECT_EQ(waiting.due_from(), Offset{0});
  EXPECT_EQ(waiting.give_up_before({5}), 5U);
  EXPECT_EQ(waiting.due().messages(), 100U) << "few are removed later, all at once";
  EXPECT_EQ(waiting.due_from(), Offset{5});
  log::OffsetSet carried;
  carried.add({{6}, {7}});
  carried.add({{20}, {21}});
  EXPECT_EQ(waiting.give_up_before({30}, carried, {5}), 23U);
  EXPECT_EQ(waiting.due().messages(), 72U);
  EXPECT_EQ(waiting.due_from(), Offset{0});
  waiting.release(start + milliseconds(8));
  EXPECT_THAT(runs_of(waiting.ready()), ElementsAre(OffsetRange{{6}, {7}}));
  // The copies are gone; the walk goes on from where it was.
  EXPECT_EQ(waiting.give_up_before({40}, {}, {30}), 10U);
  EXPECT_EQ(waiting.due_from(), Offset{0});
  EXPECT_EQ(waiting.due().messages(), waiting.delayed().size());
}

TEST(WaitingMessages, GivenUpMessagesDoNotKeepMemory) {
  WaitingMessages waiting;
  Random random;
  for (std::uint64_t at = 0; at < 20'000; ++at)
    waiting.add_delayed({{2 * at}, {2 * at + 1}}, 2, start + milliseconds(8 * random.between(1, 1000)));
  const std::size_t full = waiting.bytes();
  waiting.give_up_before({39'000});
  EXPECT_EQ(waiting.delayed().size(), 500U);
  EXPECT_LT(waiting.bytes(), full / 4);
  EXPECT_LE(waiting.due().messages(), 2 * waiting.delayed().size());
  waiting.give_up_before({100'000});
  EXPECT_TRUE(waiting.empty());
  EXPECT_EQ(waiting.bytes(), 0U);
}

TEST(WaitingMessages, ManyAtOnceAreAddedAsOneByOne) {
  Random random;
  for (int run = 0; run < 100; ++run) {
    WaitingMessages together;
    WaitingMessages single;
    const Offset gone{random.below(100)};
    for (WaitingMessages* const each : {&together, &single}) {
      each->add({{0}, {1}}, 1);
      each->give_up_before(gone);
    }
    Offset from{1};
    for (int batch = 0; batch < 6; ++batch) {
      CountedRanges ranges;
      for (const OffsetRange& range : ascending_ranges(random, random.below(500), 4))
        ranges.push_back({{from + range.begin.value, from + range.end.value},
                          static_cast<std::uint32_t>(random.below(std::uint64_t{1} << random.below(33)))});
      if (!ranges.empty()) from = ranges.back().range.end;
      const SteadyTime due = start + milliseconds(100 * random.below(3));
      const bool delayed = random.one_in(2);
      std::uint64_t ignored = 0;
      for (const CountedRange& each : ranges) {
        ignored += delayed ? single.add_delayed(each.range, each.deliveries, due)
                           : single.add(each.range, each.deliveries);
      }
      ASSERT_EQ(delayed ? together.add_delayed(ranges, due) : together.add(ranges), ignored);
      ASSERT_EQ(together.ready(), single.ready());
      ASSERT_EQ(together.delayed(), single.delayed());
      ASSERT_EQ(together.counts().sets(), single.counts().sets());
      ASSERT_EQ(together.due().sets(), single.due().sets());
    }
    ASSERT_LE(together.bytes(), 2 * single.bytes());
  }
}

TEST(WaitingMessages, AgreesWithAMap) {
  struct Plain {
    std::uint32_t deliveries = 0;
    SteadyTime due{};
  };
  for (int run = 0; run < 20; ++run) {
    Random random(run);
    WaitingMessages waiting;
    std::map<std::uint64_t, Plain> plain;
    std::uint64_t gone = 0;
    SteadyTime now = start;
    for (int step = 0; step < 1000; ++step) {
      const std::uint64_t at = gone + random.below(300);
      const auto number = static_cast<std::uint32_t>(random.below(6));
      const bool waits = plain.contains(at);
      if (!waits && random.one_in(2)) {
        waiting.add({{at}, {at + 1}}, number);
        plain[at] = {number, now};
      } else if (!waits) {
        const SteadyTime due = DueTimes::after(now, static_cast<std::uint32_t>(random.below(500)));
        waiting.add_delayed({{at}, {at + 1}}, number, due);
        plain[at] = {number, due};
      } else if (random.one_in(2) && waiting.ready().contains({at})) {
        waiting.remove_ready({{at}, {at + 1}});
        plain.erase(at);
      }
      if (random.one_in(10)) now += milliseconds(random.below(40));
      if (random.one_in(40)) gone += random.below(20);
      waiting.give_up_before({gone});
      plain.erase(plain.begin(), plain.lower_bound(gone));
      waiting.release(now);
      ASSERT_EQ(waiting.ready().size() + waiting.delayed().size(), plain.size());
      ASSERT_EQ(waiting.empty(), plain.empty());
      if (plain.empty()) continue;
      ASSERT_EQ(waiting.first(), Offset{plain.begin()->first});
      for (const auto& [offset, expected] : plain) {
        ASSERT_EQ(waiting.ready().contains({offset}), expected.due <= now) << offset;
        ASSERT_EQ(waiting.delayed().contains({offset}), expected.due > now) << offset;
        ASSERT_EQ(waiting.counts().of({offset}), expected.deliveries) << offset;
      }
    }
  }
}

}  // namespace
}  // namespace lightq::broker
