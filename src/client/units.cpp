/// Parses and formats sizes, counts, rates and durations. Layer: cli.
#include "client/units.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <span>

#include "base/ascii_case.hpp"

namespace lightq::cli {
namespace {

struct Unit {
  std::string_view name;  // in lower case
  double factor;
};

constexpr double kilo = 1000;
constexpr double kibi = 1024;

constexpr std::array<Unit, 18> size_units = {{
    {"", 1},
    {"b", 1},
    {"k", kilo},
    {"kb", kilo},
    {"ki", kibi},
    {"kib", kibi},
    {"m", kilo* kilo},
    {"mb", kilo* kilo},
    {"mi", kibi* kibi},
    {"mib", kibi* kibi},
    {"g", kilo* kilo* kilo},
    {"gb", kilo* kilo* kilo},
    {"gi", kibi* kibi* kibi},
    {"gib", kibi* kibi* kibi},
    {"t", kilo* kilo* kilo* kilo},
    {"tb", kilo* kilo* kilo* kilo},
    {"ti", kibi* kibi* kibi* kibi},
    {"tib", kibi* kibi* kibi* kibi},
}};
constexpr std::array<Unit, 4> count_units = {{{"", 1}, {"k", 1e3}, {"m", 1e6}, {"g", 1e9}}};
constexpr std::array<Unit, 6> duration_units = {
    {{"", 1e3}, {"ms", 1}, {"s", 1e3}, {"m", 60e3}, {"h", 3600e3}, {"d", 86400e3}}};

/// Parses a number of at least 0 with one of `units`, and multiplies them. Returns nothing from 9.2e18 on, a
/// little below 2^63.
std::optional<std::uint64_t> parse(std::string_view text, std::span<const Unit> units) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, fault] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (fault != std::errc() || !(number >= 0)) return std::nullopt;
  std::string name;
  for (const char* at = rest; at != end; ++at) {
    if (*at == ' ' && name.empty()) continue;
    name += in_lower_case(*at);
  }
  for (const Unit& unit : units) {
    if (unit.name != name) continue;
    const double value = std::round(number * unit.factor);
    if (!(value < 9.2e18)) return std::nullopt;
    return static_cast<std::uint64_t>(value);
  }
  return std::nullopt;
}

std::string printed(const char* format, double value, const char* unit) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, value, unit);
  return text.data();
}

}  // namespace

std::optional<std::uint64_t> parse_size(std::string_view text) {
  return parse(text, size_units);
}

std::optional<std::uint64_t> parse_count(std::string_view text) {
  if (text.ends_with("/s")) text.remove_suffix(2);
  return parse(text, count_units);
}

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  // A span of several parts, such as 1h30m: each part ends where letters are followed by a digit.
  std::uint64_t sum = 0;
  while (true) {
    const std::size_t letters = std::min(text.find_first_not_of("0123456789. "), text.size());
    const std::size_t end = std::min(text.find_first_of("0123456789", letters), text.size());
    const std::string_view part = text.substr(0, text.find_last_not_of(' ', end - 1) + 1);
    const std::optional<std::uint64_t> ms = parse(part, duration_units);
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (!ms || *ms > most - sum) return std::nullopt;
    sum += *ms;
    if (end == text.size()) return std::chrono::milliseconds(static_cast<std::int64_t>(sum));
    text.remove_prefix(end);
    if (text.find_first_not_of("0123456789.") == std::string_view::npos) return std::nullopt;  // no unit
  }
}

std::optional<std::chrono::milliseconds> parse_wait(std::string_view text) {
  constexpr std::chrono::milliseconds longest = std::chrono::hours(24 * 365 * 100);
  const auto span = parse_duration(text);
  return span ? std::optional(std::min(*span, longest)) : std::nullopt;
}

std::string format_size(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> units = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= kibi && unit + 1 < units.size()) {
    value /= kibi;
    ++unit;
  }
  return printed(unit == 0 ? "%.0f %s" : "%.1f %s", value, units.at(unit));
}

std::string format_count(std::uint64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

std::string format_messages(std::uint64_t count) {
  return format_count(count) + (count == 1 ? " message" : " messages");
}

std::string format_rate(double per_second) {
  if (per_second >= 1e6) return printed("%.2f %s", per_second / 1e6, "M/s");
  if (per_second >= 1e3) return printed("%.1f %s", per_second / 1e3, "k/s");
  return printed("%.0f %s", per_second, "/s");
}

std::string format_seconds(double seconds) {
  if (seconds < 1e-3) return printed("%.0f %s", seconds * 1e6, "µs");
  if (seconds < 1) return printed("%.1f %s", seconds * 1e3, "ms");
  return printed("%.2f %s", seconds, "s");
}

}  // namespace lightq::cli
