/// Parses positions in a topic and times. Layer: cli.
#pragma once

#include <optional>
#include <string_view>

#include <lightq/base/types.hpp>
#include <lightq/protocol/session_consuming.hpp>

namespace lightq::cli {

/// Parses `first`, `next`, `last`, an offset, or a time. A time is one that parse_time reads, or a time span
/// as parse_duration reads it: `15m` means 15 minutes before `now`.
std::optional<session::Place> parse_place(std::string_view text, Timestamp now);

/// Parses a time in UTC, `2026-11-22T04:00:00.25Z`, or of another clock, `2026-11-22T05:00+01:00`, with or
/// without seconds and a fraction; or a date, `2026-11-22`, which begins at midnight in UTC. Returns nothing
/// for any other text, or a time before 1970.
std::optional<Timestamp> parse_time(std::string_view text);

}  // namespace lightq::cli
