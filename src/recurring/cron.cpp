/// Parses cron rules, and finds the minutes that they select. Layer: recurring.
#include "recurring/cron.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <chrono>
#include <span>
#include <string>
#include <vector>

namespace lightq::broker {

namespace {

constexpr std::int64_t minutes_per_day = 1440;
constexpr int minutes_per_hour = 60;
constexpr std::int64_t days_per_year_max = 366;

constexpr std::array<std::string_view, 12> month_names = {"JAN", "FEB", "MAR", "APR", "MAY", "JUN",
                                                          "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"};
constexpr std::array<std::string_view, 7> week_day_names = {"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"};
constexpr int sunday_again = 7;

/// One of the five fields.
struct CronField {
  const char* name;
  int min;
  int max;
  std::span<const std::string_view> names = {};
  int first_name = 0;  // the value of names[0]
};
constexpr std::array<CronField, 5> cron_fields = {{{"minute", 0, 59},
                                                   {"hour", 0, 23},
                                                   {"day of the month", 1, 31},
                                                   {"month", 1, 12, month_names, 1},
                                                   {"day of the week", 0, sunday_again, week_day_names, 0}}};

std::int64_t day_of(LocalMinute minute) {
  const std::int64_t day = minute.value / minutes_per_day;
  return minute.value % minutes_per_day < 0 ? day - 1 : day;
}

std::chrono::year_month_day date_of(std::int64_t day) {
  return std::chrono::sys_days(std::chrono::days(day));
}

int week_day_of(std::int64_t day) {
  return static_cast<int>(std::chrono::weekday(std::chrono::sys_days(std::chrono::days(day))).c_encoding());
}

std::string upper_case(std::string_view text) {
  std::string upper(text);
  for (char& each : upper) each = static_cast<char>(std::toupper(static_cast<unsigned char>(each)));
  return upper;
}

/// Returns the text for an error: short, and without control characters.
std::string quoted(std::string_view text) {
  constexpr std::size_t shown_max = 32;
  std::string shown;
  for (const char each : text.substr(0, shown_max)) shown += each < ' ' || each > '~' ? '?' : each;
  return "'" + shown + (text.size() > shown_max ? "..." : "") + "'";
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(separators, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

}  // namespace

/// Reads the fields of one rule, and keeps the first fault.
class CronReader {
 public:
  Result<Cron> read(std::string_view text) {
    if (text.size() > Cron::text_bytes_max)
      return Error{ErrorCode::invalid_argument,
                   "cron: longer than " + std::to_string(Cron::text_bytes_max) + " bytes"};
    std::vector<std::string_view> parts = split(text, " \t");
    std::erase(parts, std::string_view());
    if (parts.size() != cron_fields.size())
      return Error{ErrorCode::invalid_argument,
                   "cron: " + std::to_string(parts.size()) +
                       " fields; a rule has five: minute, hour, day of the month, month, day of the week"};
    Cron cron;
    fill(cron.minutes_, cron_fields[0], parts[0]);
    fill(cron.hours_, cron_fields[1], parts[1]);
    fill(cron.days_, cron_fields[2], parts[2]);
    fill(cron.months_, cron_fields[3], parts[3]);
    std::bitset<sunday_again + 1> week_days;
    fill(week_days, cron_fields[4], parts[4]);
    for (std::size_t day = 0; day < week_days.size(); ++day)
      if (week_days[day]) cron.week_days_.set(day % cron.week_days_.size());
    cron.either_day_ = !parts[2].starts_with('*') && !parts[4].starts_with('*');
    if (fault_) return Error{ErrorCode::invalid_argument, "cron: " + *fault_};
    if (!cron.next_after({0}))
      return Error{ErrorCode::invalid_argument, "cron: no date matches the day of the month and the month"};
    return cron;
  }

 private:
  void fail(const CronField& field, const std::string& what) {
    if (!fault_) fault_ = std::string(field.name) + ": " + what;
  }

  template <std::size_t bits>
  void fill(std::bitset<bits>& set, const CronField& field, std::string_view text) {
    for (const std::string_view part : split(text, ",")) {
      const std::size_t slash = part.find('/');
      const std::string_view range = part.substr(0, slash);
      const bool has_step = slash != std::string_view::npos;
      const auto [first, last] = range_of(field, range, has_step);
      const int step = has_step ? step_of(field, part.substr(slash + 1)) : 1;
      if (fault_) return;
      for (int value = first; value <= last; value += step) set.set(static_cast<std::size_t>(value));
    }
  }

  struct Range {
    int first = 0;
    int last = 0;
  };
  /// Reads `*`, `5` or `5-9`.
  Range range_of(const CronField& field, std::string_view text, bool has_step) {
    // Sunday counts once, so that steps from * do not meet it twice.
    if (text == "*") return {field.min, field.max == sunday_again ? sunday_again - 1 : field.max};
    const std::size_t dash = text.find('-');
    const int first = value_of(field, text.substr(0, dash));
    if (dash == std::string_view::npos) {
      if (has_step) fail(field, "a step needs a range before it, such as 0-30/10 or */10");
      return {first, first};
    }
    int last = value_of(field, text.substr(dash + 1));
    if (field.max == sunday_again && last == 0 && first > 0) last = sunday_again;  // FRI-SUN
    if (last < first) fail(field, "the range " + quoted(text) + " ends before it begins");
    return {first, last};
  }

  int step_of(const CronField& field, std::string_view text) {
    const auto step = number_of(text);
    if (step && *step >= 1 && *step <= field.max) return *step;
    fail(field, quoted(text) + " is not a step from 1 to " + std::to_string(field.max));
    return 1;
  }

  int value_of(const CronField& field, std::string_view text) {
    if (const auto number = number_of(text)) {
      if (field.min <= *number && *number <= field.max) return *number;
    } else if (const auto found = std::ranges::find(field.names, upper_case(text));
               found != field.names.end()) {
      return field.first_name + static_cast<int>(found - field.names.begin());
    }
    std::string rule = "a number from " + std::to_string(field.min) + " to " + std::to_string(field.max);
    if (!field.names.empty())
      rule +=
          " or a name from " + std::string(field.names.front()) + " to " + std::string(field.names.back());
    fail(field, quoted(text) + " is not " + rule);
    return field.min;
  }

  /// Returns a number of one or two digits.
  static std::optional<int> number_of(std::string_view text) {
    constexpr std::size_t digits_max = 2;
    int number = 0;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number);
    if (text.empty() || text.size() > digits_max || text.front() == '-') return std::nullopt;
    return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
  }

  std::optional<std::string> fault_;
};

Result<Cron> Cron::parse(std::string_view text) {
  return CronReader().read(text);
}

bool Cron::matches_day(std::int64_t day) const {
  const auto date = date_of(day);
  if (!months_[static_cast<unsigned>(date.month())]) return false;
  const bool by_month = days_[static_cast<unsigned>(date.day())];
  const bool by_week = week_days_[static_cast<std::size_t>(week_day_of(day))];
  return either_day_ ? by_month || by_week : by_month && by_week;
}

bool Cron::matches(LocalMinute minute) const {
  const std::int64_t day = day_of(minute);
  const auto of_day = static_cast<std::size_t>(minute.value - day * minutes_per_day);
  return minutes_[of_day % minutes_per_hour] && hours_[of_day / minutes_per_hour] && matches_day(day);
}

std::optional<LocalMinute> Cron::next_after(LocalMinute minute) const {
  const LocalMinute begin{minute.value + 1};
  const std::int64_t first_day = day_of(begin);
  std::int64_t from = begin.value - first_day * minutes_per_day;
  for (std::int64_t day = first_day; day <= first_day + search_years * days_per_year_max; ++day, from = 0) {
    if (!matches_day(day)) continue;
    for (std::int64_t at = from; at < minutes_per_day; ++at) {
      const auto hour = static_cast<std::size_t>(at / minutes_per_hour);
      if (!hours_[hour]) {
        at = static_cast<std::int64_t>(hour) * minutes_per_hour + minutes_per_hour - 1;
        continue;
      }
      if (minutes_[static_cast<std::size_t>(at % minutes_per_hour)])
        return LocalMinute{day * minutes_per_day + at};
    }
  }
  return std::nullopt;
}

std::optional<LocalMinute> Cron::last_until(LocalMinute minute) const {
  const std::int64_t last_day = day_of(minute);
  std::int64_t from = minute.value - last_day * minutes_per_day;
  for (std::int64_t day = last_day; day >= last_day - search_years * days_per_year_max;
       --day, from = minutes_per_day - 1) {
    if (!matches_day(day)) continue;
    for (std::int64_t at = from; at >= 0; --at) {
      const auto hour = static_cast<std::size_t>(at / minutes_per_hour);
      if (!hours_[hour]) {
        at = static_cast<std::int64_t>(hour) * minutes_per_hour;
        continue;
      }
      if (minutes_[static_cast<std::size_t>(at % minutes_per_hour)])
        return LocalMinute{day * minutes_per_day + at};
    }
  }
  return std::nullopt;
}

}  // namespace lightq::broker
