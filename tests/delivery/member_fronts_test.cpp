/// Tests of MemberFronts, also compared with an ordered set.
#include "delivery/state/member_fronts.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/random.hpp"

namespace lightq::broker {
namespace {

using testing::ElementsAre;

struct FrontItem : MemberFronts<FrontItem>::Place {};
using Fronts = MemberFronts<FrontItem>;
using FrontPair = std::pair<std::uint64_t, const FrontItem*>;

/// Takes at most `most` fronts out in their order, and puts them back.
std::vector<FrontPair> walked_fronts(Fronts& fronts, std::size_t most = SIZE_MAX) {
  std::vector<Fronts::Front> taken;
  while (!fronts.empty() && taken.size() < most) {
    taken.push_back(fronts.first());
    fronts.remove(*taken.back().member);
  }
  std::vector<FrontPair> walked;
  for (const Fronts::Front& front : taken) {
    walked.emplace_back(front.offset.value, front.member);
    fronts.set(*front.member, front.offset);
  }
  return walked;
}

TEST(MemberFronts, TheLowestOffsetIsFirst) {
  Fronts fronts;
  FrontItem a, b, c;
  EXPECT_TRUE(fronts.empty());
  fronts.set(a, {5});
  fronts.set(b, {3});
  fronts.set(c, {4});
  EXPECT_EQ(fronts.first().member, &b);
  EXPECT_EQ(fronts.size(), 3U);
  EXPECT_THAT(walked_fronts(fronts), ElementsAre(FrontPair(3, &b), FrontPair(4, &c), FrontPair(5, &a)));
  fronts.set(b, {6});
  EXPECT_THAT(walked_fronts(fronts), ElementsAre(FrontPair(4, &c), FrontPair(5, &a), FrontPair(6, &b)));
  fronts.set(a, {1});
  EXPECT_THAT(walked_fronts(fronts), ElementsAre(FrontPair(1, &a), FrontPair(4, &c), FrontPair(6, &b)));
  EXPECT_THAT(walked_fronts(fronts, 2), ElementsAre(FrontPair(1, &a), FrontPair(4, &c)));
}

TEST(MemberFronts, AMemberThatWasRemovedCanReturn) {
  Fronts fronts;
  FrontItem a, b;
  fronts.remove(a);  // it is not in the heap
  fronts.set(a, {1});
  fronts.remove(a);
  fronts.remove(a);
  EXPECT_TRUE(fronts.empty());
  EXPECT_THAT(walked_fronts(fronts), ElementsAre());
  fronts.set(b, {2});
  fronts.set(a, {7});
  fronts.remove(b);
  EXPECT_THAT(walked_fronts(fronts), ElementsAre(FrontPair(7, &a)));
  fronts.remove(a);
  EXPECT_EQ(fronts.size(), 0U);
}

TEST(MemberFronts, HasTheOrderOfASet) {
  constexpr std::uint64_t steps = 5000;
  int series = 0;
  for (const std::uint64_t items : {1, 2, 3, 10, 100}) {
    for (const std::uint64_t offsets : {3, 1000}) {
      test::Random random(series++);
      std::deque<FrontItem> members(items);
      Fronts fronts;
      std::set<FrontPair> expected;
      std::map<const FrontItem*, std::uint64_t> known;
      for (std::uint64_t step = 0; step < steps; ++step) {
        FrontItem& member = members[random.below(items)];
        const auto before = known.find(&member);
        if (before != known.end()) expected.erase({before->second, &member});
        if (random.one_in(3)) {
          known.erase(&member);
          fronts.remove(member);
        } else {
          const std::uint64_t offset = random.below(offsets);
          known[&member] = offset;
          expected.emplace(offset, &member);
          fronts.set(member, {offset});
        }
        ASSERT_EQ(fronts.size(), expected.size());
        ASSERT_EQ(fronts.empty(), expected.empty());
        if (!expected.empty()) {
          ASSERT_EQ(fronts.first().offset.value, expected.begin()->first);
          ASSERT_TRUE(expected.contains({fronts.first().offset.value, fronts.first().member}));
        }
        if (!random.one_in(20)) continue;
        auto found = walked_fronts(fronts);
        ASSERT_TRUE(std::ranges::is_sorted(found, {}, &FrontPair::first));
        std::ranges::sort(found);  // members with equal offsets come in any order
        ASSERT_TRUE(std::ranges::equal(found, expected));
      }
    }
  }
}

}  // namespace
}  // namespace lightq::broker
