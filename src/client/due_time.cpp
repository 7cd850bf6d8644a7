/// Parses the times at which messages shall be due. Layer: cli.
#include "client/due_time.hpp"

#include <stdlib.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <system_error>

#include "client/place.hpp"
#include "client/units.hpp"

namespace lightq::cli {
namespace {

constexpr std::int64_t us_per_second = 1'000'000;

/// Sets the time zone of the C library's functions while the object exists.
class ZoneInForce {
 public:
  explicit ZoneInForce(const std::string& zone) {
    if (zone.empty()) return;
    if (const char* const before = ::getenv(variable)) before_ = before;
    is_changed_ = true;
    ::setenv(variable, (":" + zone).c_str(), 1);
    ::tzset();
  }
  ZoneInForce(const ZoneInForce&) = delete;
  ZoneInForce& operator=(const ZoneInForce&) = delete;
  ~ZoneInForce() {
    if (!is_changed_) return;
    before_ ? ::setenv(variable, before_->c_str(), 1) : ::unsetenv(variable);
    ::tzset();
  }

 private:
  static constexpr const char* variable = "TZ";
  std::optional<std::string> before_;
  bool is_changed_ = false;
};

/// Returns the time that a clock on the wall shows, as if it were UTC.
std::int64_t shown_at(std::int64_t seconds) {
  const auto time = static_cast<time_t>(seconds);
  tm fields{};
  if (::localtime_r(&time, &fields) == nullptr) return std::numeric_limits<std::int64_t>::min();
  return ::timegm(&fields);
}

/// Returns the first moment at which a clock of the zone in force shows `wall` or a later time.
std::int64_t first_moment_of(std::int64_t wall) {
  // No clock differs from UTC by more than a day. It jumps by less than two days.
  constexpr std::int64_t day = 86'400;
  std::int64_t first = wall - 2 * day;
  std::int64_t last = wall + 3 * day;
  // Between two changes of the offset the time shown ascends. So test each quarter of an hour first.
  constexpr std::int64_t step = 900;
  for (std::int64_t at = first; at <= last; at += step) {
    if (shown_at(at) < wall) {
      first = at;
      continue;
    }
    last = at;
    break;
  }
  while (last - first > 1) {
    const std::int64_t middle = first + (last - first) / 2;
    (shown_at(middle) < wall ? first : last) = middle;
  }
  return last;
}

/// Returns true if a time states its own distance from UTC, as `Z` or `+01:00`.
bool has_offset(std::string_view text) {
  constexpr std::size_t date_and_hour = std::string_view("0000-00-00T00").size();
  return text.ends_with('Z') || text.find_first_of("+-", date_and_hour) != std::string_view::npos;
}

}  // namespace

bool is_time_zone(const std::string& zone) {
  if (zone.empty() || zone == "UTC") return true;
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/' ||
           c == '_' || c == '-' || c == '+';
  };
  if (!std::ranges::all_of(zone, is_plain) || zone.front() == '/') return false;
  const char* const directory = ::getenv("TZDIR");
  const std::filesystem::path zones = directory == nullptr ? "/usr/share/zoneinfo" : directory;
  std::error_code fault;
  return std::filesystem::is_regular_file(zones / zone, fault);
}

std::optional<Timestamp> parse_due_time(std::string_view text, const std::string& zone, Timestamp now) {
  if (text.starts_with('+')) {
    const auto span = parse_duration(text.substr(1));
    constexpr std::int64_t most_ms = std::numeric_limits<std::int64_t>::max() / 2000;
    if (!span || span->count() > most_ms || now.us > most_ms * 1000) return std::nullopt;
    return Timestamp{now.us + span->count() * 1000};
  }
  if (const auto time = has_offset(text) ? parse_time(text) : std::nullopt) return time;
  const auto wall = parse_time(std::string(text) + "Z");
  if (!wall) return std::nullopt;
  const ZoneInForce in_force(zone);
  const std::int64_t seconds = first_moment_of(wall->us / us_per_second);
  const bool is_skipped = shown_at(seconds) != wall->us / us_per_second;
  const Timestamp found{seconds * us_per_second + (is_skipped ? 0 : wall->us % us_per_second)};
  return found.us >= 0 ? std::optional(found) : std::nullopt;
}

}  // namespace lightq::cli
