/// Compares the firings of random rules with those of a slow search, minute by minute, around changes of
/// clocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "recurring/firing_times.hpp"
#include "support/random.hpp"

namespace lightq::broker {
namespace {

using test::Random;

/// A field of a rule: its text, and the values that it selects.
struct RandomField {
  std::string text;
  std::set<int> values;
  bool is_star = false;
};

RandomField random_field(Random& random, int min, int max) {
  const auto any = [&](int from) {
    return static_cast<int>(
        random.between(static_cast<std::uint64_t>(from), static_cast<std::uint64_t>(max)));
  };
  RandomField field;
  if (random.one_in(3)) {
    const int step = random.one_in(2) ? 1 : static_cast<int>(random.between(1, max < 12 ? 6 : 12));
    field.text = step == 1 ? "*" : "*/" + std::to_string(step);
    field.is_star = true;
    for (int value = min; value <= max; value += step) field.values.insert(value);
    return field;
  }
  for (std::uint64_t parts = random.between(1, 3); parts > 0; --parts) {
    const int first = any(min);
    if (!field.text.empty()) field.text += ",";
    field.text += std::to_string(first);
    field.values.insert(first);
    if (random.one_in(2)) continue;
    const int last = any(first);
    const int step = static_cast<int>(random.between(1, 3));
    field.text += "-" + std::to_string(last) + (step == 1 ? "" : "/" + std::to_string(step));
    for (int value = first; value <= last; value += step) field.values.insert(value);
  }
  return field;
}

/// A rule whose selection is known without a parser.
struct RandomRule {
  explicit RandomRule(Random& random)
      : minute(random_field(random, 0, 59)),
        hour(random_field(random, 0, 23)),
        day(random_field(random, 1, 31)),
        month(random.one_in(2) ? RandomField{"*", {}, true} : random_field(random, 1, 12)),
        week_day(random.one_in(2) ? random_field(random, 0, 6) : RandomField{"*", {}, true}) {
    for (int each = 1; month.values.empty() || each <= 12; ++each)
      if (month.text == "*") month.values.insert(each);
    for (int each = 0; week_day.text == "*" && each <= 6; ++each) week_day.values.insert(each);
    text = minute.text + " " + hour.text + " " + day.text + " " + month.text + " " + week_day.text;
  }
  [[nodiscard]] bool selects(std::int64_t local_minute) const {
    const auto days = std::chrono::floor<std::chrono::days>(std::chrono::minutes(local_minute));
    const std::chrono::sys_days date(days);
    const std::chrono::year_month_day civil(date);
    const int of_day = static_cast<int>((std::chrono::minutes(local_minute) - days).count());
    const bool by_month = day.values.contains(static_cast<int>(static_cast<unsigned>(civil.day())));
    const bool by_week = week_day.values.contains(static_cast<int>(std::chrono::weekday(date).c_encoding()));
    const bool either = !day.is_star && !week_day.is_star;
    return minute.values.contains(of_day % 60) && hour.values.contains(of_day / 60) &&
           month.values.contains(static_cast<int>(static_cast<unsigned>(civil.month()))) &&
           (either ? by_month || by_week : by_month && by_week);
  }

  RandomField minute, hour, day, month, week_day;
  std::string text;
};

/// A span of days around a change of clocks.
struct Place {
  const char* zone;
  std::int64_t moment;  ///< of the change, in seconds since 1970
};
constexpr std::int64_t day_seconds = 86'400;
constexpr std::array<Place, 9> places = {{{"Europe/Berlin", 1'774'746'000},        // 2026-03-29
                                          {"Europe/Berlin", 1'792'890'000},        // 2026-10-25
                                          {"America/New_York", 1'772'953'200},     // 2026-03-08
                                          {"America/New_York", 1'793'512'800},     // 2026-11-01
                                          {"Australia/Lord_Howe", 1'775'314'800},  // 2026-04-04
                                          {"Australia/Lord_Howe", 1'791'041'400},  // 2026-10-03
                                          {"Pacific/Apia", 1'325'239'200},         // 2011-12-30
                                          {"Antarctica/Troll", 1'792'890'000},
                                          {"UTC", 1'774'746'000}}};

/// Returns the firings of the rule within the days around the change, in seconds since 1970.
std::vector<std::int64_t> slow_firings(const RandomRule& rule, const TimeZone& zone, std::int64_t begin,
                                       std::int64_t end) {
  std::set<std::int64_t> firings;
  std::int64_t seen =
      zone.local_of(begin) / 60;  // the latest local minute that clocks have shown or left out
  for (std::int64_t moment = begin + 60; moment <= end; moment += 60) {
    for (const std::int64_t local = zone.local_of(moment) / 60; seen < local;) {
      if (rule.selects(++seen)) firings.insert(moment);
    }
  }
  return {firings.begin(), firings.end()};
}

TEST(FiringRandom, AgreesWithASearchMinuteByMinute) {
  Random random;
  constexpr int rules = 400;
  std::uint64_t compared = 0;
  for (int round = 0; round < rules; ++round) {
    const RandomRule rule(random);
    const Place& place = places.at(random.below(places.size()));
    const auto times = FiringTimes::of(rule.text, place.zone);
    if (!times) {
      EXPECT_NE(times.error().message.find("no date matches"), std::string::npos) << rule.text;
      continue;
    }
    const TimeZone zone = TimeZone::find(place.zone).value_or_throw();
    const std::int64_t begin = place.moment - 3 * day_seconds;
    const std::int64_t end = place.moment + 3 * day_seconds;
    const auto slow = slow_firings(rule, zone, begin, end);
    Timestamp time{begin * 1'000'000};
    for (const std::int64_t expected : slow) {
      const auto next = times->next_after(time);
      ASSERT_EQ(next, Timestamp{expected * 1'000'000}) << rule.text << " in " << place.zone;
      time = *next;
      ++compared;
    }
    const auto behind = times->next_after(time);
    EXPECT_TRUE(!behind || behind->us > end * 1'000'000) << rule.text << " in " << place.zone;
    for (int looks = 0; looks < 50; ++looks) {
      const std::int64_t from = begin + static_cast<std::int64_t>(random.below(6 * day_seconds));
      const std::int64_t to =
          from + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(end - from) + 1));
      const auto after_last = std::ranges::upper_bound(slow, to);
      const bool has_any = after_last != slow.begin() && *std::prev(after_last) > from;
      const auto found = times->last_within({from * 1'000'000}, {to * 1'000'000});
      ASSERT_EQ(found.has_value(), has_any) << rule.text << " in " << place.zone;
      if (has_any) {
        EXPECT_EQ(found->us, *std::prev(after_last) * 1'000'000);
      }
    }
  }
  EXPECT_GT(compared, 10'000U);
}

}  // namespace
}  // namespace lightq::broker
