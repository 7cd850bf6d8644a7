/// Parses positions in a topic and times. Layer: cli.
#include "client/place.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <string>

#include "client/units.hpp"

namespace lightq::cli {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Parses a number that consists of digits only.
std::optional<std::uint64_t> parse_digits(std::string_view text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  if (text.empty() || !std::ranges::all_of(text, is_digit)) return std::nullopt;
  const auto [rest, fault] = std::from_chars(text.data(), end, number);
  return fault == std::errc() ? std::optional(number) : std::nullopt;
}

/// Converts a fraction such as `.25` to microseconds; drops further digits.
std::optional<std::int64_t> parse_fraction(std::string_view text) {
  constexpr std::size_t digits = 6;
  if (text.empty()) return 0;
  const std::string_view fraction = text.substr(1);
  if (text[0] != '.' || fraction.empty() || !std::ranges::all_of(fraction, is_digit)) return std::nullopt;
  std::string micros(fraction.substr(0, digits));
  micros.resize(digits, '0');
  return static_cast<std::int64_t>(*parse_digits(micros));
}

constexpr std::string_view date_shape = "0000-00-00";

/// Removes the end of a time that states how far its clock is ahead of UTC: `Z`, `+01:00` or `-05:30`. Adds
/// the seconds to a time without them. Returns nothing if there is no such end.
std::optional<std::chrono::minutes> take_offset(std::string& time) {
  std::chrono::minutes offset{0};
  constexpr std::string_view shape = "+00:00";
  if (time.ends_with('Z')) {
    time.pop_back();
  } else {
    if (time.size() < date_shape.size() + shape.size()) return std::nullopt;
    const std::string end = time.substr(time.size() - shape.size());
    const auto hours = parse_digits(std::string_view(end).substr(1, 2));
    const auto minutes = parse_digits(std::string_view(end).substr(4, 2));
    if ((end[0] != '+' && end[0] != '-') || end[3] != ':' || !hours || !minutes || *hours > 23 ||
        *minutes > 59)
      return std::nullopt;
    offset = std::chrono::hours(*hours) + std::chrono::minutes(*minutes);
    if (end[0] == '-') offset = -offset;
    time.erase(time.size() - shape.size());
  }
  constexpr std::size_t without_seconds = std::string_view("0000-00-00T00:00").size();
  if (time.size() == without_seconds) time += ":00";
  return offset;
}

}  // namespace

std::optional<Timestamp> parse_time(std::string_view text) {
  constexpr std::string_view shape = "0000-00-00T00:00:00";
  std::string whole(text);
  if (text.size() == date_shape.size()) whole += "T00:00:00Z";  // a day begins at midnight in UTC
  const auto offset = take_offset(whole);
  if (!offset || whole.size() < shape.size()) return std::nullopt;
  for (std::size_t at = 0; at < shape.size(); ++at) {
    if (shape[at] == '0' ? !is_digit(whole[at]) : whole[at] != shape[at]) return std::nullopt;
  }
  const auto number = [&](std::size_t at, std::size_t digits) {
    return static_cast<unsigned>(*parse_digits(std::string_view(whole).substr(at, digits)));
  };
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(number(0, 4))),
                                         std::chrono::month(number(5, 2)), std::chrono::day(number(8, 2))};
  const unsigned hour = number(11, 2);
  const unsigned minute = number(14, 2);
  const unsigned second = number(17, 2);
  const auto fraction = parse_fraction(std::string_view(whole).substr(shape.size()));
  if (!date.ok() || hour > 23 || minute > 59 || second > 59 || !fraction) return std::nullopt;
  const auto time = std::chrono::sys_days(date) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
                    std::chrono::seconds(second) + std::chrono::microseconds(*fraction) - *offset;
  const std::int64_t us = std::chrono::microseconds(time.time_since_epoch()).count();
  return us >= 0 ? std::optional(Timestamp{us}) : std::nullopt;
}

std::optional<session::Place> parse_place(std::string_view text, Timestamp now) {
  using session::From;
  if (text == "first") return session::Place{From::first, 0};
  if (text == "next") return session::Place{From::next, 0};
  if (text == "last") return session::Place{From::last, 0};
  if (const auto offset = parse_digits(text)) return session::Place{From::offset, *offset};
  const auto at = [](std::int64_t us) {
    return session::Place{From::time, static_cast<std::uint64_t>(std::max<std::int64_t>(us, 0))};
  };
  if (const auto time = parse_time(text)) return at(time->us);
  const bool has_unit = !text.empty() && !is_digit(text.back()) && text.back() != '.';
  const auto span = has_unit ? parse_duration(text) : std::nullopt;
  if (!span) return std::nullopt;
  const std::int64_t most_ms = now.us / 1000;
  return at(now.us - std::min<std::int64_t>(span->count(), most_ms) * 1000);
}

}  // namespace lightq::cli
