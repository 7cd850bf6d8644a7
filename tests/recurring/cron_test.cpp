/// Tests of recurring/cron: the fields of a rule, its faults, and the minutes that it selects.
#include "recurring/cron.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <string>
#include <vector>

namespace lightq::broker {
namespace {

using testing::HasSubstr;

/// Returns a minute of a local time.
LocalMinute at(int year, unsigned month, unsigned day, int hour, int minute) {
  const std::chrono::sys_days date(std::chrono::year(year) / std::chrono::month(month) /
                                   std::chrono::day(day));
  return {date.time_since_epoch().count() * std::int64_t{1440} + hour * 60 + minute};
}

Cron rule(const std::string& text) {
  return Cron::parse(text).value_or_throw();
}

TEST(Cron, SelectsTheMinutesOfEachField) {
  // 2026-11-27 is a Friday.
  EXPECT_EQ(rule("0 9 * * MON-FRI").next_after(at(2026, 11, 27, 8, 59)), at(2026, 11, 27, 9, 0));
  EXPECT_EQ(rule("0 9 * * MON-FRI").next_after(at(2026, 11, 27, 9, 0)), at(2026, 11, 30, 9, 0));
  EXPECT_EQ(rule("*/15 * * * *").next_after(at(2026, 11, 27, 8, 45)), at(2026, 11, 27, 9, 0));
  EXPECT_EQ(rule("5-20/5 * * * *").next_after(at(2026, 11, 27, 8, 20)), at(2026, 11, 27, 9, 5));
  EXPECT_EQ(rule("1,2,59 * * * *").next_after(at(2026, 11, 27, 8, 2)), at(2026, 11, 27, 8, 59));
  EXPECT_EQ(rule("0 0 1 JAN *").next_after(at(2026, 11, 27, 8, 2)), at(2027, 1, 1, 0, 0));
  EXPECT_EQ(rule("30 23 31 * *").next_after(at(2026, 11, 1, 0, 0)), at(2026, 12, 31, 23, 30));
  EXPECT_EQ(rule("0 0 29 2 *").next_after(at(2026, 11, 27, 0, 0)), at(2028, 2, 29, 0, 0));
  EXPECT_EQ(rule("0 0 29 2 *").next_after(at(2096, 2, 29, 0, 0)), at(2104, 2, 29, 0, 0));
  EXPECT_EQ(rule("* * * * *").next_after(at(1969, 12, 31, 23, 58)), at(1969, 12, 31, 23, 59));
}

TEST(Cron, FindsTheLastMinuteToo) {
  EXPECT_EQ(rule("0 9 * * MON-FRI").last_until(at(2026, 11, 29, 12, 0)), at(2026, 11, 27, 9, 0));
  EXPECT_EQ(rule("0 9 * * MON-FRI").last_until(at(2026, 11, 27, 9, 0)), at(2026, 11, 27, 9, 0));
  EXPECT_EQ(rule("0 9 * * MON-FRI").last_until(at(2026, 11, 27, 8, 59)), at(2026, 11, 26, 9, 0));
  EXPECT_EQ(rule("59 23 31 12 *").last_until(at(2026, 1, 1, 0, 0)), at(2025, 12, 31, 23, 59));
}

TEST(Cron, NamesAndSundayHaveTwoForms) {
  const LocalMinute friday = at(2026, 11, 27, 12, 0);
  for (const char* const sunday : {"0 9 * * SUN", "0 9 * * sun", "0 9 * * 0", "0 9 * * 7", "0 9 * * 7-7"})
    EXPECT_EQ(rule(sunday).next_after(friday), at(2026, 11, 29, 9, 0)) << sunday;
  for (const char* const weekend : {"0 9 * * SAT-SUN", "0 9 * * 6-7", "0 9 * * SAT,SUN", "0 9 * * 6,0"}) {
    EXPECT_EQ(rule(weekend).next_after(friday), at(2026, 11, 28, 9, 0)) << weekend;
    EXPECT_EQ(rule(weekend).next_after(at(2026, 11, 29, 9, 0)), at(2026, 12, 5, 9, 0)) << weekend;
  }
  EXPECT_EQ(rule("0 9 * jan-mar *").next_after(friday), at(2027, 1, 1, 9, 0));
}

TEST(Cron, OneOfTwoRestrictedDaysSuffices) {
  // The 13th, and each Friday.
  const Cron either = rule("0 0 13 * FRI");
  EXPECT_EQ(either.next_after(at(2026, 11, 6, 0, 0)), at(2026, 11, 13, 0, 0));
  EXPECT_EQ(either.next_after(at(2026, 12, 11, 0, 0)), at(2026, 12, 13, 0, 0));
  // A field that begins with * restricts nothing by itself, but its steps count.
  const Cron both = rule("0 0 */2 * FRI");
  EXPECT_EQ(both.next_after(at(2026, 11, 13, 0, 0)), at(2026, 11, 27, 0, 0));
}

TEST(Cron, ARareDateIsFound) {
  // February 29 on a Sunday: 28 years apart, and 40 around the year 2100.
  const Cron rare = rule("0 0 29 2 */7");
  EXPECT_EQ(rare.next_after(at(2026, 1, 1, 0, 0)), at(2032, 2, 29, 0, 0));
  EXPECT_EQ(rare.next_after(at(2088, 2, 29, 0, 0)), at(2128, 2, 29, 0, 0));
}

struct Fault {
  std::string text;
  std::string complaint;
};

TEST(Cron, FaultsNameTheFieldAndTheReason) {
  const std::vector<Fault> faults = {
      {"", "0 fields; a rule has five"},
      {"* * * *", "4 fields"},
      {"0 0 9 * * MON", "6 fields"},
      {"@daily", "1 fields"},
      {"60 * * * *", "minute: '60' is not a number from 0 to 59"},
      {"-1 * * * *", "minute: '' is not a number"},
      {"* 24 * * *", "hour: '24'"},
      {"* * 0 * *", "day of the month: '0' is not a number from 1 to 31"},
      {"* * 32 * *", "day of the month"},
      {"* * * 13 *", "month: '13' is not a number from 1 to 12 or a name from JAN to DEC"},
      {"* * * MON *", "month: 'MON'"},
      {"* * * * 8", "day of the week: '8' is not a number from 0 to 7 or a name from SUN to SAT"},
      {"* * * * MONDAY", "day of the week: 'MONDAY'"},
      {"* * JAN * *", "day of the month: 'JAN' is not a number"},
      {"9-5 * * * *", "the range '9-5' ends before it begins"},
      {"* * * * FRI-MON", "the range 'FRI-MON' ends before it begins"},
      {"5/10 * * * *", "a step needs a range before it"},
      {"*/0 * * * *", "'0' is not a step from 1 to 59"},
      {"*/60 * * * *", "'60' is not a step"},
      {"*/x * * * *", "'x' is not a step"},
      {"1,,2 * * * *", "minute: ''"},
      {", * * * *", "minute: ''"},
      {"1- * * * *", "minute: ''"},
      {"1-2-3 * * * *", "'2-3'"},
      {"+1 * * * *", "'+1'"},
      {"001 * * * *", "'001'"},
      {"\x1b * * * *", "'?'"},
      {std::string(40, 'x') + " * * * *", "..."},
      {"0 0 30 2 *", "no date matches"},
      {"0 0 31 2,4,6,9,11 *", "no date matches"},
      {std::string(257, ' '), "longer than 256 bytes"}};
  for (const auto& [text, complaint] : faults) {
    const auto parsed = Cron::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::invalid_argument) << text;
    EXPECT_THAT(parsed.error().message, testing::AllOf(HasSubstr("cron: "), HasSubstr(complaint))) << text;
  }
}

TEST(Cron, BlanksSeparateTheFields) {
  EXPECT_TRUE(rule("  0\t9  * *   1 ").matches(at(2026, 11, 30, 9, 0)));
}

}  // namespace
}  // namespace lightq::broker
