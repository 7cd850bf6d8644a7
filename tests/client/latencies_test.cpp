/// Tests of latency percentiles that are computed from buckets.
#include "client/bench/latencies.hpp"

#include <gtest/gtest.h>

namespace lightq::cli {
namespace {

TEST(Latencies, AnswersPercentilesWithinFourPercent) {
  Latencies latencies;
  for (std::uint64_t us = 1; us <= 10'000; ++us) latencies.add(us * 1000);
  EXPECT_NEAR(latencies.percentile(0.5), 0.005, 0.0002);
  EXPECT_NEAR(latencies.percentile(0.99), 0.0099, 0.0004);
  EXPECT_NEAR(latencies.percentile(1), 0.010, 0.0004);
  EXPECT_EQ(latencies.count(), 10'000U);
}

TEST(Latencies, BearsTheSmallestAndTheLargest) {
  Latencies latencies;
  EXPECT_EQ(latencies.percentile(0.5), 0);
  latencies.add(0);
  latencies.add(~std::uint64_t{0});
  EXPECT_EQ(latencies.percentile(0), 0);
  EXPECT_GT(latencies.percentile(1), 1e10);
}

TEST(Latencies, AddThoseOfOthers) {
  Latencies some;
  Latencies others;
  some.add(1000);
  others.add(5'000'000);
  others.add(6'000'000);
  some.add(others);
  EXPECT_EQ(some.count(), 3U);
  EXPECT_GT(some.percentile(0.5), 0.004);
  EXPECT_EQ(some.between(0, 2000), 1U);
}

}  // namespace
}  // namespace lightq::cli
