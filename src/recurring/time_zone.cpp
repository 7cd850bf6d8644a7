/// Local times of a named time zone, by the library date. Layer: recurring.
#include "recurring/time_zone.hpp"

#include <date/tz.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>

namespace lightq::broker {

namespace {

constexpr std::size_t zone_name_bytes_max = 64;

date::sys_seconds sys_time(std::int64_t moment) {
  return date::sys_seconds(std::chrono::seconds(moment));
}
date::local_seconds local_time(std::int64_t local) {
  return date::local_seconds(std::chrono::seconds(local));
}

/// The library throws exceptions. Returns nothing if there is no such zone, or no data.
const date::time_zone* zone_of(const std::string& name) {
  try {
    return date::locate_zone(name);
  } catch (const std::exception&) {
    return nullptr;
  }
}

/// Returns why the system's data cannot be used; nothing if they can. The library does not read the rule for
/// the future at the end of a file. Files in the "slim" format state the present daylight saving times only
/// there.
std::optional<Error> fault_of_zone_data() {
  constexpr std::int64_t july_2036 = 2'098'483'200;
  constexpr std::chrono::hours summer_time(2);
  const date::time_zone* const berlin = zone_of("Europe/Berlin");
  if (berlin == nullptr)
    return Error{ErrorCode::not_supported,
                 "zone: this system has no time zone data; install the package tzdata, or use the zone UTC"};
  if (berlin->get_info(sys_time(july_2036)).offset == summer_time) return std::nullopt;
  return Error{ErrorCode::not_supported,
               "zone: this system's time zone data are in the \"slim\" format without daylight saving times "
               "to come, or outdated; install data in the \"fat\" format (zic -b fat), or use the zone UTC"};
}

}  // namespace

Result<TimeZone> TimeZone::find(std::string_view name) {
  if (name == "UTC") return TimeZone();
  const auto is_of_name = [](char each) {
    return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') || (each >= '0' && each <= '9') ||
           each == '/' || each == '_' || each == '+' || each == '-';
  };
  if (name.empty() || name.size() > zone_name_bytes_max || !std::ranges::all_of(name, is_of_name))
    return Error{ErrorCode::invalid_argument, "zone: must be the name of a time zone, such as Europe/Berlin"};
  static const std::optional<Error> fault = fault_of_zone_data();
  if (fault) return *fault;
  const date::time_zone* const zone = zone_of(std::string(name));
  if (zone == nullptr)
    return Error{ErrorCode::invalid_argument,
                 "zone: there is no time zone '" + std::string(name) + "' on this system"};
  return TimeZone(zone);
}

std::int64_t TimeZone::local_of(std::int64_t moment) const {
  if (zone_ == nullptr) return moment;
  return moment + zone_->get_info(sys_time(moment)).offset.count();
}

std::int64_t TimeZone::latest_local_until(std::int64_t moment) const {
  if (zone_ == nullptr) return moment;
  const auto info = zone_->get_info(sys_time(moment));
  const std::int64_t begin = info.begin.time_since_epoch().count();
  const std::int64_t local = moment + info.offset.count();
  constexpr std::int64_t day_seconds = 86'400;
  if (begin < moment - 2 * day_seconds) return local;  // also where the data begin
  const auto before = zone_->get_info(sys_time(begin - 1));
  return std::max(local, begin - 1 + before.offset.count());
}

std::int64_t TimeZone::moment_of(std::int64_t local) const {
  if (zone_ == nullptr) return local;
  const auto info = zone_->get_info(local_time(local));
  if (info.result == date::local_info::nonexistent) return info.first.end.time_since_epoch().count();
  return local - info.first.offset.count();  // of an ambiguous time, the first one
}

}  // namespace lightq::broker
