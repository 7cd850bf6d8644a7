/// Tests of the histogram of durations.
#include "metrics/histogram.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <thread>

namespace lightq::broker {

namespace {

TEST(DurationBuckets, EachDurationIsBelowTheEndOfItsBucketAndNotBelowThatOfTheOneBefore) {
  for (std::int64_t us = 0; us < 200'000'000; us += 1 + us / 97) {
    const std::size_t bucket = DurationBuckets::of(us);
    ASSERT_LT(bucket, DurationBuckets::count);
    if (bucket + 1 < DurationBuckets::count) {
      ASSERT_LT(static_cast<std::uint64_t>(us), DurationBuckets::end_of(bucket)) << us;
    }
    if (bucket > 0) {
      ASSERT_GE(static_cast<std::uint64_t>(us), DurationBuckets::end_of(bucket - 1)) << us;
    }
  }
}

TEST(DurationBuckets, ABucketIsAtMostAQuarterAsWideAsItsValues) {
  for (std::size_t bucket = DurationBuckets::steps; bucket + 1 < DurationBuckets::count; ++bucket) {
    const std::uint64_t begin = DurationBuckets::end_of(bucket - 1);
    EXPECT_LE(DurationBuckets::end_of(bucket) - begin, begin / 4 + 1) << bucket;
  }
}

TEST(DurationBuckets, TheLastOneHasAllThatIsLonger) {
  EXPECT_EQ(DurationBuckets::of(std::int64_t{1} << DurationBuckets::octaves), DurationBuckets::count - 1);
  EXPECT_EQ(DurationBuckets::of(std::numeric_limits<std::int64_t>::max()), DurationBuckets::count - 1);
}

TEST(Histogram, CountsAndSums) {
  Histogram histogram;
  histogram.record(5);
  histogram.record(1000, 3);
  histogram.record(-7);
  const HistogramCounts counts = histogram.counts();
  EXPECT_EQ(counts.count, 5U);
  EXPECT_EQ(counts.sum_us, 3005U) << "a negative duration counts as 0";
  EXPECT_EQ(counts.buckets[DurationBuckets::of(5)], 1U);
  EXPECT_EQ(counts.buckets[DurationBuckets::of(1000)], 3U);
  EXPECT_EQ(counts.buckets[0], 1U);
  HistogramCounts twice = counts;
  twice += counts;
  EXPECT_EQ(twice.count, 10U);
  EXPECT_EQ(twice.sum_us, 6010U);
}

TEST(Histogram, IsReadWhileItIsWritten) {
  Histogram histogram;
  constexpr std::uint64_t events = 200'000;
  std::jthread writer([&] {
    for (std::uint64_t i = 0; i < events; ++i) histogram.record(static_cast<std::int64_t>(i % 1000));
  });
  std::uint64_t before = 0;
  while (before < events) {
    const std::uint64_t now = histogram.counts().count;
    ASSERT_GE(now, before) << "counters never decrease";
    before = now;
  }
  EXPECT_EQ(before, events);
}

}  // namespace

}  // namespace lightq::broker
