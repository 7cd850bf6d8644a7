/// Tests of recurring/firing_times and recurring/time_zone: firings around changes of clocks, by a table of
/// real ones.
#include "recurring/firing_times.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <string>
#include <vector>

namespace lightq::broker {
namespace {

using testing::HasSubstr;

/// Returns a moment in UTC.
Timestamp utc(int year, unsigned month, unsigned day, int hour, int minute, int second = 0) {
  const std::chrono::sys_days date(std::chrono::year(year) / std::chrono::month(month) /
                                   std::chrono::day(day));
  const std::int64_t seconds = date.time_since_epoch().count() * std::int64_t{86'400};
  return {(seconds + hour * 3600 + minute * 60 + second) * 1'000'000};
}

struct Row {
  const char* zone;
  const char* cron;
  Timestamp after;
  std::vector<const char*> firings;  ///< the next ones, in UTC
};

class FiringTable : public testing::TestWithParam<Row> {};

TEST_P(FiringTable, HasTheseFirings) {
  const auto times = FiringTimes::of(GetParam().cron, GetParam().zone).value_or_throw();
  Timestamp time = GetParam().after;
  const Timestamp begin = time;
  for (const char* const expected : GetParam().firings) {
    const auto next = times.next_after(time);
    ASSERT_TRUE(next);
    EXPECT_EQ(firing_text(*next), expected);
    EXPECT_EQ(times.last_within(time, *next), next);
    EXPECT_EQ(times.last_within(begin, {next->us + 59'000'000}), next);
    EXPECT_EQ(times.last_within(time, {next->us - 1}), std::nullopt);
    time = *next;
  }
}

// Changes of clocks from the time zone database.
INSTANTIATE_TEST_SUITE_P(
    Changes, FiringTable,
    testing::Values(
        // Berlin: on 2026-03-29, 2:00 becomes 3:00; on 2026-10-25, 3:00 becomes 2:00.
        Row{"Europe/Berlin",
            "0 9 * * MON-FRI",
            utc(2026, 3, 27, 0, 0),
            {"2026-03-27T08:00:00Z", "2026-03-30T07:00:00Z"}},
        Row{"Europe/Berlin",
            "30 2 * * *",
            utc(2026, 3, 28, 0, 0),
            {"2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
        Row{"Europe/Berlin",
            "*/20 2 * * *",
            utc(2026, 3, 28, 12, 0),
            {"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"}},
        Row{"Europe/Berlin",
            "0 2,3 * * *",
            utc(2026, 3, 28, 12, 0),
            {"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z", "2026-03-30T01:00:00Z"}},
        Row{"Europe/Berlin",
            "30 2 * * *",
            utc(2026, 10, 24, 12, 0),
            {"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
        Row{"Europe/Berlin",
            "0 * * * *",
            utc(2026, 10, 24, 23, 30),
            {"2026-10-25T00:00:00Z", "2026-10-25T02:00:00Z", "2026-10-25T03:00:00Z"}},
        Row{"Europe/Berlin",
            "0 3 * * *",
            utc(2026, 10, 24, 12, 0),
            {"2026-10-25T02:00:00Z", "2026-10-26T02:00:00Z"}},
        // New York: 2026-03-08 and 2026-11-01, at 2:00.
        Row{"America/New_York",
            "15 2 * * *",
            utc(2026, 3, 7, 12, 0),
            {"2026-03-08T07:00:00Z", "2026-03-09T06:15:00Z"}},
        Row{"America/New_York",
            "30 1 * * *",
            utc(2026, 10, 31, 12, 0),
            {"2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"}},
        // Lord Howe changes by half an hour: 2026-10-04 at 2:00, 2026-04-05 at 2:00.
        Row{"Australia/Lord_Howe",
            "15 2 * * *",
            utc(2026, 10, 3, 0, 0),
            {"2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"}},
        Row{"Australia/Lord_Howe",
            "45 1 * * *",
            utc(2026, 4, 4, 0, 0),
            {"2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"}},
        // Troll changes by two hours: 2026-03-29 at 1:00 UTC, 2026-10-25 at 1:00 UTC.
        Row{"Antarctica/Troll",
            "0 2 * * *",
            utc(2026, 3, 28, 12, 0),
            {"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"}},
        Row{"Antarctica/Troll",
            "0 2 * * *",
            utc(2026, 10, 24, 12, 0),
            {"2026-10-25T00:00:00Z", "2026-10-26T02:00:00Z"}},
        // Apia left out 2011-12-30.
        Row{"Pacific/Apia",
            "0 12 * * *",
            utc(2011, 12, 29, 0, 0),
            {"2011-12-29T22:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z"}},
        // Midnight does not exist in Santiago on 2026-09-06.
        Row{"America/Santiago",
            "0 0 * * *",
            utc(2026, 9, 5, 12, 0),
            {"2026-09-06T04:00:00Z", "2026-09-07T03:00:00Z"}},
        Row{"Asia/Kathmandu", "0 0 * * *", utc(2026, 1, 1, 0, 0), {"2026-01-01T18:15:00Z"}},
        Row{"UTC", "59 23 31 12 *", utc(2026, 1, 1, 0, 0), {"2026-12-31T23:59:00Z", "2027-12-31T23:59:00Z"}},
        Row{"US/Eastern", "0 0 29 2 *", utc(2026, 1, 1, 0, 0), {"2028-02-29T05:00:00Z"}}));

TEST(FiringTimes, AFiringIsNeverEarly) {
  const auto times = FiringTimes::of("0 9 * * *", "UTC").value_or_throw();
  const Timestamp nine = utc(2026, 11, 27, 9, 0);
  EXPECT_EQ(times.next_after({nine.us - 1}), nine);
  EXPECT_EQ(times.next_after(nine), utc(2026, 11, 28, 9, 0));
  EXPECT_EQ(times.next_after({nine.us + 1}), utc(2026, 11, 28, 9, 0));
  EXPECT_EQ(times.last_within({nine.us - 1}, nine), nine);
  EXPECT_EQ(times.last_within(nine, {nine.us + 1}), std::nullopt);
  EXPECT_EQ(times.last_within({0}, {nine.us - 1}), utc(2026, 11, 26, 9, 0));
}

TEST(FiringTimes, OfManyMissedFiringsTheLastIsFound) {
  const auto times = FiringTimes::of("* * * * *", "Europe/Berlin").value_or_throw();
  EXPECT_EQ(times.last_within({0}, utc(2026, 10, 25, 1, 30, 59)), utc(2026, 10, 25, 0, 59))
      << "the second hour from 2:00 to 3:00 has no firings";
  EXPECT_EQ(times.last_within({0}, utc(2026, 10, 25, 2, 0)), utc(2026, 10, 25, 2, 0));
}

TEST(FiringTimes, UnknownZonesAreRefused) {
  for (const char* const zone : {"Europe/Atlantis", "", "../etc/passwd", "Europe/Berlin\n", "europe/berlin",
                                 "right/Europe/Berlin", "\xC3\xA4"}) {
    const auto times = FiringTimes::of("* * * * *", zone);
    ASSERT_FALSE(times) << zone;
    EXPECT_EQ(times.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(times.error().message, HasSubstr("zone: "));
  }
}

TEST(FiringTimes, TheIdOfAFiringHasItsTime) {
  EXPECT_EQ(firing_id("morning", utc(2026, 11, 27, 8, 0)), "schedule/morning/2026-11-27T08:00:00Z");
  EXPECT_EQ(firing_text(utc(2026, 1, 2, 3, 4, 5)), "2026-01-02T03:04:05Z");
  EXPECT_EQ(firing_text({-1}), "1969-12-31T23:59:59Z");
}

}  // namespace
}  // namespace lightq::broker
