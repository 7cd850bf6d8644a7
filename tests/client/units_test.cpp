/// Tests of sizes, counts, rates and durations.
#include "client/units.hpp"

#include <gtest/gtest.h>

namespace lightq::cli {
namespace {

using namespace std::chrono_literals;

TEST(Units, ReadsSizesInBothSystems) {
  EXPECT_EQ(parse_size("512"), 512U);
  EXPECT_EQ(parse_size("1k"), 1000U);
  EXPECT_EQ(parse_size("1KiB"), 1024U);
  EXPECT_EQ(parse_size("64MiB"), 64U << 20);
  EXPECT_EQ(parse_size("1.5 GiB"), 3ULL << 29);
  EXPECT_EQ(parse_size("2TB"), 2'000'000'000'000U);
  EXPECT_EQ(parse_size("0"), 0U);
}

TEST(Units, RefusesAnInvalidSize) {
  for (const char* text :
       {"", "k", "-1", "1x", "1 2", "1e3", "0x10", "nan", "inf", "9999999999TiB", "1KiB2"}) {
    EXPECT_FALSE(parse_size(text).has_value()) << text;
  }
}

TEST(Units, ReadsCountsAndRates) {
  EXPECT_EQ(parse_count("10k"), 10'000U);
  EXPECT_EQ(parse_count("2.5M"), 2'500'000U);
  EXPECT_EQ(parse_count("20k/s"), 20'000U);
  EXPECT_FALSE(parse_count("10KiB").has_value());
}

TEST(Units, ReadsDurations) {
  EXPECT_EQ(parse_duration("250ms"), 250ms);
  EXPECT_EQ(parse_duration("30"), 30s);
  EXPECT_EQ(parse_duration("1.5h"), 90min);
  EXPECT_EQ(parse_duration("7d"), 168h);
  EXPECT_EQ(parse_duration("1h30m"), 90min);
  EXPECT_EQ(parse_duration("1d 2h 3.5s"), 26h + 3500ms);
  for (const char* text :
       {"1h30", "h1m", "1h-30m", "7days", "1h30x", "", "9e5m", "9000000000000000s9000000000000000s"})
    EXPECT_FALSE(parse_duration(text).has_value()) << text;
  EXPECT_FALSE(parse_duration("1w").has_value());
}

TEST(Units, AWaitFitsTheClock) {
  EXPECT_EQ(parse_wait("250ms"), 250ms);
  EXPECT_FALSE(parse_wait("1w").has_value());
  for (const char* text : {"106752d", "200000000d", "9000000000000000000ms"}) {
    ASSERT_TRUE(parse_wait(text).has_value()) << text;
    EXPECT_EQ(*parse_wait(text), std::chrono::hours(24 * 365 * 100)) << text;
  }
}

TEST(Units, WritesForPeople) {
  EXPECT_EQ(format_size(12), "12 B");
  EXPECT_EQ(format_size(64 << 20), "64.0 MiB");
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1'234'567), "1,234,567");
  EXPECT_EQ(format_rate(1'240'000), "1.24 M/s");
  EXPECT_EQ(format_seconds(0.0000852), "85 µs");
  EXPECT_EQ(format_seconds(3.4), "3.40 s");
}

}  // namespace
}  // namespace lightq::cli
