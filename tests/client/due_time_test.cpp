/// Tests of the times at which messages shall be due, as users write them.
#include "client/due_time.hpp"

#include <stdlib.h>

#include <gtest/gtest.h>

#include "client/message_template.hpp"

namespace lightq::cli {
namespace {

constexpr Timestamp clock_now{1'795'320'000'000'000};  // 2026-11-22T04:00:00Z

/// Returns the time in UTC; empty if it is refused.
std::string due(std::string_view text, const std::string& zone = "UTC") {
  const auto time = parse_due_time(text, zone, clock_now);
  return time ? format_time(*time) : "";
}

TEST(DueTimeText, IsATimeInUtc) {
  EXPECT_EQ(due("2026-12-01T09:00:00Z"), "2026-12-01T09:00:00.000000Z");
  EXPECT_EQ(due("2026-12-01T09:00Z"), "2026-12-01T09:00:00.000000Z");
  EXPECT_EQ(due("2026-12-01T09:00:07.25Z"), "2026-12-01T09:00:07.250000Z");
  EXPECT_EQ(due("2026-12-01T09:00+01:00", "Asia/Kathmandu"), "2026-12-01T08:00:00.000000Z")
      << "its own clock";
  EXPECT_EQ(due("1970-01-01T00:00Z"), "1970-01-01T00:00:00.000000Z");
}

TEST(DueTimeText, IsATimeSpanFromNow) {
  EXPECT_EQ(due("+10m"), "2026-11-22T04:10:00.000000Z");
  EXPECT_EQ(due("+1.5h"), "2026-11-22T05:30:00.000000Z");
  EXPECT_EQ(due("+0"), "2026-11-22T04:00:00.000000Z");
  EXPECT_EQ(due("+9e18"), "");
  EXPECT_EQ(due("+9000000000000000"), "") << "beyond every Timestamp";
}

TEST(DueTimeText, IsALocalTimeOfAZone) {
  EXPECT_EQ(due("2026-12-01T09:00"), "2026-12-01T09:00:00.000000Z");
  EXPECT_EQ(due("2026-12-01T09:00", "Europe/Berlin"), "2026-12-01T08:00:00.000000Z");
  EXPECT_EQ(due("2026-07-01T09:00", "Europe/Berlin"), "2026-07-01T07:00:00.000000Z");
  EXPECT_EQ(due("2026-07-01T09:00:30.5", "Asia/Kathmandu"), "2026-07-01T03:15:30.500000Z");
  EXPECT_EQ(due("2026-07-01T09:00", "Pacific/Kiritimati"), "2026-06-30T19:00:00.000000Z");
}

TEST(DueTimeText, ALocalTimeThatIsSkippedIsTheNextMoment) {
  EXPECT_EQ(due("2026-03-29T01:59", "Europe/Berlin"), "2026-03-29T00:59:00.000000Z");
  EXPECT_EQ(due("2026-03-29T02:30:07.5", "Europe/Berlin"), "2026-03-29T01:00:00.000000Z");
  EXPECT_EQ(due("2026-03-29T03:00", "Europe/Berlin"), "2026-03-29T01:00:00.000000Z");
  EXPECT_EQ(due("2011-12-30T12:00", "Pacific/Apia"), "2011-12-30T10:00:00.000000Z") << "a day was skipped";
}

TEST(DueTimeText, OfALocalTimeThatComesTwiceTheFirstCounts) {
  EXPECT_EQ(due("2026-10-25T02:30", "Europe/Berlin"), "2026-10-25T00:30:00.000000Z");
  EXPECT_EQ(due("2026-10-25T03:00", "Europe/Berlin"), "2026-10-25T02:00:00.000000Z");
  EXPECT_EQ(due("2026-04-05T01:45", "Australia/Lord_Howe"), "2026-04-04T14:45:00.000000Z");
}

TEST(DueTimeText, TheZoneOfTheProcessStays) {
  const std::string before = ::getenv("TZ") == nullptr ? "" : ::getenv("TZ");
  EXPECT_EQ(due("2026-12-01T09:00", "Europe/Berlin"), "2026-12-01T08:00:00.000000Z");
  EXPECT_EQ(::getenv("TZ") == nullptr ? "" : std::string(::getenv("TZ")), before);
}

TEST(DueTimeText, IsRefusedIfItIsNone) {
  for (const char* const text : {"", "+", "tomorrow", "09:00", "2026-12-01", "2026-13-01T09:00",
                                 "2026-12-01T24:00", "2026-12-01 09:00", "1969-12-31T23:59Z", "-10m", "10m"})
    EXPECT_EQ(due(text), "") << text;
}

TEST(TimeZoneName, IsAFileOfTheZones) {
  EXPECT_TRUE(is_time_zone(""));
  EXPECT_TRUE(is_time_zone("UTC"));
  EXPECT_TRUE(is_time_zone("Europe/Berlin"));
  for (const char* const name :
       {"Europe", "Europe/Nowhere", "/etc/passwd", "../zoneinfo/UTC", "CET-1CEST,M3.5.0"})
    EXPECT_FALSE(is_time_zone(name)) << name;
}

}  // namespace
}  // namespace lightq::cli
