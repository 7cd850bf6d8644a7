/// Places in a topic as people write them. Layer: cli.
#pragma once

#include <optional>
#include <string_view>

#include <lightq/base/types.hpp>
#include <lightq/protocol/session_consuming.hpp>

namespace lightq::cli {

/// `first`, `next`, `last`, an offset, or a time: `2026-11-22T04:00:00Z`, with or without a fraction of a
/// second, or a time span with its unit as parse_duration reads it, `15m`, which is so long before `now`.
std::optional<session::Place> parse_place(std::string_view text, Timestamp now);

/// A time in UTC: `2026-11-22T04:00:00Z`, `2026-11-22T04:00:00.25Z`. Nothing for any other, or before 1970.
std::optional<Timestamp> parse_time(std::string_view text);

}  // namespace lightq::cli
