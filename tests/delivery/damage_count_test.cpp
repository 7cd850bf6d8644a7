/// Tests of delivery/damage_count: which messages count as lost to damage.
#include "delivery/state/damage_count.hpp"

#include <gtest/gtest.h>

namespace lightq::broker {
namespace {

OffsetRange range(std::uint64_t begin, std::uint64_t end) {
  return {{begin}, {end}};
}

TEST(DamageCount, CountsEachMessageOnceForAllReaders) {
  DamageCount count;
  count.note({range(10, 20)});
  EXPECT_EQ(count.messages(), 10U);
  count.note({range(10, 20), range(12, 15)});
  EXPECT_EQ(count.messages(), 10U);
  count.note({range(15, 25)});
  EXPECT_EQ(count.messages(), 15U);
}

TEST(DamageCount, CountsEarlierMessagesToo) {
  DamageCount count;
  count.note({range(1000, 1010)});
  count.note({range(5, 8), range(20, 30)});
  EXPECT_EQ(count.messages(), 23U) << "a read comes to messages in any order";
  count.note({range(0, 2000)});
  EXPECT_EQ(count.messages(), 2000U);
}

TEST(DamageCount, StaysSmallAndNeverCountsTwice) {
  DamageCount count;
  constexpr std::uint64_t stretches = 10'000;
  for (int round = 0; round < 2; ++round) {
    for (std::uint64_t i = 0; i < stretches; ++i) count.note({range(10 * i, 10 * i + 3)});
    EXPECT_EQ(count.messages(), 3 * stretches);
  }
  count.note({range(10 * stretches, 10 * stretches + 1)});
  EXPECT_EQ(count.messages(), 3 * stretches + 1);
}

}  // namespace
}  // namespace lightq::broker
