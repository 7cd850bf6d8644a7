/// Parses numbers of settings. Layer: broker.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <lightq/base/limits.hpp>

namespace lightq::broker {

inline constexpr std::uint64_t any_number = std::numeric_limits<std::int64_t>::max();

/// Parses a whole number without a sign. Returns nothing for any other text.
inline std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Parses `16777216`, `16MiB` or `16 MB`. Returns nothing for any other text, and for more than `any_number`.
inline std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  const auto digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = parse_number(text.substr(0, digits));
  auto unit = text.substr(digits);
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  constexpr std::array<std::pair<std::string_view, std::uint64_t>, 9> units = {{{"", 1},
                                                                                {"B", 1},
                                                                                {"KiB", limits::KiB},
                                                                                {"MiB", limits::MiB},
                                                                                {"GiB", limits::GiB},
                                                                                {"TiB", 1024 * limits::GiB},
                                                                                {"kB", 1000},
                                                                                {"MB", 1'000'000},
                                                                                {"GB", 1'000'000'000}}};
  for (const auto& [name, bytes] : units) {
    if (number && unit == name && *number <= any_number / bytes) return *number * bytes;
  }
  return std::nullopt;
}

}  // namespace lightq::broker
