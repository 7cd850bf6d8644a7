/// Parses positions in a topic and times. Layer: cli.
#pragma once

#include <optional>
#include <string_view>

#include <lightq/base/types.hpp>
#include <lightq/protocol/session_consuming.hpp>

namespace lightq::cli {

/// Parses `first`, `next`, `last`, an offset, or a time. A time is `2026-11-22T04:00:00Z`, with or without a
/// fraction of a second, or a time span as parse_duration reads it: `15m` means 15 minutes before `now`.
std::optional<session::Place> parse_place(std::string_view text, Timestamp now);

/// Parses a time in UTC: `2026-11-22T04:00:00Z`, `2026-11-22T04:00:00.25Z`. Returns nothing for any other
/// text, or a time before 1970.
std::optional<Timestamp> parse_time(std::string_view text);

}  // namespace lightq::cli
