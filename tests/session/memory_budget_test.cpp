/// Tests of how sessions share the memory budget.
#include "session/memory_budget.hpp"

#include <gtest/gtest.h>

namespace lightq::broker {
namespace {

TEST(MemoryBudget, GrantsItsBytesAndTakesThemBack) {
  MemoryBudget budget(100, 10);
  EXPECT_TRUE(budget.take(0, 60));
  EXPECT_FALSE(budget.take(0, 41));
  EXPECT_TRUE(budget.take(0, 40));
  EXPECT_EQ(100U, budget.taken());
  EXPECT_FALSE(budget.take(0, 1));
  budget.give_back(0, 60);
  EXPECT_TRUE(budget.take(0, 60));
}

TEST(MemoryBudget, LeavesTheLastEighthToUsersWithLessThanHalf) {
  MemoryBudget budget(800, 10);
  EXPECT_TRUE(budget.take(7, 500));
  EXPECT_TRUE(budget.take(7, 200));
  EXPECT_FALSE(budget.take(7, 1)) << "it has more than half";
  EXPECT_TRUE(budget.take(8, 50));
  EXPECT_TRUE(budget.take(9, 50));
  EXPECT_FALSE(budget.take(8, 1)) << "there is no more";
  budget.give_back(7, 500);
  EXPECT_TRUE(budget.take(7, 1));
}

TEST(MemoryBudget, BoundsHowManySessionsHaveSome) {
  MemoryBudget budget(1000, 8);
  for (int session = 0; session < 7; ++session) EXPECT_TRUE(budget.take(7, 1));
  EXPECT_FALSE(budget.take(7, 1)) << "the last eighth is for others";
  EXPECT_TRUE(budget.take(8, 1));
  EXPECT_FALSE(budget.take(9, 1)) << "there are no more";
  EXPECT_EQ(8U, budget.taken());
  budget.give_back(7, 1);
  EXPECT_TRUE(budget.take(9, 1));
}

TEST(MemoryBudget, AnEmptyBudgetGrantsNothing) {
  MemoryBudget budget(0, 10);
  EXPECT_FALSE(budget.take(1, 1));
  budget.give_back(1, 1);
  EXPECT_EQ(0U, budget.taken());
}

}  // namespace
}  // namespace lightq::broker
