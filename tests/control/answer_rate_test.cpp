/// Tests of admission/answer_rate: the limit on the bytes of replies per owner.
#include "admission/answer_rate.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include <lightq/base/limits.hpp>

namespace lightq::broker {
namespace {

using namespace std::chrono_literals;

class AnswerRateTest : public testing::Test {
 protected:
  static constexpr std::size_t per_second = 800;

  /// Makes a request with a reply of `kib` KiB. Returns false if the request is refused.
  bool ask(const std::string& owner, std::size_t kib) {
    const auto taken = rate.take(owner, now);
    if (taken) rate.settle(owner, *taken, kib * limits::KiB);
    return taken.has_value();
  }
  int asked(const std::string& owner, std::size_t kib) {
    int times = 0;
    while (ask(owner, kib)) ++times;
    return times;
  }

  AnswerRate rate{per_second};
  AnswerRate::Time now{1h};
};

TEST_F(AnswerRateTest, EachKiBCountsAsARequest) {
  EXPECT_EQ(asked("ann", 1), 800);
  EXPECT_EQ(asked("bob", 80), 10) << "of each owner";
  now += 500ms;
  EXPECT_EQ(asked("ann", 1), 400);
  EXPECT_EQ(asked("bob", 80), 5);
}

TEST_F(AnswerRateTest, ANegativeBalanceDelaysTheNextAnswer) {
  EXPECT_TRUE(ask("ann", 3200));
  now += 3s;
  EXPECT_FALSE(ask("ann", 1)) << "just even";
  now += 200ms;
  EXPECT_TRUE(ask("ann", 1));
}

TEST_F(AnswerRateTest, PendingAnswersCountAsTheLargestSoFar) {
  EXPECT_TRUE(ask("ann", 50));
  EXPECT_TRUE(ask("ann", 1)) << "of which one that is smaller changes nothing";
  now += 1s;
  int under_way = 0;
  while (rate.take("ann", now)) ++under_way;
  EXPECT_EQ(under_way, 16);
}

TEST_F(AnswerRateTest, AfterTheLargestAnswerEightMoreMayBeUnderWay) {
  EXPECT_TRUE(ask("ann", 100'000));
  now += 1h;
  int under_way = 0;
  while (rate.take("ann", now)) ++under_way;
  EXPECT_EQ(under_way, 8);
}

TEST_F(AnswerRateTest, TheSmallestRatePermitsOneAnswer) {
  AnswerRate smallest(1);
  const auto taken = smallest.take("ann", now);
  ASSERT_TRUE(taken);
  smallest.settle("ann", *taken, 1);
  EXPECT_FALSE(smallest.take("ann", now));
  now += 1s;
  EXPECT_TRUE(smallest.take("ann", now));
}

}  // namespace
}  // namespace lightq::broker
