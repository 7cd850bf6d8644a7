/// Compares sets of offsets with a plain model over random changes, and checks their memory.
#include <gtest/gtest.h>

#include <bit>

#include "log/offsets/offset_model.hpp"

namespace lightq::log {
namespace {

using test::OffsetModel;

/// The offsets and lengths that a test draws.
struct Drawn {
  const char* name;
  std::uint64_t first;
  std::uint64_t offsets;     // from `first` on
  std::uint64_t length_max;  // of a range
  int changes;
  int adds_of_ten;
};

class OffsetSetRandomTest : public testing::TestWithParam<Drawn> {
 protected:
  struct Pair {
    OffsetSet set;
    OffsetModel model;
  };

  std::uint64_t below(std::uint64_t limit) {
    return std::uniform_int_distribution<std::uint64_t>(0, limit - 1)(random_);
  }
  OffsetRange draw();
  void change(Pair& pair);
  void look(const Pair& pair);
  void compare(const Pair& pair);

  std::mt19937_64 random_{20'261'126};
};

OffsetRange OffsetSetRandomTest::draw() {
  const Drawn& drawn = GetParam();
  const std::uint64_t begin = below(drawn.offsets);
  // Short and long ranges have about the same chance on a logarithmic scale. Some are empty.
  const auto scales = static_cast<std::uint64_t>(std::bit_width(drawn.length_max));
  std::uint64_t length = (1 + below(drawn.length_max)) >> below(scales);
  length = std::min(length, drawn.offsets - begin);
  return {{drawn.first + begin}, {drawn.first + begin + length}};
}

void OffsetSetRandomTest::change(Pair& pair) {
  const OffsetRange range = draw();
  const bool adds = below(10) < static_cast<std::uint64_t>(GetParam().adds_of_ten);
  if (adds) {
    pair.set.add(range);
    pair.model.add(range);
    return;
  }
  std::vector<OffsetRange> removed;
  if (below(4) == 0) {
    pair.set.remove(range);
    pair.model.remove(range);
  } else {
    pair.set.remove(range, [&](OffsetRange part) { removed.push_back(part); });
    ASSERT_EQ(removed, pair.model.remove(range));
  }
}

void OffsetSetRandomTest::look(const Pair& pair) {
  const OffsetRange range = draw();
  ASSERT_EQ(pair.set.count_in(range), pair.model.count_in(range));
  const auto behind = pair.model.first_behind(range.begin);
  ASSERT_EQ(pair.set.first_behind(range.begin), behind);
  ASSERT_EQ(pair.set.contains(range.begin), behind && behind->begin <= range.begin);
}

void OffsetSetRandomTest::compare(const Pair& pair) {
  const auto runs = pair.model.runs();
  ASSERT_EQ(test::runs_of(pair.set), runs);
  ASSERT_EQ(pair.set.size(), pair.model.size());
  const OffsetSet compact = test::set_of(runs);
  ASSERT_EQ(pair.set, compact);
  ASSERT_LE(pair.set.bytes(), 2 * compact.bytes() + 256);
  ASSERT_EQ(pair.set.empty(), runs.empty());
  if (runs.empty()) return;
  ASSERT_EQ(pair.set.first(), runs.front().begin);
  ASSERT_EQ(pair.set.end(), runs.back().end);
}

TEST_P(OffsetSetRandomTest, EqualsTheModelAndSnapshotsStay) {
  Pair pair;
  std::vector<Pair> snapshots;
  for (int i = 0; i < GetParam().changes && !HasFatalFailure(); ++i) {
    change(pair);
    if (i % 16 == 0) look(pair);
    if (below(static_cast<std::uint64_t>(GetParam().changes) / 40) != 0) continue;
    compare(pair);
    if (!snapshots.empty() && below(4) == 0) pair = snapshots[below(snapshots.size())];
    snapshots.push_back(pair);
    if (snapshots.size() > 8) snapshots.erase(snapshots.begin() + static_cast<std::ptrdiff_t>(below(8)));
  }
  for (const Pair& snapshot : snapshots) compare(snapshot);
  // All memory that was counted is counted back.
  for (const OffsetRange& run : pair.model.runs()) pair.set.remove(run);
  EXPECT_TRUE(pair.set.empty());
  EXPECT_EQ(pair.set.bytes(), 0U);
}

INSTANTIATE_TEST_SUITE_P(
    Offsets, OffsetSetRandomTest,
    testing::Values(Drawn{"Few", 0, 60, 30, 20'000, 5}, Drawn{"ManyShort", 1'000, 100'000, 4, 60'000, 5},
                    Drawn{"MostlyAdded", 7, 40'000, 3, 60'000, 8},
                    Drawn{"MostlyRemoved", 7, 40'000, 300, 60'000, 3},
                    Drawn{"Wide", 0, ~std::uint64_t{0}, std::uint64_t{1} << 62, 30'000, 6},
                    Drawn{"NearTheEnd", ~std::uint64_t{0} - 3'000, 3'000, 40, 30'000, 5}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace lightq::log
