/// Parses and formats sizes, counts, rates and durations. Layer: cli.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lightq::cli {

/// Parses a number of bytes: `512`, `1k` and `1kB` (1,000), `1KiB` and `1Ki` (1,024), up to T and Ti. Upper
/// and lower case are equal. Returns nothing for any other text, or from 9.2e18 on.
std::optional<std::uint64_t> parse_size(std::string_view text);

/// Parses a count or a rate per second: `1000`, `10k`, `2.5M`, `1G`; also `10k/s`.
std::optional<std::uint64_t> parse_count(std::string_view text);

/// Parses a time span: `250ms`, `30s`, `5m`, `1h`, `7d`, or several, as in `1h30m`; a bare number is seconds.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

/// Parses a time span that a command may wait, as parse_duration does. Returns nothing above 100 years,
/// because a clock in nanoseconds overflows after 292.
std::optional<std::chrono::milliseconds> parse_wait(std::string_view text);

/// Returns for example `1.5 GiB`, `12 B`.
std::string format_size(std::uint64_t bytes);
/// Returns for example `1,234,567`.
std::string format_count(std::uint64_t count);
/// Returns for example `1 message`, `1,234 messages`.
std::string format_messages(std::uint64_t count);
/// Returns for example `1.24 M/s`, `850 /s`.
std::string format_rate(double per_second);
/// Returns for example `85 µs`, `1.2 ms`, `3.4 s`.
std::string format_seconds(double seconds);

}  // namespace lightq::cli
