/// Tests sets of offsets: each operation, with runs of any length, at both ends of the numbers.
#include "log/offsets/offset_set.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "log/offsets/offset_model.hpp"

namespace lightq::log {
namespace {

using test::runs_of;
using test::set_of;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t highest = ~std::uint64_t{0};

OffsetRange from_to(std::uint64_t begin, std::uint64_t end) {
  return {{begin}, {end}};
}

/// Returns every second offset: 0, 2, 4 and so on.
OffsetSet every_second(std::uint64_t count) {
  OffsetSetBuilder builder;
  for (std::uint64_t i = 0; i < count; ++i) builder.append(from_to(2 * i, 2 * i + 1));
  return builder.finish();
}

TEST(OffsetSetTest, IsEmptyAtFirstAndHasNoMemory) {
  const OffsetSet set;
  EXPECT_TRUE(set.empty());
  EXPECT_EQ(set.size(), 0U);
  EXPECT_EQ(set.bytes(), 0U);
  EXPECT_FALSE(set.contains({0}));
  EXPECT_FALSE(set.first_behind({0}).has_value());
  EXPECT_EQ(set.count_in(from_to(0, highest)), 0U);
  EXPECT_THAT(runs_of(set), IsEmpty());
  EXPECT_EQ(set, OffsetSet());
}

TEST(OffsetSetTest, MergesRangesThatTouchOrOverlap) {
  OffsetSet set;
  set.add(from_to(10, 12));
  set.add(from_to(20, 22));
  EXPECT_THAT(runs_of(set), ElementsAre(from_to(10, 12), from_to(20, 22)));
  set.add(from_to(12, 14));
  EXPECT_THAT(runs_of(set), ElementsAre(from_to(10, 14), from_to(20, 22)));
  set.add(from_to(18, 20));
  EXPECT_THAT(runs_of(set), ElementsAre(from_to(10, 14), from_to(18, 22)));
  set.add(from_to(8, 11));
  set.add(from_to(21, 25));
  EXPECT_THAT(runs_of(set), ElementsAre(from_to(8, 14), from_to(18, 25)));
  set.add(from_to(14, 18));
  EXPECT_THAT(runs_of(set), ElementsAre(from_to(8, 25)));
  set.add(from_to(9, 20));
  set.add(from_to(30, 30));
  set.add(from_to(30, 29));
  EXPECT_THAT(runs_of(set), ElementsAre(from_to(8, 25)));
  set.add(from_to(0, 100));
  EXPECT_THAT(runs_of(set), ElementsAre(from_to(0, 100)));
  EXPECT_EQ(set.size(), 100U);
  EXPECT_EQ(set.end(), Offset{100});
}

TEST(OffsetSetTest, RemovesPartsAndNamesThem) {
  OffsetSet set = set_of({from_to(0, 10), from_to(20, 30), from_to(40, 50)});
  std::vector<OffsetRange> removed;
  const auto note = [&](OffsetRange part) { removed.push_back(part); };
  set.remove(from_to(4, 6), note);
  EXPECT_THAT(removed, ElementsAre(from_to(4, 6)));
  set.remove(from_to(8, 42), note);
  EXPECT_THAT(removed, ElementsAre(from_to(4, 6), from_to(8, 10), from_to(20, 30), from_to(40, 42)));
  EXPECT_THAT(runs_of(set), ElementsAre(from_to(0, 4), from_to(6, 8), from_to(42, 50)));
  removed.clear();
  set.remove(from_to(4, 6), note);
  set.remove(from_to(8, 42), note);
  set.remove(from_to(50, highest), note);
  set.remove(from_to(7, 7), note);
  EXPECT_THAT(removed, IsEmpty());
  set.remove(from_to(0, highest));
  EXPECT_TRUE(set.empty());
  EXPECT_EQ(set.bytes(), 0U);
}

TEST(OffsetSetTest, FindsRunsAndCounts) {
  const OffsetSet set = set_of({from_to(5, 10), from_to(20, 21)});
  EXPECT_EQ(set.first(), Offset{5});
  EXPECT_EQ(set.first_behind({0}), from_to(5, 10));
  EXPECT_EQ(set.first_behind({9}), from_to(5, 10));
  EXPECT_EQ(set.first_behind({10}), from_to(20, 21));
  EXPECT_EQ(set.first_behind({20}), from_to(20, 21));
  EXPECT_FALSE(set.first_behind({21}).has_value());
  EXPECT_FALSE(set.first_behind({highest}).has_value());
  EXPECT_TRUE(set.contains({5}) && set.contains({9}) && set.contains({20}));
  EXPECT_FALSE(set.contains({4}) || set.contains({10}) || set.contains({19}) || set.contains({21}));
  EXPECT_EQ(set.count_in(from_to(0, 100)), 6U);
  EXPECT_EQ(set.count_in(from_to(6, 8)), 2U);
  EXPECT_EQ(set.count_in(from_to(9, 21)), 2U);
  EXPECT_EQ(set.count_in(from_to(10, 20)), 0U);
  EXPECT_EQ(set.count_in(from_to(8, 6)), 0U);
}

TEST(OffsetSetTest, HoldsGiantRunsAtTheHighestOffsets) {
  OffsetSet set;
  set.add(from_to(0, std::uint64_t{1} << 62));
  set.add(from_to(highest - 5, highest));
  set.add(from_to((std::uint64_t{1} << 63) - 1, std::uint64_t{1} << 63));
  EXPECT_EQ(set.size(), (std::uint64_t{1} << 62) + 6);
  EXPECT_LE(set.bytes(), 64U);
  EXPECT_EQ(set.end(), Offset{highest});
  EXPECT_TRUE(set.contains({highest - 1}));
  EXPECT_FALSE(set.contains({highest}));
  set.remove(from_to(1000, highest - 3));
  EXPECT_THAT(runs_of(set), ElementsAre(from_to(0, 1000), from_to(highest - 3, highest)));
  set.add(from_to(0, highest));
  EXPECT_EQ(set.size(), highest);
  EXPECT_THAT(runs_of(set), ElementsAre(from_to(0, highest)));
}

TEST(OffsetSetTest, AFewOffsetsTakeFewBytes) {
  OffsetSet set;
  set.add(from_to(1'000'000'000'000, 1'000'000'000'001));
  set.add(from_to(1'000'000'000'500, 1'000'000'000'501));
  set.add(from_to(1'000'000'090'000, 1'000'000'090'010));
  EXPECT_LE(set.bytes(), 32U);
}

TEST(OffsetSetTest, CopiesDoNotChangeWithTheOriginal) {
  OffsetSet set = every_second(50'000);
  const OffsetSet copy = set;
  EXPECT_TRUE(copy.shares_all_with(set));
  set.remove(from_to(0, 1'000'000), [](OffsetRange) {});
  EXPECT_FALSE(copy.shares_all_with(set));
  EXPECT_EQ(copy, every_second(50'000));
  OffsetSet other = copy;
  other.add(from_to(1001, 1002));
  EXPECT_EQ(copy, every_second(50'000));
  EXPECT_EQ(other.size(), 50'001U);
  EXPECT_NE(other, copy);
}

TEST(OffsetSetTest, AChangeThatChangesNothingKeepsTheMemoryShared) {
  OffsetSet set = every_second(5'000);
  const OffsetSet copy = set;
  set.add(from_to(2'000, 2'001));
  set.remove(from_to(2'001, 2'002));
  set.add(from_to(3, 3));
  set.remove(from_to(20'000, 30'000));
  EXPECT_TRUE(copy.shares_all_with(set));
}

TEST(OffsetSetTest, ComparesContentOnly) {
  OffsetSet one = every_second(10'000);
  OffsetSet another = every_second(10'000);
  EXPECT_FALSE(one.shares_all_with(another));
  EXPECT_EQ(one, another);
  // Other leaves, the same runs.
  for (std::uint64_t i = 0; i < 10'000; i += 3) another.add(from_to(2 * i + 1, 2 * i + 2));
  EXPECT_NE(one, another);
  for (std::uint64_t i = 0; i < 10'000; i += 3) another.remove(from_to(2 * i + 1, 2 * i + 2));
  EXPECT_EQ(one, another);
  another.remove(from_to(10'000, 10'001));
  EXPECT_NE(one, another);
  another.add(from_to(10'001, 10'002));
  EXPECT_EQ(one.size(), another.size());
  EXPECT_NE(one, another);
}

TEST(OffsetSetTest, IsMovedAndAssigned) {
  OffsetSet set = every_second(1'000);
  OffsetSet moved = std::move(set);
  EXPECT_EQ(moved.size(), 1'000U);
  set = moved;
  EXPECT_TRUE(set.shares_all_with(moved));
  moved = OffsetSet();
  EXPECT_TRUE(moved.empty());
  OffsetSet& same = set;
  set = same;
  set = std::move(same);
  EXPECT_EQ(set, every_second(1'000));
  set.clear();
  EXPECT_EQ(set.bytes(), 0U);
}

TEST(OffsetSetTest, IteratesOverSeveralSetsAtOnce) {
  const OffsetSet one = every_second(3'000);
  OffsetSet::Runs runs(one);
  OffsetSet::Runs again(one);
  std::uint64_t count = 0;
  while (const auto run = runs.next()) {
    ASSERT_EQ(run, again.next());
    ASSERT_EQ(run, from_to(2 * count, 2 * count + 1));
    ++count;
  }
  EXPECT_EQ(count, 3'000U);
  EXPECT_FALSE(again.next().has_value());
  EXPECT_FALSE(again.next().has_value());
}

TEST(OffsetSetTest, TheBuilderMergesAndCanBeUsedAgain) {
  OffsetSetBuilder builder;
  EXPECT_TRUE(builder.finish().empty());
  builder.append(from_to(3, 5));
  builder.append(from_to(5, 9));
  builder.append(from_to(9, 9));
  builder.append(from_to(10, 11));
  EXPECT_THAT(runs_of(builder.finish()), ElementsAre(from_to(3, 9), from_to(10, 11)));
  builder.append(from_to(1, 2));
  EXPECT_THAT(runs_of(builder.finish()), ElementsAre(from_to(1, 2)));
  for (std::uint64_t i = 0; i < 100'000; ++i) builder.append(from_to(3 * i, 3 * i + 2));
}

}  // namespace
}  // namespace lightq::log
