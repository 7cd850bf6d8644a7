/// Tests of RangeMap: ranges with values, also compared with a plain map of offsets.
#include "delivery/state/range_map.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/random.hpp"

namespace lightq::broker {
namespace {

using testing::ElementsAre;

std::vector<std::string> texts(const RangeMap<int>& map) {
  std::vector<std::string> texts;
  map.for_each([&](OffsetRange range, int value) {
    texts.push_back(std::to_string(range.begin.value) + "-" + std::to_string(range.end.value) + ":" +
                    std::to_string(value));
  });
  return texts;
}

TEST(RangeMap, NeighboursOfEqualValueAreOneRange) {
  RangeMap<int> map;
  map.assign({{0}, {5}}, 1);
  map.assign({{10}, {15}}, 1);
  map.assign({{15}, {20}}, 2);
  EXPECT_THAT(texts(map), ElementsAre("0-5:1", "10-15:1", "15-20:2"));
  map.assign({{5}, {10}}, 1);
  EXPECT_THAT(texts(map), ElementsAre("0-15:1", "15-20:2"));
  EXPECT_EQ(map.messages(), 20U);
  EXPECT_EQ(map.ranges(), 2U);
}

TEST(RangeMap, ErasedRangesAreReportedInOrderAndOthersStay) {
  RangeMap<int> map;
  map.assign({{0}, {10}}, 1);
  map.assign({{20}, {30}}, 2);
  std::vector<std::string> removed;
  map.cut({{5}, {25}}, [&](OffsetRange range, int value) {
    removed.push_back(std::to_string(range.begin.value) + "-" + std::to_string(range.end.value) + ":" +
                      std::to_string(value));
  });
  EXPECT_THAT(removed, ElementsAre("5-10:1", "20-25:2"));
  EXPECT_THAT(texts(map), ElementsAre("0-5:1", "25-30:2"));
  map.cut({{2}, {3}});
  EXPECT_THAT(texts(map), ElementsAre("0-2:1", "3-5:1", "25-30:2"));
  EXPECT_EQ(map.front().range, (OffsetRange{{0}, {2}}));
  EXPECT_EQ(map.messages_in({{1}, {26}}), 1U + 2U + 1U);
}

/// A range map as a plain map: one entry for each offset.
using Model = std::map<std::uint64_t, int>;

void expect_same(const RangeMap<int>& map, const Model& model) {
  Model found;
  std::uint64_t last_end = 0;
  int last_value = -1;
  map.for_each([&](OffsetRange range, int value) {
    ASSERT_LT(range.begin, range.end);
    ASSERT_TRUE(last_value < 0 || last_end < range.begin.value ||
                (last_end == range.begin.value && value != last_value))
        << "ranges that overlap, or should be one";
    for (std::uint64_t at = range.begin.value; at < range.end.value; ++at) found[at] = value;
    last_end = range.end.value;
    last_value = value;
  });
  ASSERT_EQ(found, model);
  ASSERT_EQ(map.messages(), model.size());
  ASSERT_EQ(map.empty(), model.empty());
}

TEST(RangeMap, MatchesAModelMapOfOffsets) {
  test::Random random;
  RangeMap<int> map;
  Model model;
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t begin = random.below(100);
    const OffsetRange range{{begin}, {begin + random.below(15)}};
    const int value = static_cast<int>(random.below(3));
    const std::uint64_t choice = random.below(11);
    if (choice < 5) {
      map.assign(range, value);
      for (std::uint64_t at = begin; at < range.end.value; ++at) model[at] = value;
    } else if (choice == 10) {
      map.update(range, [&](OffsetRange, int& each) { each = (each + value) % 3; });
      for (auto& [at, each] : model)
        if (at >= begin && at < range.end.value) each = (each + value) % 3;
    } else if (choice < 9) {
      Model removed;
      map.cut(range, [&](OffsetRange part, int was) {
        for (std::uint64_t at = part.begin.value; at < part.end.value; ++at) removed[at] = was;
      });
      const auto first = model.lower_bound(begin);
      const auto last = model.lower_bound(range.end.value);
      ASSERT_EQ(removed, begin < range.end.value ? Model(first, last) : Model());
      if (begin < range.end.value) model.erase(first, last);
    } else {
      std::size_t removed = 0;
      map.cut_if([&](int each) { return each == value; },
                 [&](OffsetRange part, int) { removed += distance(part.begin, part.end); });
      ASSERT_EQ(removed, std::erase_if(model, [&](const auto& entry) { return entry.second == value; }));
    }
    std::uint64_t inside = 0;
    for (const auto& entry : model) inside += entry.first >= begin && entry.first < range.end.value ? 1 : 0;
    ASSERT_EQ(map.messages_in(range), inside);
    ASSERT_NO_FATAL_FAILURE(expect_same(map, model)) << "step " << step;
  }
}

}  // namespace
}  // namespace lightq::broker
