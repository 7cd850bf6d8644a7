/// Parses the times at which messages shall be due. Layer: cli.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <lightq/base/types.hpp>

namespace lightq::cli {

/// Returns true if this machine knows the time zone, for example `Europe/Berlin`. The empty name is the
/// zone of this machine.
bool is_time_zone(const std::string& zone);

/// Parses a time: `+10m` after `now`; `2026-12-01T09:00:00Z` in UTC, or with the distance from UTC,
/// `2026-12-01T09:00+01:00`; or `2026-12-01T09:00` in `zone`, with
/// or without seconds and a fraction. A local time that the zone skips is the next moment that exists. One
/// that comes twice is the first of both. Returns nothing for any other text, or a time before 1970.
/// Requires: `is_time_zone(zone)`. Changes the variable TZ meanwhile, so it is for one thread at a time.
std::optional<Timestamp> parse_due_time(std::string_view text, const std::string& zone, Timestamp now);

}  // namespace lightq::cli
