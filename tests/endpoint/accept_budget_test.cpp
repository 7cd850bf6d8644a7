/// Tests of the limit on the rate of accepted connections.
#include "admission/accept_budget.hpp"

#include <gtest/gtest.h>

namespace lightq::broker {
namespace {

using namespace std::chrono_literals;

class AcceptBudgetTest : public testing::Test {
 protected:
  /// Returns the number of connections that can be accepted at time `now`.
  int taken(AcceptBudget::Clock::time_point now) {
    int count = 0;
    while (budget_.take(now)) ++count;
    return count;
  }
  AcceptBudget::Clock::time_point now_ = AcceptBudget::Clock::now();
  AcceptBudget budget_{1000, 50};
};

TEST_F(AcceptBudgetTest, PermitsABurstAndThenARatePerSecond) {
  EXPECT_EQ(taken(now_), 50);
  EXPECT_EQ(taken(now_), 0);
  EXPECT_EQ(taken(now_ + 10ms), 10);
  EXPECT_EQ(taken(now_ + 10ms + 500us), 0);
  EXPECT_EQ(taken(now_ + 11ms), 1);
}

TEST_F(AcceptBudgetTest, CountsHowOftenItWasExhausted) {
  LimitCounts counts;
  AcceptBudget budget(1000, 2, &counts);
  EXPECT_TRUE(budget.take(now_) && budget.take(now_));
  EXPECT_EQ(counts.of(Limit::accepts_per_second), 0U);
  EXPECT_FALSE(budget.take(now_));
  EXPECT_FALSE(budget.take(now_));
  EXPECT_EQ(counts.of(Limit::accepts_per_second), 2U);
}

TEST_F(AcceptBudgetTest, SavesNoMoreThanOneBurst) {
  EXPECT_EQ(taken(now_), 50);
  EXPECT_EQ(taken(now_ + 1h), 50);
}

TEST_F(AcceptBudgetTest, AClockThatGoesBackAddsNoBudget) {
  EXPECT_EQ(taken(now_), 50);
  EXPECT_EQ(taken(now_ - 1s), 0);
}

TEST_F(AcceptBudgetTest, ReportsThatItRunsLow) {
  for (int i = 0; i < 25; ++i) {
    EXPECT_FALSE(budget_.scarce());
    ASSERT_TRUE(budget_.take(now_));
  }
  ASSERT_TRUE(budget_.take(now_));
  EXPECT_TRUE(budget_.scarce());
  budget_.give_back();
  EXPECT_FALSE(budget_.scarce());
}

TEST_F(AcceptBudgetTest, IsCrowdedWhileSomeHundredsASecondGoUnknown) {
  for (int i = 0; i < 31; ++i) budget_.unauthenticated_closed(now_);
  EXPECT_FALSE(budget_.crowded(now_));
  budget_.unauthenticated_closed(now_ + 50ms);
  EXPECT_TRUE(budget_.crowded(now_ + 50ms));
  EXPECT_TRUE(budget_.crowded(now_ + 150ms));
  EXPECT_FALSE(budget_.crowded(now_ + 250ms));
  EXPECT_FALSE(budget_.crowded(now_ + 1h));
}

TEST_F(AcceptBudgetTest, SingleConnectionsAreNoFlood) {
  for (int i = 0; i < 1000; ++i) {
    budget_.unauthenticated_closed(now_ + i * 10ms);
    ASSERT_FALSE(budget_.crowded(now_ + i * 10ms));
  }
}

}  // namespace
}  // namespace lightq::broker
