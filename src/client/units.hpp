/// Sizes, counts, rates and durations as people write them, and back. Layer: cli.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lightq::cli {

/// Bytes: `512`, `1k` and `1kB` (1,000), `1KiB` and `1Ki` (1,024), up to T and Ti; case does not matter.
/// Nothing for anything else, or beyond 64 bits.
std::optional<std::uint64_t> parse_size(std::string_view text);

/// A count or a rate per second: `1000`, `10k`, `2.5M`, `1G`; also `10k/s`.
std::optional<std::uint64_t> parse_count(std::string_view text);

/// A time span: `250ms`, `30s`, `5m`, `1h`, `7d`; a bare number is seconds.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

/// A time span for which a command may have to wait: as parse_duration, and at most 100 years, for a clock in
/// nanoseconds ends after 292.
std::optional<std::chrono::milliseconds> parse_wait(std::string_view text);

/// `1.5 GiB`, `12 B`.
std::string format_size(std::uint64_t bytes);
/// `1,234,567`.
std::string format_count(std::uint64_t count);
/// `1 message`, `1,234 messages`.
std::string format_messages(std::uint64_t count);
/// `1.24 M/s`, `850 /s`.
std::string format_rate(double per_second);
/// `85 µs`, `1.2 ms`, `3.4 s`, from seconds.
std::string format_seconds(double seconds);

}  // namespace lightq::cli
