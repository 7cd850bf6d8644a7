/// Tests of latency percentiles that are computed from buckets.
#include "client/commands/latencies.hpp"

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

}  // namespace
}  // namespace lightq::cli
