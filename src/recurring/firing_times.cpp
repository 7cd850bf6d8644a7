/// Finds the times at which a recurring schedule fires. Layer: recurring.
#include "recurring/firing_times.hpp"

#include <chrono>
#include <cstdio>

namespace lightq::broker {

namespace {

constexpr std::int64_t us_per_second = 1'000'000;
constexpr std::int64_t seconds_per_minute = 60;

std::int64_t floor_of(std::int64_t value, std::int64_t unit) {
  return value / unit - (value % unit < 0 ? 1 : 0);
}

}  // namespace

Result<FiringTimes> FiringTimes::of(std::string_view cron, std::string_view zone) {
  const auto rule = Cron::parse(cron);
  if (!rule) return rule.error();
  const auto found = TimeZone::find(zone);
  if (!found) return found.error();
  return FiringTimes(*rule, *found);
}

std::int64_t FiringTimes::moment_of(LocalMinute minute) const {
  return zone_.moment_of(minute.value * seconds_per_minute);
}

/// The moments of ascending local times never decrease. So the local times that are not behind the present
/// one can be left out, and of the others the first with a later moment is the result.
std::optional<Timestamp> FiringTimes::next_after(Timestamp time) const {
  const std::int64_t after = floor_of(time.us, us_per_second);
  const std::int64_t local = zone_.local_of(after);
  auto minute = cron_.next_after({floor_of(local, seconds_per_minute)});
  while (minute && moment_of(*minute) <= after) minute = cron_.next_after(*minute);
  if (!minute) return std::nullopt;
  return Timestamp{moment_of(*minute) * us_per_second};
}

std::optional<Timestamp> FiringTimes::last_within(Timestamp begin, Timestamp end) const {
  const std::int64_t until = floor_of(end.us, us_per_second);
  const std::int64_t latest = zone_.latest_local_until(until);
  auto minute = cron_.last_until({floor_of(latest, seconds_per_minute)});
  while (minute && moment_of(*minute) > until) minute = cron_.last_until({minute->value - 1});
  if (!minute) return std::nullopt;
  const Timestamp firing{moment_of(*minute) * us_per_second};
  return begin < firing ? std::optional(firing) : std::nullopt;
}

std::string firing_text(Timestamp firing) {
  const std::chrono::sys_seconds time{std::chrono::seconds(floor_of(firing.us, us_per_second))};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const auto of_day = (time - day).count();
  constexpr std::int64_t seconds_per_hour = 3600;
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(of_day / seconds_per_hour),
                static_cast<int>(of_day % seconds_per_hour / seconds_per_minute),
                static_cast<int>(of_day % seconds_per_minute));
  return text;
}

std::string firing_id(std::string_view schedule, Timestamp firing) {
  return "schedule/" + std::string(schedule) + "/" + firing_text(firing);
}

}  // namespace lightq::broker
