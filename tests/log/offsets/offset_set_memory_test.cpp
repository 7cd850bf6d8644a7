/// Tests how much memory sets of offsets take: a million scattered offsets, and sequences of changes that try
/// to leave many small leaves.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "log/offsets/offset_model.hpp"

namespace lightq::log {
namespace {

constexpr std::size_t million = 1'000'000;
constexpr std::size_t bytes_of_a_million_max = 4 * limits::MiB;

OffsetRange only(std::uint64_t offset) {
  return {{offset}, {offset + 1}};
}

/// Returns a million ascending offsets, each with the chance of 1 in `one_of`.
std::vector<std::uint64_t> random_million(std::uint64_t one_of) {
  std::mt19937_64 random(one_of);
  std::geometric_distribution<std::uint64_t> gap(1.0 / static_cast<double>(one_of));
  std::vector<std::uint64_t> offsets(million);
  std::uint64_t next = 0;
  for (auto& offset : offsets) {
    offset = next + gap(random);
    next = offset + 1;
  }
  return offsets;
}

std::vector<std::uint64_t> every(std::uint64_t step) {
  std::vector<std::uint64_t> offsets(million);
  for (std::size_t i = 0; i < million; ++i) offsets[i] = step * i;
  return offsets;
}

/// Returns the set that is left of all offsets if all but `kept` are removed in ascending order.
OffsetSet left_in_order(const std::vector<std::uint64_t>& kept) {
  OffsetSet set;
  set.add({{0}, {kept.back() + 1}});
  std::uint64_t from = 0;
  for (const std::uint64_t offset : kept) {
    set.remove({{from}, {offset}});
    from = offset + 1;
  }
  return set;
}

void expect_small(const OffsetSet& set, const char* pattern, std::size_t offsets = million) {
  EXPECT_EQ(set.size(), offsets) << pattern;
  EXPECT_LE(set.bytes(), bytes_of_a_million_max / (million / offsets)) << pattern;
}

TEST(OffsetSetMemoryTest, AMillionRegularOffsetsFit) {
  expect_small(left_in_order(every(2)), "every second");
  expect_small(left_in_order(every(10)), "every tenth");
}

TEST(OffsetSetMemoryTest, AMillionRandomOffsetsFit) {
  expect_small(left_in_order(random_million(10)), "1 of 10");
  expect_small(left_in_order(random_million(100)), "1 of 100");
  expect_small(left_in_order(random_million(1'000)), "1 of 1,000");
}

// A quarter of a million has to fit in a quarter of the bytes.
TEST(OffsetSetMemoryTest, ScatteredOffsetsFitAfterChangesInRandomOrder) {
  auto offsets = random_million(100);
  offsets.resize(million / 4);
  std::shuffle(offsets.begin(), offsets.end(), std::mt19937_64(5));
  OffsetSet set;
  for (const std::uint64_t offset : offsets) set.add(only(offset));
  expect_small(set, "1 of 100, in random order", million / 4);
}

// Each message that is processed alone makes a hole.
TEST(OffsetSetMemoryTest, HolesInRandomOrderFit) {
  auto holes = every(2);
  holes.resize(million / 4);
  std::shuffle(holes.begin(), holes.end(), std::mt19937_64(6));
  OffsetSet set;
  set.add({{0}, {million / 2}});
  for (const std::uint64_t hole : holes) set.remove(only(hole));
  expect_small(set, "every second, in random order", million / 4);
}

// Removes nearly all offsets of every leaf, again and again.
TEST(OffsetSetMemoryTest, NoOrderOfChangesLeavesManySmallLeaves) {
  const std::uint64_t offsets = 100'000;
  OffsetSet set;
  for (const std::uint64_t kept_of : {1'000, 300, 170, 500}) {
    for (std::uint64_t i = 0; i < offsets; i += 2) set.add(only(i));
    const std::size_t full = set.bytes();
    std::vector<std::uint64_t> removed;
    for (std::uint64_t i = 0; i < offsets; i += 2) {
      if (i % kept_of != 0) removed.push_back(i);
    }
    std::shuffle(removed.begin(), removed.end(), std::mt19937_64(kept_of));
    for (const std::uint64_t offset : removed) set.remove(only(offset));
    EXPECT_LE(set.bytes(), 2 * test::compact_copy(set).bytes() + 256) << kept_of;
    EXPECT_LE(set.bytes(), full / 10) << kept_of;
  }
}

// Grows a leaf until it is split, and removes one of the parts, so that a naive set keeps a leaf for each
// few offsets.
TEST(OffsetSetMemoryTest, SplitsAndRemovalsInTurnKeepLeavesLarge) {
  OffsetSet set;
  for (std::uint64_t block = 0; block < 300; ++block) {
    const std::uint64_t begin = block * 2'000;
    for (std::uint64_t i = 0; i < 600; ++i) set.add(only(begin + 2 * ((i * 7) % 600)));
    set.remove({{begin + 4}, {begin + 600}});
    set.remove({{begin + 602}, {begin + 1'200}});
  }
  EXPECT_EQ(set.size(), 300U * 3);
  EXPECT_LE(set.bytes(), 2 * test::compact_copy(set).bytes() + 256);
}

TEST(OffsetSetMemoryTest, CountsBackAllMemoryOfAMillion) {
  OffsetSet set = left_in_order(random_million(10));
  const OffsetSet copy = set;
  const std::size_t bytes = copy.bytes();
  for (std::uint64_t from = set.first().value; !set.empty(); from += 12'345)
    set.remove({{from}, {from + 12'345}});
  EXPECT_EQ(set.bytes(), 0U);
  EXPECT_EQ(copy.bytes(), bytes);
  EXPECT_EQ(copy.size(), million);
}

}  // namespace
}  // namespace lightq::log
